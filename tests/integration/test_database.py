"""What is tried again while the server is away, and what is not."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError

from storage.database import transactional


@dataclass
class Worker:
    """Counts how often its method is run."""

    engine: Engine
    tries: list[int] = field(default_factory=list)

    @transactional
    def cut_off_once(self, connection: Connection) -> int:
        self.tries.append(1)
        if len(self.tries) == 1:
            connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))
        return int(connection.execute(text("SELECT 7")).scalar_one())

    @transactional
    def run(self, connection: Connection, statement: str) -> None:
        self.tries.append(1)
        connection.execute(text(statement))


def test_a_transaction_whose_connection_is_cut_is_run_again(engine: Engine) -> None:
    worker = Worker(engine)
    assert worker.cut_off_once() == 7
    assert len(worker.tries) == 2


@pytest.mark.parametrize("statement", ["SELECT 1/0", "SELECT nonsense", "INSERT INTO v_fields (path) VALUES ('/x')"])
def test_an_error_of_the_statement_itself_is_not_tried_again(engine: Engine, statement: str) -> None:
    worker = Worker(engine)
    with pytest.raises(DBAPIError):
        worker.run(statement)
    assert len(worker.tries) == 1


def test_times_are_told_in_utc(engine: Engine) -> None:
    with engine.connect() as connection:
        assert connection.execute(text("SHOW TIME ZONE")).scalar_one() == "UTC"
