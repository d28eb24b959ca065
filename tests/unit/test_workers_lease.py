"""A claim is renewed for as long as its work runs, and no longer; work whose claim is lost is stopped."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from storage.ports import Claim, Stage
from workers.lease import Leases

CLAIM = Claim("job_1", 1, Stage.INFER, "doc_1", "a", "p", "1", "k", False, 0.0, 0, 60.0, 0, 0)
OTHER = Claim("job_2", 1, Stage.INFER, "doc_2", "a", "p", "1", "k", False, 0.0, 0, 60.0, 0, 0)


@dataclass
class Renewals:
    """As much of a store as leases use: it counts, forgets the claims that are `lost`, and fails when told to."""

    seen: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)
    lost: set[Claim] = field(default_factory=set)
    broken: bool = False

    def renew(self, claims: Collection[Claim], *, lease_s: float) -> frozenset[Claim]:
        self.seen += [claim.job_id for claim in claims]
        if len(self.seen) >= 3:
            self.enough.set()
        if self.broken:
            raise ConnectionError("the database is away")
        return frozenset(claims) - self.lost


def leases_of(store: Renewals) -> Leases:
    return Leases(store, lease_s=0.03)  # type: ignore[arg-type]  # a store that can only renew


def test_a_held_claim_is_renewed_until_its_block_ends() -> None:
    store = Renewals()
    with leases_of(store).held(CLAIM):
        assert store.enough.wait(5)
    store.enough.clear()
    count = len(store.seen)
    assert not store.enough.wait(0.1)
    assert len(store.seen) <= count + 1, "one renewal may have been under way"


def test_a_renewal_that_fails_does_not_stop_the_next_nor_the_work() -> None:
    store, stopped = Renewals(broken=True), threading.Event()
    leases = leases_of(store)
    with leases.held(CLAIM), leases.stopping(CLAIM, stopped.set):
        assert store.enough.wait(5)
    assert not stopped.is_set()


def test_work_whose_claim_is_lost_is_stopped_and_the_work_beside_it_goes_on() -> None:
    store, stopped, other = Renewals(lost={CLAIM}), threading.Event(), threading.Event()
    leases = leases_of(store)
    with leases.held(OTHER), leases.stopping(OTHER, other.set):
        with leases.held(CLAIM), leases.stopping(CLAIM, stopped.set):
            assert stopped.wait(5)
        store.enough.clear()
        store.seen.clear()
        assert store.enough.wait(5)
        assert set(store.seen) == {OTHER.job_id}, "a lost claim is not renewed again"
        assert not other.is_set()


def test_work_that_begins_after_its_claim_was_lost_is_stopped_at_once() -> None:
    store, stopped = Renewals(lost={CLAIM}), threading.Event()
    leases = leases_of(store)
    with leases.held(CLAIM):
        while leases.claims():
            assert not stopped.wait(0.01)
        with leases.stopping(CLAIM, stopped.set):
            assert stopped.is_set()


def test_work_that_has_ended_is_not_stopped() -> None:
    store, stopped = Renewals(), threading.Event()
    leases = leases_of(store)
    with leases.held(CLAIM):
        with leases.stopping(CLAIM, stopped.set):
            pass
        store.lost.add(CLAIM)
        while leases.claims():
            assert not stopped.wait(0.01)
    assert not stopped.is_set()
