"""Bringing a database up to date: the migrations, then the analysts' views. Safe to call from every process at start.

The views are not part of a migration: they are made anew from `views/*.sql` whenever they or the tables change, so
that what stands in the file is what stands in the database.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, NullPool, create_engine, func, select, text

from docmill.log import logger, say

#: The advisory lock that makes callers of one database wait for each other.
LOCK = 0x646F636D696C6C  # "docmill"

#: The views, in the order in which they are made.
VIEWS = (
    *("v_results", "v_fields", "v_field_versions", "v_reviews", "v_tables", "v_findings"),
    *("v_costs", "v_latency", "v_lineage", "v_pages"),
)

#: Members of this role may read the views and nothing else.
READER = "docmill_reader"
NO_READER = (
    f"this database user may not create roles: only the owner can read the views. To have the role, let an "
    f"administrator run `CREATE ROLE {READER} NOLOGIN`; it is granted at the next start"
)

_CREATE_READER = f"""
DO $$ BEGIN
    CREATE ROLE {READER} NOLOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;  -- another database of this server is upgraded at the same moment
END $$
"""

log = logger("migrate")

#: Alembic keeps the migration that it runs in a module: one a process.
_one_thread = threading.Lock()


def upgrade(url: str) -> None:
    """Migrate to the newest revision and make the views and the reader's role, all in one transaction.

    Where nothing has changed, nothing is locked: an analyst's long query does not hold up the start of a worker.
    Where the user may not create roles, the role is left out; it is granted at the next call once it exists.
    """
    engine = create_engine(url, poolclass=NullPool)
    with _one_thread, engine.begin() as connection:
        connection.execute(select(func.pg_advisory_xact_lock(LOCK)))
        if not _is_current(connection):
            _drop_views(connection)
            command.upgrade(_config(connection), "head")
            _make_views(connection)
        _grant(connection)


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_folder("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _folder(name: str) -> Path:
    return Path(str(files("storage"))) / name


def _sql(view: str) -> str:
    return (_folder("views") / f"{view}.sql").read_text(encoding="utf-8")


def _digest() -> str:
    return hashlib.sha256("\n".join(map(_sql, VIEWS)).encode()).hexdigest()


def _is_current(connection: Connection) -> bool:
    revision = MigrationContext.configure(connection).get_current_revision()
    if revision is None or revision != ScriptDirectory.from_config(_config(connection)).get_current_head():
        return False
    marked = connection.execute(text("SELECT obj_description('alembic_version'::regclass, 'pg_class')")).scalar()
    return bool(marked == f"views {_digest()}")


def _drop_views(connection: Connection) -> None:
    for view in reversed(VIEWS):
        connection.execute(text(f"DROP VIEW IF EXISTS {view}"))


def _make_views(connection: Connection) -> None:
    for view in VIEWS:
        # The driver takes a percent sign for a placeholder.
        connection.exec_driver_sql(_sql(view).replace("%", "%%"))
    connection.exec_driver_sql(f"COMMENT ON TABLE alembic_version IS 'views {_digest()}'")


def _grant(connection: Connection) -> None:
    if not _exists(connection, READER):
        if not _may_create_roles(connection):
            say(log, "no_reader", level=logging.WARNING, role=READER, why=NO_READER)
            return
        connection.exec_driver_sql(_CREATE_READER)
    for view in VIEWS:
        if not _may_select(connection, view):
            connection.execute(text(f"GRANT SELECT ON {view} TO {READER}"))


def _exists(connection: Connection, role: str) -> bool:
    found = connection.execute(text("SELECT count(*) FROM pg_roles WHERE rolname = :role"), {"role": role})
    return bool(found.scalar_one())


def _may_create_roles(connection: Connection) -> bool:
    found = connection.execute(text("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user"))
    return bool(found.scalar_one())


def _may_select(connection: Connection, view: str) -> bool:
    found = connection.execute(
        text("SELECT has_table_privilege(:role, :view, 'SELECT')"), {"role": READER, "view": view}
    )
    return bool(found.scalar_one())
