"""The life of the engine in its worker: watched, told of on SIGUSR1, drained on SIGTERM, started afresh when it is due.

A worker never starts an engine a second time: it ends, in order when it can, and its supervisor starts both again.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import threading
import time
from collections import deque
from dataclasses import asdict
from types import FrameType
from typing import Any, Final

import psutil
from celery.signals import worker_ready, worker_shutting_down
from redis.exceptions import RedisError

from docmill.errors import DocmillError
from docmill.log import logger, say
from inference.engines.thread import EngineThread
from inference.lanes import Lane
from inference.recycle import Condition, reason_to_recycle
from inference.route import queues_of
from workers.engine_host import leave_with_engine
from workers.services import Services

log = logger("engine_life")

LOOK_EVERY_S: Final = 2.0
#: To find out what memory a process tree takes is dear, and no limit is passed in seconds.
CHECK_EVERY_S: Final = 30.0
#: Rates are over this long.
_WINDOW_S: Final = 60.0
_ANSWER_WITHIN_S: Final = 5.0
_GIB: Final = 1 << 30


class EngineLife:
    """One engine's worker, from ready to its end. `begin` once, before Celery takes the main thread."""

    def __init__(self, engine: EngineThread, lane: Lane, use: Services) -> None:
        self._engine, self._lane, self._use = engine, lane, use
        self._began = time.monotonic()
        self._preempted: deque[tuple[float, float]] = deque(maxlen=int(_WINDOW_S / CHECK_EVERY_S))
        self._ending = threading.Event()

    def begin(self) -> None:
        """Watch the engine, and answer the signals once Celery has set its own."""
        threading.Thread(target=self._watch, name="engine-life", daemon=True).start()
        worker_ready.connect(self._on_ready, weak=False)
        worker_shutting_down.connect(self._on_shutting_down, weak=False)

    # ------------------------------------------------------------ watching

    def _watch(self) -> None:
        check_at = time.monotonic() + CHECK_EVERY_S
        while not self._ending.wait(LOOK_EVERY_S):
            try:
                self.look()
                if time.monotonic() >= check_at:
                    check_at += CHECK_EVERY_S
                    self.check()
            except (DocmillError, TimeoutError) as error:
                say(log, "not_seen", level=logging.WARNING, why=error)

    def look(self) -> None:
        """End at once with an engine that is dead."""
        health = self._engine.health(_ANSWER_WITHIN_S)
        if health.dead:
            say(log, "dead", level=logging.ERROR, why=health.detail)
            self._ending.set()
            self._use.room.close()
            leave_with_engine()

    def check(self) -> None:
        """End in order with an engine that is due."""
        why = reason_to_recycle(self._lane.recycle, self.condition())
        if why is not None:
            say(log, "recycled", level=logging.WARNING, lane=self._lane.name, why=why)
            self._ending.set()
            os.kill(os.getpid(), signal.SIGTERM)

    def condition(self) -> Condition:
        """What the limits of the lane are held against."""
        now, metrics = time.monotonic(), self._metrics()
        idle = not metrics["running"] and not metrics["waiting"]
        preempted = metrics["preemptions"]
        since, before = self._preempted[0] if self._preempted else (now - _WINDOW_S, preempted)
        self._preempted.append((now, preempted))
        return Condition(
            age_s=now - self._began,
            preemptions_per_minute=60 * (preempted - before) / max(_WINDOW_S, now - since),
            idle_cache=metrics["kv_cache_usage"] if idle else None,
            memory_gib=_memory_gib(),
        )

    def _metrics(self) -> dict[str, float]:
        return self._engine.call(lambda engine: engine.metrics(), _ANSWER_WITHIN_S)

    # ------------------------------------------------------------ telling

    def _on_ready(self, **_: object) -> None:
        # Celery's own handler, set before this, would print stacks.
        signal.signal(signal.SIGUSR1, self._on_signal)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        # The main thread may hold any lock now: another one looks.
        threading.Thread(target=self._dump, name="engine-dump", daemon=True).start()

    def _dump(self) -> None:
        try:
            log.warning("action=dump %s", json.dumps(self.state(), ensure_ascii=False))
        except (DocmillError, TimeoutError) as error:
            say(log, "no_dump", level=logging.ERROR, why=error)

    def state(self) -> dict[str, Any]:
        """All that a person needs to see why a worker does what it does."""
        rate, seconds, p99 = self._use.watch.summary()
        return {
            "worker": self._use.worker,
            "lane": self._lane.name,
            "engine": asdict(self._engine.engine.info),
            "health": asdict(self._engine.health(_ANSWER_WITHIN_S)),
            "metrics": self._metrics(),
            "condition": asdict(self.condition()),
            "decoding": self._use.decoding.told(),
            "claims": [claim.job_id for claim in self._use.leases.claims()],
            "queues": self._queues(),
            "last_minute": {"requests_per_second": rate, "seconds_a_job": seconds, "hot_p99_s": p99},
        }

    def _queues(self) -> dict[str, int] | str:
        """Messages that wait in the broker for this lane."""
        names = queues_of(self._lane, self._use.lanes)
        try:
            with self._use.redis.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.llen(name)
                return dict(zip(names, pipe.execute(), strict=True))
        except RedisError as error:
            return f"the broker does not answer: {error}"

    # ------------------------------------------------------------ leaving

    def _on_shutting_down(self, **_: object) -> None:
        """Celery waits for what is read now; this bounds how long."""
        self._ending.set()
        limit = self._use.settings.drain_s
        say(log, "draining", jobs=len(self._use.decoding.told()), within_s=limit)
        timer = threading.Timer(limit, self._use.decoding.hand_back)
        timer.daemon = True
        timer.start()


def _memory_gib() -> float:
    """Of this process and its engine's."""
    own = psutil.Process()
    total = 0
    for process in (own, *own.children(recursive=True)):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total / _GIB
