"""An analyst's SQL on the views: one statement, read only, with the rights of the readers' role, streamed.

Whoever owns the database reads through this too, so that a slip of the hand changes nothing. It is no wall against a
hostile owner, who has the owner's URL: give analysts a login of their own (`make_analyst`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import Connection as Owner
from sqlalchemy import Engine, make_url, text

from docmill.errors import BadQuery, NotFound
from storage.migrate import NO_READER, READER

#: Rows that are fetched at a time.
BATCH_ROWS = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column of an answer with PostgreSQL's number of its type."""

    name: str
    oid: int


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query gives: its columns, and rows as they come. Errors while rows come are BadQuery too."""

    columns: tuple[Column, ...]
    rows: Iterator[tuple[Any, ...]]


@contextmanager
def asking(
    database: Engine, statement: str, values: Mapping[str, Any] | None = None, *, timeout_s: float = 60.0
) -> Iterator[Answer]:
    """Run one statement as a reader; `values` fill its `%(name)s`. Raises BadQuery with the database's own words."""
    with closing(_connect(database)) as connection:
        try:
            _restrict(connection, timeout_s)
            cursor = connection.cursor()
            # A stream is a statement of its own in the protocol: a second one after a semicolon is refused.
            rows = cursor.stream(statement.encode(), values, size=BATCH_ROWS)
            first = next(rows, None)
            # A stream without a row does not say its columns.
            told = cursor if first is not None else connection.execute(statement.encode(), values, prepare=True)
            columns = tuple(Column(one.name, one.type_code) for one in told.description or ())
            yield Answer(columns, _all(first, rows))
        except psycopg.Error as error:
            raise BadQuery(_told(error)) from error


def _connect(database: Engine) -> psycopg.Connection[Any]:
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(url, options="-c timezone=UTC")


def _restrict(connection: psycopg.Connection[Any], timeout_s: float) -> None:
    """Before the statement: nothing can be written, only views be read, and not for ever."""
    connection.read_only = True
    connection.execute(sql.SQL("SET LOCAL statement_timeout = {}").format(sql.Literal(f"{int(1000 * timeout_s)}ms")))
    try:
        connection.execute(sql.SQL("SET LOCAL ROLE {}").format(sql.Identifier(READER)))
    except psycopg.errors.InvalidParameterValue as error:
        raise NotFound(NO_READER) from error


def _all(first: Any, rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
    if first is not None:
        yield first
    yield from rows


def _told(error: psycopg.Error) -> str:
    state = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
    said = " ".join(str(error).split())
    if isinstance(error, psycopg.errors.InsufficientPrivilege | psycopg.errors.ReadOnlySqlTransaction):
        return (
            f"{said}{state}: a query reads the views (v_results, v_fields, …) and changes nothing; see docs/analysts.md"
        )
    if isinstance(error, psycopg.errors.QueryCanceled):
        return f"{said}{state}: add a WHERE or a LIMIT, or raise --timeout"
    return f"{said}{state}"


def make_analyst(connection: Owner, name: str, password: str) -> None:
    """A login that may read the views and nothing else; an existing one gets the new password."""
    known = connection.execute(
        text("SELECT 1 FROM pg_roles WHERE rolname = :name"), {"name": name}
    ).scalar_one_or_none()
    role, secret = sql.Identifier(name), sql.Literal(password)
    statements = [
        sql.SQL("{} ROLE {} LOGIN PASSWORD {}").format(sql.SQL("ALTER" if known else "CREATE"), role, secret),
        sql.SQL("ALTER ROLE {} SET default_transaction_read_only = on").format(role),
        sql.SQL("GRANT {} TO {}").format(sql.Identifier(READER), role),
    ]
    for statement in statements:
        connection.exec_driver_sql(statement.as_string(None).replace("%", "%%"))


def url_for(database: Engine, name: str, password: str) -> str:
    """How the analyst's tools reach the database."""
    url = make_url(str(database.url)).set(drivername="postgresql", username=name, password=password)
    return url.render_as_string(hide_password=False)
