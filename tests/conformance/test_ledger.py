"""The ledger of every store of jobs: what is held, what was used, what was wasted, and that it all adds up."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from docmill.errors import StaleAttempt
from docmill.types import Outcome, Status, Usage
from storage import ledger
from storage.bookkeeping import SPENDING, Entry, held, spent
from storage.jobs import JobStore
from storage.memory import MemoryJobStore
from storage.ports import Claim, Jobs, Stage, Waste
from tests.jobs import accepted, claimed, extraction, finding, route, through_all, through_parse, verdict

#: A lease that ends while a test waits; PostgreSQL's clock cannot be moved.
SHORT_S = 0.2
HELD, USED = Decimal("0.0005"), Decimal("0.000123456789")
USAGE = Usage(prompt_tokens=100, cached_tokens=40, output_tokens=10, cost_usd=USED, gpu_seconds=Decimal("0.25"))


@dataclass(frozen=True)
class Books:
    """A store, a way to let time pass, and its entries for a job."""

    store: Jobs
    wait: Callable[[float], None]
    of: Callable[[str], list[Entry]]

    def lines(self, job_id: str) -> list[tuple[str, Decimal, str | None]]:
        return [(str(entry.kind), entry.amount_usd, entry.waste) for entry in self.of(job_id)]

    def wasted(self, job_id: str) -> dict[str | None, Decimal]:
        """What was used by what it was wasted for; nothing where it comes to nothing."""
        sums: dict[str | None, Decimal] = {}
        for entry in self.of(job_id):
            if entry.kind in SPENDING:
                sums[entry.waste] = sums.get(entry.waste, Decimal(0)) + entry.amount_usd
        return {waste: amount for waste, amount in sums.items() if amount}


@pytest.fixture(params=["memory", "postgresql"])
def books(request: pytest.FixtureRequest) -> Books:
    return in_memory() if request.param == "memory" else on_postgresql(request.getfixturevalue("engine"))


def in_memory() -> Books:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    store = MemoryJobStore(clock=lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += timedelta(seconds=seconds)

    return Books(store, wait, store.ledger.book)


def on_postgresql(engine: Engine) -> Books:
    def of(job_id: str) -> list[Entry]:
        with engine.connect() as connection:
            assert ledger.check(connection) == []
            return ledger.book(connection, job_id)

    return Books(JobStore(engine), time.sleep, of)


def reading(books: Books, *, lease_s: float = 60.0, name: bytes = b"one") -> Claim:
    """A job whose reading has begun, with an amount reserved for it."""
    job_id = accepted(books.store, name)
    if books.store.record(job_id).tokens is None:
        through_parse(books.store, job_id)
    claim = claimed(books.store, job_id, Stage.INFER, lease_s=lease_s)
    books.store.reserve(claim, HELD)
    return claim


def lost(books: Books, *, max_lost: int = 3) -> Claim:
    """A reading whose worker has died, with nothing beside it."""
    claim = reading(books, lease_s=SHORT_S)
    books.store.alone(claim)
    books.wait(SHORT_S * 1.5)
    books.store.sweep(republish_after_s=3600, max_lost=max_lost)
    return claim


def test_what_an_attempt_may_cost_is_held_while_it_runs(books: Books) -> None:
    claim = reading(books)
    assert books.lines(claim.job_id) == [("reserve", HELD, None)]


def test_the_second_reservation_of_an_attempt_changes_nothing(books: Books) -> None:
    claim = reading(books)
    books.store.reserve(claim, HELD * 2)
    assert books.lines(claim.job_id) == [("reserve", HELD, None)]


def test_nothing_is_held_for_a_claim_that_was_lost(books: Books) -> None:
    claim = reading(books)
    books.store.cancel(claim.job_id, tenant="acme")
    with pytest.raises(StaleAttempt):
        books.store.reserve(replace(claim, attempt=claim.attempt + 1), HELD)


def test_a_finished_reading_is_settled_and_what_was_held_for_it_given_back(books: Books) -> None:
    claim = reading(books)
    books.store.finish_infer(claim, replace(extraction(), usage=USAGE))
    (_, settled, _) = books.of(claim.job_id)
    assert books.lines(claim.job_id) == [("reserve", HELD, None), ("settle", USED, None), ("refund", -HELD, None)]
    counted = (settled.prompt_tokens, settled.cached_tokens, settled.output_tokens, settled.gpu_seconds)
    assert counted == (100, 40, 10, Decimal("0.25"))
    assert (settled.tenant, settled.profile, settled.length_class, settled.lane) == (
        *("acme", "risk-report", "short", "cpu"),
    )


def test_an_attempt_that_is_given_back_before_it_used_the_engine_costs_nothing(books: Books) -> None:
    claim = reading(books)
    books.store.give_back(claim, reason="the engine refused", delay_s=0, counts=True)
    assert books.lines(claim.job_id) == [("reserve", HELD, None), ("refund", -HELD, None)]


@pytest.mark.parametrize("fails", [True, False])
def test_an_attempt_that_used_the_engine_for_nothing_is_charged(books: Books, fails: bool) -> None:
    claim = reading(books)
    books.store.settle(claim, USAGE, waste=Waste.UNUSABLE)
    if fails:
        books.store.fail(claim, code="invalid_output", reason="not JSON")
    else:
        books.store.give_back(claim, reason="not JSON", delay_s=0, counts=True)
    assert books.wasted(claim.job_id) == {"unusable": USED}
    assert (spent(books.of(claim.job_id)), held(books.of(claim.job_id))) == (USED, 0)


def test_the_second_report_of_an_attempt_changes_nothing(books: Books) -> None:
    claim = reading(books)
    for _ in range(2):
        books.store.settle(claim, USAGE, waste=Waste.FAILED)
    assert spent(books.of(claim.job_id)) == USED


def test_a_lost_attempt_is_charged_what_was_held_for_it(books: Books) -> None:
    claim = lost(books)
    assert books.wasted(claim.job_id) == {"lost": HELD}
    assert [entry.estimated for entry in books.of(claim.job_id)] == [False, True, False]


def test_a_lost_attempt_that_reports_after_all_is_charged_what_it_used(books: Books) -> None:
    claim = lost(books)
    for _ in range(2):
        books.store.settle(claim, USAGE, waste=Waste.LOST)
    assert books.wasted(claim.job_id) == {"lost": USED}


def test_work_that_was_done_twice_is_a_duplicate(books: Books) -> None:
    late = lost(books)
    again = claimed(books.store, late.job_id, Stage.INFER)
    books.store.reserve(again, HELD)
    books.store.finish_infer(again, replace(extraction(), usage=USAGE))
    with pytest.raises(StaleAttempt):
        books.store.finish_infer(late, extraction())
    books.store.settle(late, replace(USAGE, cost_usd=USED * 2), waste=Waste.LOST)
    assert books.wasted(late.job_id) == {None: USED, "duplicate": USED * 2}


def test_a_lost_attempt_that_had_used_nothing_costs_nothing(books: Books) -> None:
    job_id = accepted(books.store, b"one")
    through_parse(books.store, job_id)
    claimed(books.store, job_id, Stage.INFER, lease_s=SHORT_S)
    books.wait(SHORT_S * 1.5)
    books.store.sweep(republish_after_s=3600, max_lost=3)
    assert books.of(job_id) == []


def test_a_cancelled_reading_is_charged_by_estimate_until_its_worker_tells_what_it_used(books: Books) -> None:
    claim = reading(books)
    books.store.cancel(claim.job_id, tenant="acme")
    assert books.wasted(claim.job_id) == {"cancelled": HELD}
    books.store.settle(claim, USAGE, waste=Waste.LOST)
    assert books.wasted(claim.job_id) == {"cancelled": USED}


def test_a_job_that_is_cancelled_after_its_reading_has_wasted_it(books: Books) -> None:
    claim = reading(books)
    books.store.finish_infer(claim, replace(extraction(), usage=USAGE))
    books.store.cancel(claim.job_id, tenant="acme")
    assert books.wasted(claim.job_id) == {"cancelled": USED}


def test_a_job_that_is_given_up_as_poison_has_wasted_all_that_it_used(books: Books) -> None:
    claim = lost(books, max_lost=1)
    assert books.store.record(claim.job_id).status == Status.FAILED
    assert books.wasted(claim.job_id) == {"lost": HELD}


def test_a_reading_that_is_rejected_and_repeated_is_wasted_and_the_second_is_not(books: Books) -> None:
    claim = reading(books)
    first = replace(extraction(), usage=USAGE)
    books.store.finish_infer(claim, first)
    check = claimed(books.store, claim.job_id, Stage.VALIDATE)
    books.store.finish_validate(check, verdict(Outcome.REJECT, finding("r", Outcome.REJECT)), first, retry=route())
    again = reading(books)
    second = replace(extraction(), usage=replace(USAGE, cost_usd=USED * 3))
    books.store.finish_infer(again, second)
    check = claimed(books.store, claim.job_id, Stage.VALIDATE)
    books.store.finish_validate(check, verdict(Outcome.PASS), second, retry=None)
    assert books.wasted(claim.job_id) == {"rejected": USED, None: USED * 3}
    assert [entry.retries for entry in books.of(claim.job_id) if entry.kind == "settle"] == [0, 1]


def test_a_result_that_the_rules_refuse_for_good_has_wasted_its_reading(books: Books) -> None:
    claim = reading(books)
    read = replace(extraction(), usage=USAGE)
    books.store.finish_infer(claim, read)
    check = claimed(books.store, claim.job_id, Stage.VALIDATE)
    refused = verdict(Outcome.REJECT, finding("r", Outcome.REJECT))
    books.store.finish_validate(check, refused, read, retry=None, ends=Status.FAILED)
    assert books.wasted(claim.job_id) == {"rejected": USED}


def test_a_reading_whose_result_waits_for_a_person_is_not_wasted(books: Books) -> None:
    job_id = accepted(books.store, b"one")
    through_all(books.store, job_id, Outcome.REVIEW)
    assert list(books.wasted(job_id)) == [None]
