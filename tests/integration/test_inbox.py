"""The memory of the inbox scanner: what was seen, and which version of a file was taken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, Engine

from ingest.folder import Seen
from storage import inbox


@pytest.fixture
def connection(engine: Engine) -> Iterator[Connection]:
    with engine.begin() as open_connection:
        yield open_connection


def test_what_is_saved_is_loaded(connection: Connection) -> None:
    observed = [Seen("acme/risk/a.pdf", "10-1", 1.5), Seen("银行/risk/报告 100%.pdf", "20-2", 1_700_000_000.123)]
    inbox.save(connection, observed)
    assert inbox.load(connection, Seen) == ({one.key: one for one in observed}, {})


def test_an_empty_inbox_has_seen_nothing(connection: Connection) -> None:
    inbox.save(connection, [])
    assert inbox.load(connection, Seen) == ({}, {})


def test_what_is_gone_from_the_folder_is_forgotten(connection: Connection) -> None:
    inbox.save(connection, [Seen("a", "1", 1.0), Seen("b", "1", 1.0)])
    inbox.save(connection, [Seen("b", "1", 1.0)])
    assert list(inbox.load(connection, Seen)[0]) == ["b"]


def test_a_file_that_was_taken_stays_taken_in_later_scans(connection: Connection) -> None:
    for _ in range(2):
        inbox.save(connection, [Seen("a", "1", 1.0), Seen("b", "1", 1.0)])
        inbox.mark_taken(connection, ["a"])
    assert inbox.load(connection, Seen)[1] == {"a": "1"}


def test_a_file_that_has_changed_is_no_longer_taken(connection: Connection) -> None:
    inbox.save(connection, [Seen("a", "1", 1.0)])
    inbox.mark_taken(connection, ["a"])
    inbox.save(connection, [Seen("a", "2", 9.0)])
    assert inbox.load(connection, Seen) == ({"a": Seen("a", "2", 9.0)}, {})


def test_an_inbox_may_hold_more_files_than_a_statement_has_parameters(connection: Connection) -> None:
    many = [Seen(f"acme/risk/{number}.pdf", "1", 1.0) for number in range(70_000)]
    inbox.save(connection, many)
    inbox.mark_taken(connection, [one.key for one in many])
    assert len(inbox.load(connection, Seen)[1]) == 70_000
    inbox.save(connection, [])
    assert inbox.load(connection, Seen) == ({}, {})
