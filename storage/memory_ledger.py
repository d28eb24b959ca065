"""The ledger of the store in memory: the same books, kept in a list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal

from docmill.types import Usage
from storage import bookkeeping
from storage.bookkeeping import Entry
from storage.ports import Claim, Waste


@dataclass
class MemoryLedger:
    """Entries in the order in which they were written. The store's lock is held by whoever calls."""

    entries: list[Entry] = field(default_factory=list)

    def reserve(self, claim: Claim, amount_usd: Decimal) -> None:
        if not self.book(claim.job_id, claim.attempt):
            self.entries.append(bookkeeping.reservation(claim, amount_usd))

    def settle(self, claim: Claim, usage: Usage, waste: Waste | None, *, overtaken: bool = False) -> None:
        present = self.book(claim.job_id, claim.attempt)
        self.entries += bookkeeping.settlement(present, claim, usage, waste, overtaken=overtaken)

    def close(self, job_id: str) -> None:
        for one in self._attempts(job_id):
            self.entries += bookkeeping.closing(one)

    def give_up(self, job_id: str, waste: Waste, *, over: bool) -> None:
        for one in self._attempts(job_id):
            self.entries += bookkeeping.closing(one, waste)
        if over:
            self.write_off(job_id, waste)

    def write_off(self, job_id: str, waste: Waste) -> None:
        self.entries += bookkeeping.write_off(self.book(job_id), waste)

    def book(self, job_id: str, attempt: int | None = None) -> list[Entry]:
        """The entries of a job, or of one attempt."""
        of_job = [entry for entry in self.entries if entry.job_id == job_id]
        return of_job if attempt is None else [entry for entry in of_job if entry.attempt == attempt]

    def _attempts(self, job_id: str) -> Iterator[list[Entry]]:
        for attempt in sorted({entry.attempt for entry in self.book(job_id)}):
            yield self.book(job_id, attempt)
