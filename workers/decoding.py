"""What this worker's engine reads now: stopped when its claim is lost, handed back when the worker must leave."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from docmill.errors import StaleAttempt
from docmill.log import logger, say
from inference.engine import Engine
from inference.engines.thread import EngineThread
from storage.ports import Claim
from workers.lease import Leases

T = TypeVar("T")

log = logger("decoding")


class HandedBack(Exception):
    """The worker is leaving: the job waits again, and this counts as no try of it."""


class Decoding:
    """The readings under way. Safe to use from many threads."""

    def __init__(self, leases: Leases) -> None:
        self._leases = leases
        self._under_way: dict[Claim, tuple[Future[Any], float]] = {}
        self._leaving = False
        self._lock = threading.Lock()

    def run(
        self, claim: Claim, engine: EngineThread, work: Callable[[Engine], Coroutine[Any, Any, T]], timeout_s: float
    ) -> T:
        """`work(engine)` for the claim's job. Raises StaleAttempt once the claim is lost: nothing decodes on for it."""
        with self._lock:
            if self._leaving:
                raise HandedBack(f"{claim.job_id}: the worker is leaving")
            future = engine.begin(lambda: work(engine.engine))
            self._under_way[claim] = (future, time.monotonic())
        try:
            with self._leases.stopping(claim, future.cancel):
                return engine.wait(future, timeout_s)
        except CancelledError as stopped:
            if self._leaving:
                raise HandedBack(f"{claim.job_id}: the worker left before it was read") from stopped
            raise StaleAttempt(f"{claim.job_id}: attempt {claim.attempt} was cancelled or lost; stopped") from stopped
        finally:
            with self._lock:
                self._under_way.pop(claim, None)

    def hand_back(self) -> int:
        """Stop all readings and begin no other; their number."""
        with self._lock:
            self._leaving = True
            futures = [future for future, _ in self._under_way.values()]
        for future in futures:
            future.cancel()
        say(log, "handed_back", jobs=len(futures))
        return len(futures)

    def told(self) -> list[dict[str, Any]]:
        """Each reading under way, for a person who looks."""
        with self._lock:
            under_way = dict(self._under_way)
        now = time.monotonic()
        return [
            {"job_id": claim.job_id, "attempt": claim.attempt, "tenant": claim.tenant, "seconds": round(now - since, 1)}
            | {"queue": claim.route.queue if claim.route is not None else None}
            for claim, (_, since) in under_way.items()
        ]
