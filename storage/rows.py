"""Many rows in one statement: they travel as one JSON text, and the database takes it apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql

from docmill.codec import encode

_DIALECT = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
_NOTHING: Mapping[str, str] = {}


def insert_rows(
    connection: Connection, table: Table, rows: Sequence[Mapping[str, Any]], *, worked_out: Mapping[str, str] = _NOTHING
) -> None:
    """Insert rows that all have the same columns; none is no work.

    `worked_out` has columns that the database works out, as SQL in which `new` is the row.
    """
    if rows:
        statement = _insert(table, tuple(rows[0]), tuple(worked_out.items()))
        connection.exec_driver_sql(statement, {"rows": encode(rows).decode()})


@cache
def _insert(table: Table, names: tuple[str, ...], worked_out: tuple[tuple[str, str], ...]) -> str:
    quoted = [_DIALECT.identifier_preparer.quote(name) for name in names]
    typed = (f"{one} {table.c[name].type.compile(_DIALECT)}" for one, name in zip(quoted, names, strict=True))
    into = ", ".join([*quoted, *(name for name, _ in worked_out)])
    what = ", ".join([*(f"new.{one}" for one in quoted), *(sql for _, sql in worked_out)])
    return (
        f"INSERT INTO {table.name} ({into}) SELECT {what}"
        f" FROM jsonb_to_recordset(CAST(%(rows)s AS jsonb)) AS new ({', '.join(typed)})"
    )
