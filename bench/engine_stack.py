"""docmill's GPU worker on a Valkey and a PostgreSQL of its own, for `bench.engine`: jobs to read, and a clock."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

import psutil
import pymupdf
from sqlalchemy import func, select

from bench.engine_peers import Measured
from docmill.errors import StaleAttempt
from docmill.types import Route, Source
from inference.engine import Completion, Request
from inference.engines.stub import StubEngine
from inference.engines.thread import EngineThread
from inference.engines.vllm_local import LocalSettings
from storage.migrate import upgrade
from storage.ports import Stage
from storage.schema import attempts
from workers.local import EmbeddedPostgres, EmbeddedValkey
from workers.processes import Program, Supervisor, end_marked

PROFILE: Final = "transaction-monitoring"
TENANT: Final = "bench"
_PLACES: Final = ("Harbour", "Meridian", "Northgate", "Silver Bay", "Old Mill", "Sunrise", "Lakeside", "Granite")
_TRADES: Final = ("Trading", "Shipping", "Minerals", "Textiles", "Holdings", "Logistics", "Foods", "Capital")
_STARTS_WITHIN_S: Final = 900.0
_ROUND_WITHIN_S: Final = 1800.0


def notice(number: int) -> bytes:
    """A payment notice of its own words, numbers and date, as a PDF."""
    place, trade = _PLACES[number % 8], _TRADES[number // 8 % 8]
    lines = (
        f"Payment notice PN-2024-{number:05d}",
        f"Account number: {6222021000000000 + 7919 * number}",
        f"Counterparty: {place} {trade} {number} Limited",
        f"Transaction date: 2024-{1 + number % 12:02d}-{1 + number % 28:02d}",
        f"Transaction amount: USD {12000 + 37 * number:,}.{number % 100:02d}",
        f"Fee: USD {25 + number % 40}.50; balance after the transaction: USD {900000 + 113 * number:,}.10",
        f"The customer asked for the payment to be split over {2 + number % 6} days and to be sent by wire.",
    )
    with pymupdf.open() as document:
        page = document.new_page()
        for index, line in enumerate(lines):
            page.insert_text((60, 80 + 18 * index), line, fontsize=11)
        return bytes(document.tobytes())


@dataclass
class Held:
    """Stands for the publisher while documents are prepared: keeps what would be sent."""

    jobs: list[tuple[str, Route]] = field(default_factory=list)

    def publish(self, job_id: str, stage: Stage, route: Route | None, *, hot: bool, marked: bool = False) -> bool:
        if stage is Stage.INFER and route is not None:
            self.jobs.append((job_id, route))
        return True


class Listening(StubEngine):
    """An engine that answers nothing and keeps what it was asked."""

    async def opened(self) -> Listening:
        return self

    async def submit(self, request: Request) -> Completion:
        self.requests.append(request)
        raise StaleAttempt("only listening")


@dataclass(frozen=True)
class Batch:
    """Jobs that are ready to be read, and the requests that their reading makes."""

    jobs: Sequence[tuple[str, Route]]
    requests: Sequence[Request]


@dataclass(frozen=True, slots=True)
class Spent:
    """CPU seconds up to now: of the worker's own process, and of the servers beside it."""

    worker: float
    servers: float


