"""A claim is renewed for as long as its work runs, and no longer."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from storage.ports import Claim, Stage
from workers.lease import Leases

CLAIM = Claim("job_1", 1, Stage.INFER, "doc_1", "a", "p", "1", "k", False, 0.0, 0, 60.0, 0, 0)


@dataclass
class Renewals:
    """As much of a store as leases use: it counts, and fails when told to."""

    seen: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)
    broken: bool = False

    def renew(self, claim: Claim, *, lease_s: float) -> bool:
        self.seen.append(claim.job_id)
        if len(self.seen) >= 3:
            self.enough.set()
        if self.broken:
            raise ConnectionError("the database is away")
        return True


def test_a_held_claim_is_renewed_until_its_block_ends() -> None:
    store = Renewals()
    leases = Leases(store, lease_s=0.03)  # type: ignore[arg-type]  # a store that can only renew
    with leases.held(CLAIM):
        assert store.enough.wait(5)
    store.enough.clear()
    count = len(store.seen)
    assert not store.enough.wait(0.1)
    assert len(store.seen) <= count + 1, "one renewal may have been under way"


def test_a_renewal_that_fails_does_not_stop_the_next() -> None:
    store = Renewals(broken=True)
    leases = Leases(store, lease_s=0.03)  # type: ignore[arg-type]  # a store that can only renew
    with leases.held(CLAIM):
        assert store.enough.wait(5)
