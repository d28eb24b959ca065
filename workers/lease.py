"""Keeping a claim alive while its work runs: one thread a process renews all claims that the process holds."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from docmill.log import logger, say
from storage.ports import Claim, Jobs

log = logger("lease")


class Leases:
    """The claims that this process holds. `held` renews one for as long as its block runs."""

    def __init__(self, store: Jobs, lease_s: float) -> None:
        self._store = store
        self._lease_s = lease_s
        self._claims: set[Claim] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    @contextmanager
    def held(self, claim: Claim) -> Iterator[None]:
        """Renew the claim every third of its lease until the block ends."""
        with self._lock:
            self._claims.add(claim)
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_for_ever, name="leases", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._claims.discard(claim)

    def _renew_for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._lease_s / 3):
            with self._lock:
                claims = tuple(self._claims)
            for claim in claims:
                self._renew(claim)

    def _renew(self, claim: Claim) -> None:
        try:
            if not self._store.renew(claim, lease_s=self._lease_s):
                say(log, "lease_lost", job_id=claim.job_id, attempt=claim.attempt)
        except Exception:
            # The database is away longer than we are patient; the work goes on and its last write decides.
            say(log, "renew_failed", level=logging.WARNING, error=True, job_id=claim.job_id)