class Worker:
    """The running worker. Use `running`."""

    def __init__(self, pid: int, servers: Sequence[psutil.Process]) -> None:
        from workers.services import services

        self._process = psutil.Process(pid)
        self._servers = servers
        self._use = services()
        self._next = 1

    def engine_settings(self) -> LocalSettings:
        """What the worker started its engine with."""
        from workers.engine_host import local_settings

        return local_settings(self._use.lane(""), self._use.settings)

    def prepare(self, count: int) -> Batch:
        """Put documents through the doors and the parser, up to the queue of the worker."""
        from workers.intake import submit
        from workers.pipeline import run

        held = Held()
        self._use.publisher = held  # type: ignore[assignment]  # what it sends must wait for the clock
        for number in range(self._next, self._next + count):
            given = submit(
                notice(number),
                name=f"{number}.pdf",
                tenant=TENANT,
                profile_name=PROFILE,
                source=Source.CLI,
                use=self._use,
            )
            run(Stage.PARSE, str(given.job_id), self._use)
        self._next += count
        del self._use.publisher
        return Batch(held.jobs, self._requests([job_id for job_id, _ in held.jobs]))

    def _requests(self, names: Sequence[str]) -> list[Request]:
        """What the worker will ask its engine: the worker's own code on an engine that only listens."""
        from workers.pipeline import infer

        listening = Listening()
        self._use.engine = EngineThread(listening.opened)
        self._use.engine.start()
        for job_id in names:
            claim = self._use.store.claim(job_id, Stage.INFER, worker="bench", lease_s=60)
            assert claim is not None, f"{job_id} does not wait for its reading"
            with suppress(StaleAttempt), self._use.leases.held(claim):
                infer(claim, self._use)
            self._use.store.give_back(claim, reason="only listened", delay_s=0, counts=False)
        self._use.engine.close()
        return listening.requests

    def read(self, batch: Batch) -> tuple[Measured, Spent]:
        """Publish all jobs and wait until the worker has finished them; times are the database's."""
        before, asked_at = self._spent(), self._now()
        for job_id, route in batch.jobs:
            self._use.send(job_id, Stage.INFER, route, hot=True)
        names = [job_id for job_id, _ in batch.jobs]
        finished_at, tokens = self._finished(names)
        after = self._spent()
        spent = Spent(after.worker - before.worker, after.servers - before.servers)
        return Measured((finished_at - asked_at).total_seconds(), tokens, spent.worker), spent

    def idle(self, seconds: float) -> float:
        """The share of a core that the worker takes while it has nothing to do."""
        before = self._spent().worker
        time.sleep(seconds)
        return (self._spent().worker - before) / seconds

    def _now(self) -> datetime:
        with self._use.database.connect() as connection:
            return connection.execute(select(func.clock_timestamp())).scalar_one()

    def _finished(self, names: list[str]) -> tuple[datetime, int]:
        """When the last was finished, and the tokens of all."""
        wanted = (attempts.c.job_id.in_(names), attempts.c.stage == "infer", attempts.c.outcome == "finished")
        asked = select(func.count(), func.max(attempts.c.ended_at), func.sum(attempts.c.output_tokens)).where(*wanted)
        until = time.monotonic() + _ROUND_WITHIN_S
        while time.monotonic() < until:
            with self._use.database.connect() as connection:
                count, last, tokens = connection.execute(asked).one()
            if count == len(names):
                return last, int(tokens)
            time.sleep(0.5)
        raise TimeoutError(f"{count} of {len(names)} jobs were read within {_ROUND_WITHIN_S:g} s; see the worker's log")

    def _spent(self) -> Spent:
        own = self._process.cpu_times()
        return Spent(own.user + own.system, sum(_tree_cpu_s(server) for server in self._servers))


def _tree_cpu_s(process: psutil.Process) -> float:
    """Of the process, its children, and those of its children that have ended."""
    total = 0.0
    for one in (process, *process.children(recursive=True)):
        try:
            times = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return float(total)


@contextmanager
def running(home: Path, model: Path) -> Iterator[Worker]:
    """Servers and a warm worker, ended afterwards."""
    with ExitStack() as parts:
        parts.callback(end_marked, str(home))
        valkey, postgres = EmbeddedValkey(home), EmbeddedPostgres(home)
        parts.callback(valkey.stop)
        parts.callback(postgres.stop)
        upgrade(postgres.url)
        environment = {
            "DOCMILL_HOME": str(home),
            "DOCMILL_BROKER_URL": valkey.url,
            "DOCMILL_DATABASE_URL": postgres.url,
            "DOCMILL_BLOB_URL": f"file://{home / 'blobs'}",
            "DOCMILL_MODEL": str(model),
            "DOCMILL_OCR": "false",
        }
        # docmill's settings are read once, when its worker modules are first used: from here on.
        os.environ.update(environment)
        supervisor = Supervisor(str(home), home / "logs")
        parts.callback(supervisor.stop)
        supervisor.start(Program("gpu", ("worker", "gpu"), grace_s=60, environment=environment))
        pid = supervisor.pids()["gpu"]
        _wait_until_ready(valkey.url, pid, home / "logs" / "gpu.log")
        yield Worker(pid, [_server_of(valkey.url), _postmaster(home)])


def _wait_until_ready(broker_url: str, pid: int, log: Path) -> None:
    from redis import Redis

    from workers.engine_report import reports

    until = time.monotonic() + _STARTS_WITHIN_S
    with Redis.from_url(broker_url) as redis:
        while not reports(redis):
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE or time.monotonic() > until:
                raise RuntimeError(f"the worker did not start:\n{log.read_text()[-4000:]}")
            time.sleep(0.5)


def _server_of(url: str) -> psutil.Process:
    """The process that listens on the port of a URL."""
    port = int(url.rsplit(":", 1)[1].split("/")[0])
    listening = (one for one in psutil.net_connections("tcp") if one.status == psutil.CONN_LISTEN)
    return psutil.Process(next(one.pid for one in listening if one.laddr.port == port and one.pid))


def _postmaster(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))
