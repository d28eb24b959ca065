"""Connections: one engine a process, one transaction a method, tried again while the server is away."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast

import psycopg
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, InvalidatePoolError, OperationalError
from sqlalchemy.pool import ConnectionPoolEntry
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from docmill.errors import DatabaseUnavailable

#: A restart of PostgreSQL takes seconds; what a worker has in hand is worth waiting for it.
PATIENCE_S = 60.0

#: SQLSTATE classes of errors that pass: connection, rollback by the server, resources, an operator's intervention.
PASSING = frozenset({"08", "40", "53", "57"})

#: A connection that lay unused for this long may have lost its server meanwhile.
TEST_AFTER_S = 1.0
_USED_AT = "docmill_used_at"

P = ParamSpec("P")
R = TypeVar("R")


class HasEngine(Protocol):
    """Whatever holds an engine may use `transactional`."""

    @property
    def engine(self) -> Engine: ...


S = TypeVar("S", bound=HasEngine)


def connect(url: str, *, pool_size: int = 5) -> Engine:
    """An engine in UTC whose connections are tested before use, unless they were in use just now.

    A test costs as much as a statement. What it would have found a busy connection meets by itself, and tries again.
    """
    engine = create_engine(url, pool_size=pool_size, max_overflow=20, pool_timeout=30)

    @event.listens_for(engine, "connect")
    def _utc(connection: Any, _: ConnectionPoolEntry) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SET TIME ZONE 'UTC'")
        connection.commit()

    @event.listens_for(engine, "checkin")
    def _note_use(_: Any, entry: ConnectionPoolEntry) -> None:
        entry.info[_USED_AT] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def _test(connection: Any, entry: ConnectionPoolEntry, _: Any) -> None:
        if time.monotonic() - entry.info.get(_USED_AT, -TEST_AFTER_S) >= TEST_AFTER_S and not _answers(connection):
            raise InvalidatePoolError

    return engine


def _answers(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except psycopg.OperationalError:
        return False
    return True


def _server_is_away(error: BaseException) -> bool:
    """A lost or refused connection, a server that stops or is overloaded, a deadlock: the next try may succeed."""
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None)
    no_answer = state is None and isinstance(error, OperationalError)
    return error.connection_invalidated or no_answer or (state or "")[:2] in PASSING


def transactional(
    method: Callable[Concatenate[S, Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """Run a method that takes a connection in a transaction of its own, again while the server is away.

    A commit whose answer was lost may be repeated; every writer here is a compare-and-set or an upsert, so the
    repetition either does nothing or is refused as a stale attempt. Raises DatabaseUnavailable.
    """

    return _patient(_in_transaction, method)


def autocommitted(
    method: Callable[Concatenate[S, Connection, P], R],
) -> Callable[Concatenate[S, P], R]:
    """As `transactional`, for a method of one statement: it is its own transaction, without the trips for two more."""
    return _patient(_in_one_statement, method)


def _patient(
    runs: Callable[..., Any], method: Callable[Concatenate[S, Connection, P], R]
) -> Callable[Concatenate[S, P], R]:
    @wraps(method)
    def run(self: S, *args: P.args, **kwargs: P.kwargs) -> R:
        attempts = Retrying(
            retry=retry_if_exception(_server_is_away),
            wait=wait_random_exponential(multiplier=0.1, max=2.0),
            stop=stop_after_delay(PATIENCE_S),
            reraise=True,
        )
        try:
            result: R = attempts(runs, self, method, *args, **kwargs)
        except DBAPIError as error:
            raise told(error) from error
        return result

    # functools.wraps types the wrapper as keeping the wrapped method's own arguments; the connection is gone from them.
    return cast(Callable[Concatenate[S, P], R], run)


def told(error: DBAPIError) -> Exception:
    """A server that is away in words of ours; what else it says is a mistake of ours, and stays as it is."""
    if not _server_is_away(error):
        return error
    return DatabaseUnavailable(
        f"the database does not answer ({str(error.orig).strip()}): start it, or mend DOCMILL_DATABASE_URL;"
        " the work waits for it"
    )


def _in_transaction(holder: Any, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    with holder.engine.begin() as connection:
        return method(holder, connection, *args, **kwargs)


def _in_one_statement(holder: Any, method: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    with holder.engine.execution_options(isolation_level="AUTOCOMMIT").connect() as connection:
        return method(holder, connection, *args, **kwargs)


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection for reads outside the state machine."""
    with engine.connect() as connection:
        yield connection
