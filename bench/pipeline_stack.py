"""The parts that `bench.pipeline` runs: a Valkey, a PostgreSQL, one worker of each kind, and what each has burnt."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
from redis import Redis

from storage.migrate import upgrade
from workers.celery_app import app
from workers.local import EmbeddedPostgres, EmbeddedValkey
from workers.processes import PROGRAM_MARK, STACK_MARK, end_marked
from workers.services import Services
from workers.settings import Settings

#: Worker kind → the queue from which the bench's messages of its stage come.
QUEUES: Final = {"parse": "parse.hot", "gpu": "infer.hot.short", "validate": "validate"}
SLOTS: Final = 16
_WITHIN_S: Final = 180.0
_STAYS_EMPTY_S: Final = 0.3
_LANE: Final = f"""
- name: cpu
  engine: stub
  model: "0"
  precision: none
  context_tokens: 4096
  max_num_seqs: {SLOTS}
"""


@dataclass(frozen=True)
class Parts:
    """What runs, and the services with which the bench itself looks at it."""

    home: Path
    use: Services
    redis: Redis
    workers: Mapping[str, subprocess.Popen[bytes]]
    postgres: psutil.Process

    def cpu(self) -> dict[str, float]:
        """CPU seconds so far of each part, with those of its children."""
        seen = {kind: _tree_cpu(psutil.Process(process.pid)) for kind, process in self.workers.items()}
        told = self.redis.info("cpu")
        assert isinstance(told, dict), "a synchronous client answers at once"
        seen["valkey"] = float(told["used_cpu_user"]) + float(told["used_cpu_sys"])
        return {**seen, "postgres": _tree_cpu(self.postgres)}

    def meters(self) -> dict[str, dict[str, float]]:
        """What each worker's meters say, by worker kind; they are set to nought."""
        files = {kind: self.home / f"{kind}.{time.monotonic_ns()}.json" for kind in QUEUES}
        for kind, file in files.items():
            app.send_task("bench.dump", args=[str(file)], queue=QUEUES[kind], ignore_result=True)
        until(lambda: all(file.exists() for file in files.values()), "the meters")
        return {kind: json.loads(file.read_text()) for kind, file in files.items()}

    def drained(self) -> float:
        """Wait until no message is queued or in hand; when that was.

        Between a worker's pop and its note of what it has in hand a message is nowhere, so one look does not do.
        """
        empty_since: float | None = None

        def has_stayed_empty() -> bool:
            nonlocal empty_since
            empty_since = (empty_since or time.monotonic()) if self._is_empty() else None
            return empty_since is not None and time.monotonic() - empty_since > _STAYS_EMPTY_S

        until(has_stayed_empty, "the queues to be drained")
        assert empty_since is not None, "the wait ends with empty queues"
        return empty_since

    def _is_empty(self) -> bool:
        pipeline = self.redis.pipeline()
        for name in QUEUES.values():
            pipeline.llen(name)
        pipeline.hlen("unacked")
        return not any(pipeline.execute())


def until(condition: Callable[[], bool], what: str) -> None:
    """Poll until the condition holds."""
    end = time.monotonic() + _WITHIN_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {_WITHIN_S:g} s for {what}")
        time.sleep(0.01)


@contextmanager
def running(tokenizer: Path) -> Iterator[Parts]:
    """Start everything, wait until every worker answers, and end it all."""
    home = Path(tempfile.mkdtemp(prefix="docmill-bench-"))
    lanes = home / "lanes.yaml"
    lanes.write_text(_LANE)
    valkey, postgres = EmbeddedValkey(home), EmbeddedPostgres(home)
    upgrade(postgres.url)
    settings = Settings(
        home=home,
        broker_url=valkey.url,
        database_url=postgres.url,
        blob_url=f"file://{home / 'blobs'}",
        lanes=lanes,
        tokenizer=tokenizer,
        log_level="WARNING",
    )
    app.conf.broker_url = valkey.url
    workers = {kind: _start(kind, settings) for kind in QUEUES}
    try:
        use = Services(settings)
        parts = Parts(home, use, use.redis, workers, _postmaster(home))
        until(lambda: len(app.control.ping(timeout=1)) == len(QUEUES), "the workers to answer")
        parts.meters()
        yield parts
    finally:
        for process in workers.values():
            process.send_signal(signal.SIGTERM)
        for process in workers.values():
            process.wait(30)
        end_marked(str(home))
        valkey.stop()
        postgres.stop()
        shutil.rmtree(home)


def _start(kind: str, settings: Settings) -> subprocess.Popen[bytes]:
    given = ("home", "broker_url", "database_url", "blob_url", "lanes", "tokenizer", "log_level")
    variables = {f"DOCMILL_{name.upper()}": str(getattr(settings, name)) for name in given}
    marks = {STACK_MARK: str(settings.home), PROGRAM_MARK: kind, "SPT_NOENV": "1"}
    with (settings.home / f"{kind}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "bench.pipeline_worker", kind],
            env={**os.environ, **variables, **marks},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def _postmaster(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "postgres" / "postmaster.pid").read_text().split()[0]))


def _tree_cpu(root: psutil.Process) -> float:
    """With the children that have ended: they are on their parent's account."""
    times = [process.cpu_times() for process in (root, *root.children(recursive=True))]
    ended = root.cpu_times()
    return float(sum(one.user + one.system for one in times) + ended.children_user + ended.children_system)
