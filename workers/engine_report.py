"""What a GPU worker tells of its engine, each second, in a key of Redis that ends by itself when the worker does."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec
from redis import Redis
from redis.exceptions import RedisError

from docmill.errors import DocmillError
from docmill.log import logger, say
from docmill.types import Heat, Usage
from inference.engines.thread import EngineThread

log = logger("engine_report")

KEY = "docmill:engine:"
EVERY_S = 1.0
#: A worker that has not told for this long is not counted.
LIVES_S = 10
#: Rates and percentiles are of this last while.
WINDOW_S = 60.0
#: Of fewer requests a 99th percentile is their slowest, which says nothing of the rest.
ENOUGH = 100


def hot_reading(seconds: Sequence[float]) -> float:
    """The 99th percentile; of few the median, which a single slow one does not move; 0 where nothing was hot.

    So a quiet night takes no step of the ladder and takes steps back.
    """
    if not seconds:
        return 0.0
    share = 0.99 if len(seconds) >= ENOUGH else 0.5
    return sorted(seconds)[int(share * len(seconds))]


@dataclass(frozen=True, slots=True)
class Report:
    """One engine: its load, and what its worker measured over the last minute."""

    lane: str
    worker: str
    running: int = 0
    waiting: int = 0
    kv_cache_usage: float = 0.0
    requests_per_second: float = 0.0
    seconds_a_job: float = 0.0
    hot_p99_s: float = 0.0
    #: By profile, since the worker began: tokens of prompts, and those of them that the prefix cache held.
    prompts: dict[str, tuple[int, int]] = field(default_factory=dict)


class Watch:
    """Counts what a worker has read lately. Safe to use from many threads."""

    def __init__(self, window_s: float = WINDOW_S) -> None:
        self._window_s = window_s
        self._done: deque[tuple[float, Heat | None, float, float]] = deque()
        self._prompts: dict[str, tuple[int, int]] = {}
        self._lock = threading.Lock()

    def saw(self, heat: Heat | None, *, took_s: float, since_needed_s: float, now: float | None = None) -> None:
        """A job was read: how long it held its slot, and how long after it was needed it was there."""
        with self._lock:
            self._done.append((time.monotonic() if now is None else now, heat, took_s, since_needed_s))

    def prompted(self, profile: str, usage: Usage) -> None:
        """A job of the profile was read with prompts of this length, of which the prefix cache held so much."""
        with self._lock:
            tokens, cached = self._prompts.get(profile, (0, 0))
            self._prompts[profile] = tokens + usage.prompt_tokens, cached + usage.cached_tokens

    def prompts(self) -> dict[str, tuple[int, int]]:
        """By profile the tokens of all prompts so far, and those that the prefix cache held."""
        with self._lock:
            return dict(self._prompts)

    def summary(self, now: float | None = None) -> tuple[float, float, float]:
        """Requests a second, seconds a job, and how long hot jobs took (see `hot_reading`)."""
        present = time.monotonic() if now is None else now
        with self._lock:
            while self._done and self._done[0][0] < present - self._window_s:
                self._done.popleft()
            done = list(self._done)
        mean = sum(took for _, _, took, _ in done) / len(done) if done else 0.0
        hot = hot_reading([waited for _, heat, _, waited in done if heat is Heat.HOT])
        return len(done) / self._window_s, mean, hot


class Reporter:
    """A thread of the GPU worker that tells until the process ends."""

    def __init__(self, engine: EngineThread, watch: Watch, redis: Redis, *, lane: str, worker: str) -> None:
        self._engine, self._watch, self._redis = engine, watch, redis
        self._lane, self._worker = lane, worker

    def start(self) -> None:
        threading.Thread(target=self._tell_for_ever, name="engine-report", daemon=True).start()

    def _tell_for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(EVERY_S):
            try:
                self.tell()
            except (RedisError, DocmillError, TimeoutError) as error:
                say(log, "not_told", level=logging.WARNING, why=error)

    def tell(self) -> Report:
        """One report."""
        gauges = self._engine.call(lambda engine: engine.metrics(), timeout_s=5.0)
        rate, seconds, p99 = self._watch.summary()
        report = Report(
            lane=self._lane,
            worker=self._worker,
            running=int(gauges.get("running", 0)),
            waiting=int(gauges.get("waiting", 0)),
            kv_cache_usage=float(gauges.get("kv_cache_usage", 0.0)),
            requests_per_second=rate,
            seconds_a_job=seconds,
            hot_p99_s=p99,
            prompts=self._watch.prompts(),
        )
        self._redis.set(f"{KEY}{self._lane}:{self._worker}", msgspec.json.encode(report), ex=LIVES_S)
        return report


def reports(redis: Redis) -> list[Report]:
    """What every live engine last told."""
    keys = list(redis.scan_iter(match=f"{KEY}*", count=1000))
    told = redis.mget(keys) if keys else []
    return [msgspec.json.decode(one, type=Report) for one in told if one is not None]
