"""A worker that is alive and no longer takes messages ends itself, so that whoever watches it starts it afresh.

A consumer can lose its broker without noticing, as after some reconnections. It counts what it fetches; a thread beside
it compares the count with what waits in its queues. The count also stands in Redis for those who look at the workers.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from celery.signals import task_received, worker_ready
from celery.worker import state
from redis import Redis
from redis.exceptions import RedisError

from docmill.log import logger, say

log = logger("fetching")

KEY: Final = "docmill:fetched:"
LIVES_S: Final = 30
LOOK_EVERY_S: Final = 2.0
#: Exit status of a worker that was told to end, as it no longer fetches, and did not (EX_OSERR of sysexits.h).
STALLED: Final = 71
#: What runs may finish before that.
GRACE_S: Final = 60.0


@dataclass
class Watchdog:
    """Says when a consumer stalls: for `limit_s` it has fetched nothing, had a free slot, and messages waited."""

    limit_s: float
    _fetched: int = -1
    _since: float = 0.0
    _looked: float = 0.0

    def stalls(self, *, fetched: int, has_room: bool, waiting: int, now: float) -> bool:
        """One look at the consumer. A process that was frozen itself begins to count anew."""
        frozen = now - self._looked > 3 * LOOK_EVERY_S
        if fetched != self._fetched or not has_room or not waiting or frozen:
            self._fetched, self._since = fetched, now
        self._looked = now
        return now - self._since > self.limit_s


class Fetched(msgspec.Struct, frozen=True):
    """What a worker tells of its consumer."""

    name: str
    worker: str
    queues: tuple[str, ...]
    fetched: int
    #: Seconds since the last one.
    last_s: float
    busy: int
    slots: int


@dataclass
class Consumer:
    """This worker's consumer, as it is watched."""

    name: str
    worker: str
    queues: tuple[str, ...]
    slots: int
    redis: Redis
    watchdog: Watchdog
    _fetched: int = 0
    _last: float = field(default_factory=time.monotonic)

    def watch(self) -> None:
        """Begin once the worker is ready."""
        task_received.connect(self._count, weak=False)
        worker_ready.connect(self._start, weak=False)

    def tell(self) -> Fetched:
        """What is known now, also to Redis. Raises RedisError."""
        busy = len(state.reserved_requests)
        last_s = time.monotonic() - self._last
        told = Fetched(self.name, self.worker, self.queues, self._fetched, last_s, busy, self.slots)
        self.redis.set(f"{KEY}{self.name}:{self.worker}", msgspec.json.encode(told), ex=LIVES_S)
        return told

    def _count(self, **_: object) -> None:
        self._fetched += 1
        self._last = time.monotonic()

    def _start(self, **_: object) -> None:
        threading.Thread(target=self._watch_for_ever, name="fetching", daemon=True).start()

    def _watch_for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(LOOK_EVERY_S):
            try:
                if self._stalls():
                    return self._end()
            except RedisError as error:
                # Nothing can be fetched from a broker that is away.
                say(log, "not_told", level=logging.WARNING, why=error)

    def _stalls(self) -> bool:
        told = self.tell()
        waiting = _depth(self.redis, self.queues)
        room = told.busy < told.slots
        return self.watchdog.stalls(fetched=told.fetched, has_room=room, waiting=waiting, now=time.monotonic())

    def _end(self) -> None:
        """A warm shutdown, which may hang as the consumer does."""
        say(log, "no_longer_fetches", level=logging.ERROR, worker=self.worker, queues=",".join(self.queues))
        os.kill(os.getpid(), signal.SIGTERM)
        timer = threading.Timer(GRACE_S, os._exit, args=[STALLED])
        timer.daemon = True
        timer.start()


def consumers(redis: Redis) -> list[Fetched]:
    """What every live worker last told of its consumer."""
    keys = list(redis.scan_iter(match=f"{KEY}*", count=1000))
    told = redis.mget(keys) if keys else []
    return sorted((msgspec.json.decode(one, type=Fetched) for one in told if one is not None), key=lambda one: one.name)


def _depth(redis: Redis, queues: Sequence[str]) -> int:
    pipeline = redis.pipeline(transaction=False)
    for queue in queues:
        pipeline.llen(queue)
    return sum(pipeline.execute())
