"""Statements that are built and compiled once: for what every job runs, building costs more than running."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, Connection, CursorResult, Select, Table, select
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

_DIALECT = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped


class Fixed:
    """A Core statement as the text that psycopg takes; `names` are its `bindparam`s, which change from run to run.

    Values go to psycopg as they are: wrap JSON in `Jsonb`.
    """

    def __init__(self, statement: Select[Any], *names: str) -> None:
        blank = statement.params(dict.fromkeys(names))
        state = blank.compile(dialect=_DIALECT).construct_expanded_state()
        self._sql = state.statement
        self._names = frozenset(names)
        self._constants = {name: value for name, value in state.parameters.items() if name not in self._names}

    def run(self, connection: Connection, **values: Any) -> CursorResult[Any]:
        """Run it with these values, one for each name."""
        assert values.keys() == self._names, f"values for {sorted(values)}, wanted {sorted(self._names)}"
        return connection.exec_driver_sql(self._sql, {**self._constants, **values})


def as_text(condition: ColumnElement[bool], of: Table) -> str:
    """A condition on a row of this table whose values are all known, for a statement that is written as text."""
    compiled = select(of).where(condition).compile(dialect=_DIALECT, compile_kwargs={"literal_binds": True})
    return str(compiled).partition("WHERE ")[2].replace("%%", "%")
