"""Keeping claims alive while their work runs, and stopping work whose claim is lost: its job was cancelled or swept.

One thread a process renews all claims that the process holds, in one statement.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from docmill.log import logger, say
from storage.ports import Claim, Jobs

log = logger("lease")

#: A job that is cancelled decodes no longer than this, however long its lease is.
LOOK_EVERY_S: Final = 2.0


class Leases:
    """The claims that this process holds. `held` renews one for as long as its block runs."""

    def __init__(self, store: Jobs, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._claims: dict[Claim, list[Callable[[], object]]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def held(self, claim: Claim) -> Iterator[None]:
        """Renew the claim until the block ends."""
        with self._lock:
            self._claims[claim] = []
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_for_ever, name="leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._claims.pop(claim, None)

    @contextmanager
    def stopping(self, claim: Claim, stop: Callable[[], object]) -> Iterator[None]:
        """Call `stop` if the claim is lost while the block runs; at once if it has been lost already."""
        with self._lock:
            stops = self._claims.get(claim)
            if stops is not None:
                stops.append(stop)
        if stops is None:
            stop()
        try:
            yield
        finally:
            with self._lock:
                if stops is not None:
                    stops.remove(stop)

    def claims(self) -> tuple[Claim, ...]:
        """What is held now."""
        with self._lock:
            return tuple(self._claims)

    def _renew_for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(min(LOOK_EVERY_S, self._lease_s / 3)):
            claims = self.claims()
            try:
                ours = self._store.renew(claims, lease_s=self._lease_s) if claims else frozenset()
            except Exception:
                # The database is away longer than we are patient; the work goes on and its last write decides.
                say(log, "renew_failed", level=logging.WARNING, error=True, claims=len(claims))
            else:
                self._drop(set(claims) - ours)

    def _drop(self, lost: set[Claim]) -> None:
        for claim in lost:
            with self._lock:
                stops = self._claims.pop(claim, None)
            if stops is None:
                continue  # it was finished meanwhile
            say(log, "lease_lost", job_id=claim.job_id, attempt=claim.attempt, stopped=len(stops))
            for stop in tuple(stops):
                stop()
