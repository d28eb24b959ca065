"""What Alembic runs: on the connection that `storage.migrate` gives, or on `-x url=…` from the command line."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

from storage.database import connect
from storage.schema import metadata


def run(connection: Connection) -> None:
    """Run what was asked for in one transaction: the caller's, where there is one."""
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()


def run_from_command_line() -> None:
    """A developer's `alembic` command."""
    url = context.get_x_argument(as_dictionary=True).get("url")
    if not url:
        raise SystemExit("no database given: alembic -x url=postgresql+psycopg://… COMMAND")
    with connect(url).begin() as connection:
        run(connection)


given = context.config.attributes.get("connection")
if given is None:
    run_from_command_line()
else:
    run(given)
