"""What every store of jobs does: the one on PostgreSQL, and the one in memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, func, select

from docmill.errors import NotFound, StaleAttempt
from docmill.likeness import LIKE_NOTHING, Likeness
from docmill.types import Heat, Outcome, Source, Status
from storage import ledger
from storage.bookkeeping import Entry, spent
from storage.jobs import JobStore
from storage.memory import MemoryJobStore
from storage.ports import Claim, Jobs, Stage
from storage.schema import documents, events, results
from tests.jobs import (
    accept,
    accepted,
    claimed,
    document_of,
    extraction,
    finding,
    order_of,
    prepared_of,
    route,
    submission_of,
    through_all,
    through_infer,
    through_parse,
    value,
    verdict,
)

#: A lease that ends while a test waits; PostgreSQL's clock cannot be moved.
SHORT_S = 0.2
UNLINKED = dict.fromkeys(("near_duplicate_of", "same_template_as", "similarity", "differences"))


@dataclass(frozen=True)
class Backend:
    """A store, a way to let time pass, and looks at what no port shows."""

    store: Jobs
    wait: Callable[[float], None]
    costs: Callable[[str], list[Decimal]]
    link: Callable[[str], dict[str, Any]]


class Clock:
    """A clock that goes forward when told to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture(params=["memory", "postgresql"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "memory":
        return in_memory()
    return on_postgresql(request.getfixturevalue("engine"))


def in_memory() -> Backend:
    clock = Clock()
    store = MemoryJobStore(clock=lambda: clock.now)

    def costs(job_id: str) -> list[Decimal]:
        return by_attempt(store.ledger.book(job_id))

    def link(document_id: str) -> dict[str, Any]:
        return {**UNLINKED, **store.documents[document_id].link}

    return Backend(store, clock.wait, costs, link)


def on_postgresql(engine: Engine) -> Backend:
    def costs(job_id: str) -> list[Decimal]:
        with engine.connect() as connection:
            return by_attempt(ledger.book(connection, job_id))

    def link(document_id: str) -> dict[str, Any]:
        with engine.connect() as connection:
            columns = [documents.c[name] for name in UNLINKED]
            return dict(
                connection.execute(select(*columns).where(documents.c.document_id == document_id)).one()._mapping
            )

    return Backend(JobStore(engine), time.sleep, costs, link)


def by_attempt(book: Sequence[Entry]) -> list[Decimal]:
    attempts = sorted({entry.attempt for entry in book})
    return [spent(entry for entry in book if entry.attempt == attempt) for attempt in attempts]


@pytest.fixture
def store(backend: Backend) -> Jobs:
    return backend.store


def lose(backend: Backend, job_id: str, stage: Stage) -> Claim:
    """Claim the job with a short lease, and let a sweep find it ended."""
    claim = claimed(backend.store, job_id, stage, lease_s=SHORT_S)
    backend.wait(SHORT_S * 1.5)
    backend.store.sweep(republish_after_s=3600, max_lost=3)
    return claim


def waiting_ids(store: Jobs, limit: int = 100) -> list[str]:
    return [job.job_id for job in store.waiting(limit=limit)]


# ---------------------------------------------------------------- intake


def test_an_accepted_file_is_a_job_that_waits_for_a_parser(store: Jobs) -> None:
    receipt = accept(store, b"one")
    assert (receipt.outcome, receipt.code, receipt.reason) == ("accepted", None, None)
    (job,) = store.waiting(limit=10)
    assert (job.job_id, job.stage, job.route) == (receipt.job_id, Stage.PARSE, None)
    assert store.record(job.job_id).status == Status.RECEIVED


def test_the_same_bytes_through_all_doors_are_one_document_and_one_job(store: Jobs) -> None:
    receipts = [accept(store, b"same", name=f"{door}.pdf", source=door) for door in Source]
    assert [receipt.outcome for receipt in receipts] == ["accepted", *["duplicate"] * (len(Source) - 1)]
    assert len({receipt.document_id for receipt in receipts}) == 1
    assert len({receipt.job_id for receipt in receipts}) == 1
    assert len({receipt.submission_id for receipt in receipts}) == len(Source)
    assert f"{next(iter(Source))}.pdf" in (receipts[1].reason or "")
    assert store.counts() == {Status.RECEIVED: 1}


def test_the_same_file_at_the_same_door_again_has_the_same_receipt(store: Jobs) -> None:
    assert accept(store, b"event comes twice") == accept(store, b"event comes twice")


def test_the_same_bytes_of_two_tenants_are_two_documents(store: Jobs) -> None:
    mine, theirs = accept(store, b"same", tenant="mine"), accept(store, b"same", tenant="theirs")
    assert mine.outcome == theirs.outcome == "accepted"
    assert mine.document_id != theirs.document_id


def test_another_profile_and_another_version_of_one_are_jobs_of_their_own(store: Jobs) -> None:
    document = document_of(b"one")
    orders = [order_of(document), order_of(document, profile="screening"), order_of(document, version="2")]
    for number, order in enumerate(orders):
        submission = submission_of(b"one", name=f"{number}.pdf", profile=order.profile)
        assert store.accept(document, blob_key="b", submission=submission, order=order).outcome == "accepted"
    assert store.counts() == {Status.RECEIVED: 3}


def test_a_duplicate_gets_the_job_that_stands_whatever_id_it_brought(store: Jobs) -> None:
    first = accepted(store, b"one")
    document = document_of(b"one")
    other = replace(order_of(document), job_id="job_of_another_scheme")
    again = store.accept(document, blob_key="b", submission=submission_of(b"one", name="b.pdf"), order=other)
    assert (again.outcome, again.job_id) == ("duplicate", first)


def test_a_refused_file_is_a_record_without_a_job(store: Jobs) -> None:
    receipt = store.refuse(submission_of(b"zip"), code="not_a_pdf", reason="it is a ZIP archive", sha256="00")
    assert (receipt.outcome, receipt.job_id, receipt.code) == ("refused", None, "not_a_pdf")
    assert receipt.reason == "it is a ZIP archive"
    assert store.counts() == {}


def test_a_file_refused_twice_is_one_record_with_the_later_reason(store: Jobs) -> None:
    first = store.refuse(submission_of(b"big"), code="too_large", reason="over 1 MB", sha256=None)
    again = store.refuse(submission_of(b"big"), code="too_large", reason="over 2 MB", sha256=None)
    assert (again.submission_id, again.reason) == (first.submission_id, "over 2 MB")


def test_a_refused_file_may_be_accepted_later(store: Jobs) -> None:
    refused = store.refuse(submission_of(b"big"), code="too_large", reason="over the limit", sha256=None)
    receipt = accept(store, b"big")
    assert (receipt.submission_id, receipt.outcome, receipt.reason) == (refused.submission_id, "accepted", None)


def test_an_accepted_file_is_not_refused_afterwards(store: Jobs) -> None:
    first = accept(store, b"one")
    assert store.refuse(submission_of(b"one"), code="too_large", reason="limit lowered", sha256=None) == first


def test_somebody_who_waits_makes_a_cold_job_hot(store: Jobs) -> None:
    accept(store, b"cold", window_s=86_400)
    accept(store, b"cold", name="now.pdf", source=Source.API, window_s=0)
    (job,) = store.waiting(limit=10)
    assert job.window_s == 0
    assert claimed(store, job.job_id, Stage.PARSE).remaining_s < 61


def test_a_duplicate_with_a_long_window_does_not_slow_a_hot_job_down(store: Jobs) -> None:
    job_id = accepted(store, b"hot", window_s=0)
    accept(store, b"hot", name="later.pdf", window_s=86_400)
    assert claimed(store, job_id, Stage.PARSE).window_s == 0


# ---------------------------------------------------------------- claims


def test_a_claim_carries_what_the_stage_needs(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one", vip=True, window_s=600)
    backend.wait(0.1)
    claim = claimed(backend.store, job_id, Stage.PARSE)
    assert (claim.attempt, claim.tenant, claim.profile, claim.profile_version) == (1, "acme", "risk-report", "1")
    assert (claim.vip, claim.window_s, claim.retries, claim.rejections, claim.route) == (True, 600, 0, 0, None)
    assert claim.blob_key.startswith("blob-")
    assert 0.1 <= claim.age_s < 60
    assert 540 < claim.remaining_s <= 599.9


def test_a_second_delivery_claims_nothing(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    claimed(store, job_id, Stage.PARSE)
    assert store.claim(job_id, Stage.PARSE, worker="second", lease_s=60) is None


def test_a_late_delivery_after_the_stage_claims_nothing(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    through_parse(store, job_id)
    assert store.claim(job_id, Stage.PARSE, worker="late", lease_s=60) is None


def test_a_job_is_not_claimed_for_a_stage_that_it_does_not_wait_for(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    assert store.claim(job_id, Stage.INFER, worker="w", lease_s=60) is None
    assert store.claim(job_id, Stage.VALIDATE, worker="w", lease_s=60) is None


def test_a_message_about_an_unknown_job_claims_nothing(store: Jobs) -> None:
    assert store.claim("job_of_another_database", Stage.PARSE, worker="w", lease_s=60) is None


def test_a_job_goes_through_its_stages(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    seen = [store.record(job_id).status]
    through_parse(store, job_id, to=route(Heat.HOT))
    seen.append(store.record(job_id).status)
    claim = claimed(store, job_id, Stage.INFER)
    seen.append(store.record(job_id).status)
    store.finish_infer(claim, extraction({"total": "5.2"}))
    seen.append(store.record(job_id).status)
    claim = claimed(store, job_id, Stage.VALIDATE)
    assert store.extraction(claim) == extraction({"total": "5.2"})
    flagged = verdict(Outcome.FLAG, finding("sums", Outcome.FLAG), fields=(value("/total", "5.2"),))
    seen.append(store.finish_validate(claim, flagged, extraction({"total": "5.2"}), retry=None))
    assert seen == ["received", "queued", "running", "validating", "done"]
    record = store.record(job_id)
    assert (record.result, record.findings) == ({"total": "5.2"}, flagged.findings)
    assert (record.pages, record.tables, record.tokens, record.heat) == (1, 1, 300, Heat.HOT)
    assert record.reason == "flag: sums: it does not add up"
    assert record.finished_at is not None


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Outcome.PASS, Status.DONE),
        (Outcome.FLAG, Status.DONE),
        (Outcome.REVIEW, Status.NEEDS_REVIEW),
        (Outcome.REJECT, Status.NEEDS_REVIEW),
    ],
)
def test_the_verdict_decides_how_a_job_ends(store: Jobs, outcome: Outcome, status: Status) -> None:
    job_id = accepted(store, b"one")
    through_all(store, job_id, outcome)
    assert store.record(job_id).status == status


@pytest.mark.parametrize("ends", [Status.DONE, Status.NEEDS_REVIEW, Status.FAILED])
def test_a_policy_may_end_a_job_otherwise_than_its_verdict_would(store: Jobs, ends: Status) -> None:
    job_id = accepted(store, b"one")
    read = through_infer(store, job_id)
    judged = verdict(Outcome.REJECT, finding("made_up", Outcome.REJECT))
    store.finish_validate(claimed(store, job_id, Stage.VALIDATE), judged, read, retry=None, ends=ends)
    record = store.record(job_id)
    assert record.status == ends
    assert [found.rule for found in record.findings] == ["made_up"]
    assert record.result == (None if ends == Status.FAILED else read.result)


def test_what_is_over_is_claimed_for_nothing(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    through_all(store, job_id)
    assert [store.claim(job_id, stage, worker="w", lease_s=60) for stage in Stage] == [None] * 3


# ---------------------------------------------------------------- fencing

Write = Callable[[Jobs, Claim], object]
WRITES: dict[str, Write] = {
    "give_back": lambda store, claim: store.give_back(claim, reason="late", delay_s=0, counts=True),
    "fail": lambda store, claim: store.fail(claim, code="late", reason="late"),
}
FINISH: dict[Stage, Write] = {
    Stage.PARSE: lambda store, claim: store.finish_parse(
        claim, replace(prepared_of(claim.document_id), tokens=999_999), route(), likeness=like(bands=(7,))
    ),
    Stage.INFER: lambda store, claim: store.finish_infer(claim, extraction({"late": "1"}, cost=Decimal(9))),
    Stage.VALIDATE: lambda store, claim: store.finish_validate(
        claim, verdict(Outcome.REJECT, finding("late", Outcome.REJECT)), extraction({"late": "1"}), retry=None
    ),
}


def brought_to(store: Jobs, stage: Stage) -> str:
    job_id = accepted(store, b"one")
    if stage == Stage.INFER:
        through_parse(store, job_id)
    if stage == Stage.VALIDATE:
        through_infer(store, job_id)
    return job_id


@pytest.mark.parametrize("write", ["finish", "give_back", "fail"])
@pytest.mark.parametrize("stage", Stage)
def test_a_late_write_of_a_lost_attempt_raises_and_changes_nothing(backend: Backend, stage: Stage, write: str) -> None:
    store = backend.store
    job_id = brought_to(store, stage)
    lost = lose(backend, job_id, stage)
    present = claimed(store, job_id, stage)
    before, costs = store.record(job_id), backend.costs(job_id)
    with pytest.raises(StaleAttempt, match=f"attempt {lost.attempt} of {job_id}"):
        WRITES.get(write, FINISH[stage])(store, lost)
    assert (store.record(job_id), backend.costs(job_id)) == (before, costs)
    assert store.renew([present], lease_s=60), "the present claim still holds"


@pytest.mark.parametrize("stage", Stage)
def test_a_write_between_sweep_and_next_claim_raises_too(backend: Backend, stage: Stage) -> None:
    job_id = brought_to(backend.store, stage)
    lost = lose(backend, job_id, stage)
    before = backend.store.record(job_id)
    with pytest.raises(StaleAttempt):
        FINISH[stage](backend.store, lost)
    assert backend.store.record(job_id) == before


def test_a_claim_finishes_once(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    claim = claimed(store, job_id, Stage.PARSE)
    FINISH[Stage.PARSE](store, claim)
    with pytest.raises(StaleAttempt):
        FINISH[Stage.PARSE](store, claim)


def test_an_ended_lease_that_no_sweep_has_seen_still_holds(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    claim = claimed(backend.store, job_id, Stage.PARSE, lease_s=SHORT_S)
    backend.wait(SHORT_S * 1.5)
    FINISH[Stage.PARSE](backend.store, claim)
    assert backend.store.record(job_id).status == Status.QUEUED


def test_a_lost_claim_cannot_be_renewed(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    lost = lose(backend, job_id, Stage.PARSE)
    assert not backend.store.renew([lost], lease_s=60)
    assert backend.store.claim(job_id, Stage.PARSE, worker="next", lease_s=60) is not None
    assert not backend.store.renew([lost], lease_s=60)


def test_of_several_claims_those_that_still_hold_are_renewed_and_told(backend: Backend) -> None:
    store = backend.store
    jobs = [accepted(store, data) for data in (b"lost", b"cancelled", b"held")]
    lost = lose(backend, jobs[0], Stage.PARSE)
    cancelled, held = (claimed(store, job_id, Stage.PARSE, lease_s=SHORT_S) for job_id in jobs[1:])
    store.cancel(jobs[1], tenant="acme")
    assert store.renew([lost, cancelled, held], lease_s=3600) == {held}
    assert store.renew([], lease_s=3600) == frozenset()
    backend.wait(SHORT_S * 1.5)
    assert store.sweep(republish_after_s=3600, max_lost=3).returned == ()


# ---------------------------------------------------------------- sweep


def test_a_sweep_returns_an_ended_lease_to_wait_for_the_same_stage(backend: Backend) -> None:
    store = backend.store
    jobs = {stage: accepted(store, stage.encode()) for stage in Stage}
    through_parse(store, jobs[Stage.INFER])
    through_infer(store, jobs[Stage.VALIDATE])
    for stage, job_id in jobs.items():
        claimed(store, job_id, stage, lease_s=SHORT_S)
    backend.wait(SHORT_S * 1.5)
    swept = store.sweep(republish_after_s=3600, max_lost=3)
    assert set(swept.returned) == set(jobs.values())
    assert (swept.poisoned, swept.unpublished) == ((), ())
    assert {job.stage: job.job_id for job in store.waiting(limit=10)} == jobs


def test_a_sweep_leaves_a_renewed_lease_alone(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    claim = claimed(backend.store, job_id, Stage.PARSE, lease_s=SHORT_S)
    assert backend.store.renew([claim], lease_s=3600)
    backend.wait(SHORT_S * 1.5)
    assert backend.store.sweep(republish_after_s=3600, max_lost=3).returned == ()
    FINISH[Stage.PARSE](backend.store, claim)


def test_a_job_whose_worker_was_lost_three_times_is_poison_and_kept(backend: Backend) -> None:
    job_id = accepted(backend.store, b"kills parsers")
    for _ in range(2):
        lose(backend, job_id, Stage.PARSE)
    assert backend.store.record(job_id).status == Status.RECEIVED
    last = claimed(backend.store, job_id, Stage.PARSE, lease_s=SHORT_S)
    assert last.lost == 2
    backend.store.alone(last)
    backend.wait(SHORT_S * 1.5)
    assert backend.store.sweep(republish_after_s=3600, max_lost=3).poisoned == (job_id,)
    record = backend.store.record(job_id)
    assert (record.status, record.attempt) == (Status.FAILED, 3)
    assert (record.reason or "").startswith("poison: its worker was lost 3 times")
    assert record.finished_at is not None
    assert waiting_ids(backend.store) == []
    assert accept(backend.store, b"kills parsers", name="again.pdf").job_id == job_id


def test_a_job_that_was_never_alone_when_its_worker_died_is_not_poison(backend: Backend) -> None:
    job_id = accepted(backend.store, b"sits beside one that kills")
    for _ in range(5):
        lose(backend, job_id, Stage.PARSE)
    assert backend.store.record(job_id).status == Status.RECEIVED
    backend.store.alone(claimed(backend.store, job_id, Stage.PARSE))
    assert backend.store.record(job_id).status == Status.RECEIVED, "to be alone is no fault"


def test_a_stage_that_is_finished_clears_the_counts_of_lost_workers_and_tries(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    for _ in range(2):
        lose(backend, job_id, Stage.PARSE)
    tried = claimed(backend.store, job_id, Stage.PARSE)
    backend.store.give_back(tried, reason="the parser crashed", delay_s=0, counts=True)
    again = claimed(backend.store, job_id, Stage.PARSE)
    assert (again.lost, again.retries) == (2, 1)
    backend.store.give_back(again, reason="busy", delay_s=0, counts=False)
    through_parse(backend.store, job_id)
    read = claimed(backend.store, job_id, Stage.INFER)
    assert (read.lost, read.retries) == (0, 0)


def test_a_claim_whose_engine_died_is_taken_back_at_once(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    through_parse(store, job_id)
    for lost in range(3):
        claim = claimed(store, job_id, Stage.INFER)
        assert claim.lost == lost
        store.alone(claim)
        store.lose(claim, reason="the engine died", max_lost=3)
        with pytest.raises(StaleAttempt):
            store.lose(claim, reason="the engine died", max_lost=3)
    assert store.record(job_id).status == Status.FAILED
    assert (store.record(job_id).reason or "").startswith("poison")


def test_what_was_published_before_the_next_message_of_its_queue_is_lost(backend: Backend) -> None:
    """The broker hands messages out in their order."""
    store = backend.store
    gone, head, behind = (accepted(store, name) for name in (b"gone", b"head", b"behind"))
    for job_id in (gone, head, behind):
        store.mark_published([job_id])
        backend.wait(SHORT_S / 10)
    backend.wait(SHORT_S * 1.5)
    heads = {"parse.hot": head, "parse.cold": head}
    assert store.sweep(republish_after_s=SHORT_S, max_lost=3, heads=heads).unpublished == (gone,)


def test_a_message_that_nobody_claims_is_presumed_lost(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    backend.store.mark_published([job_id])
    assert waiting_ids(backend.store) == []
    assert backend.store.sweep(republish_after_s=SHORT_S, max_lost=3).unpublished == ()
    backend.wait(SHORT_S * 1.5)
    heads = {"parse.hot": "of a job that is over", "parse.cold": job_id}
    late = backend.store.sweep(republish_after_s=SHORT_S, max_lost=3, heads=heads)
    assert late.unpublished == (), "the broker still holds messages of this queue: this one is late, not lost"
    assert backend.store.sweep(republish_after_s=SHORT_S, max_lost=3).unpublished == (job_id,)
    assert waiting_ids(backend.store) == [job_id]


def test_a_new_version_of_a_profile_reads_the_same_file_again(backend: Backend) -> None:
    first = accept(backend.store, b"one", version="1")
    second = accept(backend.store, b"one", version="2")
    assert (first.outcome, second.outcome) == ("accepted", "accepted")
    assert first.document_id == second.document_id
    assert first.job_id != second.job_id


# ---------------------------------------------------------------- giving back, failing, cancelling


def test_a_job_given_back_waits_for_its_delay(backend: Backend) -> None:
    store = backend.store
    job_id = accepted(store, b"one")
    store.give_back(claimed(store, job_id, Stage.PARSE), reason="busy", delay_s=SHORT_S, counts=True)
    assert waiting_ids(store) == []
    assert store.claim(job_id, Stage.PARSE, worker="early message", lease_s=60) is None
    backend.wait(SHORT_S * 1.5)
    assert waiting_ids(store) == [job_id]
    again = claimed(store, job_id, Stage.PARSE)
    assert (again.attempt, again.retries) == (2, 1)


def test_a_try_that_the_job_is_not_to_blame_for_does_not_count(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    store.give_back(claimed(store, job_id, Stage.PARSE), reason="engine died", delay_s=0, counts=False)
    assert claimed(store, job_id, Stage.PARSE).retries == 0


def test_a_running_job_given_back_is_queued_with_its_route(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    through_parse(store, job_id, to=route(Heat.COLD))
    store.give_back(claimed(store, job_id, Stage.INFER), reason="busy", delay_s=0, counts=True)
    assert store.record(job_id).status == Status.QUEUED
    assert claimed(store, job_id, Stage.INFER).route == route(Heat.COLD)


def test_a_failed_job_says_why_and_is_over(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    store.fail(claimed(store, job_id, Stage.PARSE), code="encrypted", reason="it needs a password")
    record = store.record(job_id)
    assert (record.status, record.reason) == (Status.FAILED, "encrypted: it needs a password")
    assert record.finished_at is not None
    assert waiting_ids(store) == []


@pytest.mark.parametrize("stage", Stage)
def test_cancelling_makes_a_running_claim_stale(store: Jobs, stage: Stage) -> None:
    job_id = brought_to(store, stage)
    claim = claimed(store, job_id, stage)
    assert store.cancel(job_id, tenant="acme")
    assert not store.renew([claim], lease_s=60)
    with pytest.raises(StaleAttempt):
        FINISH[stage](store, claim)
    record = store.record(job_id)
    assert (record.status, record.reason, record.result) == (Status.CANCELLED, "cancelled by the caller", None)


def test_a_waiting_job_that_is_cancelled_waits_no_more(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    assert store.cancel(job_id, tenant="acme")
    assert waiting_ids(store) == []
    assert store.claim(job_id, Stage.PARSE, worker="w", lease_s=60) is None


def test_what_is_over_another_tenants_or_unknown_is_not_cancelled(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    assert not store.cancel(job_id, tenant="somebody else")
    assert not store.cancel("job_unknown", tenant="acme")
    through_all(store, job_id)
    assert not store.cancel(job_id, tenant="acme")
    assert store.record(job_id).status == Status.DONE


# ---------------------------------------------------------------- results and money


def test_a_rejected_job_that_is_read_again_has_one_result_and_the_findings_of_its_last_check(backend: Backend) -> None:
    store = backend.store
    job_id = accepted(store, b"one")
    first = through_infer(store, job_id, result={"total": "wrong"}, cost=Decimal("0.001"))
    rejected = verdict(Outcome.REJECT, finding("made_up", Outcome.REJECT))
    better = route(lane="better")
    claim = claimed(store, job_id, Stage.VALIDATE)
    assert store.finish_validate(claim, rejected, first, retry=better) == Status.QUEUED
    record = store.record(job_id)
    assert (record.result, record.findings, record.lane) == (None, rejected.findings, "better")
    again = claimed(store, job_id, Stage.INFER)
    assert (again.rejections, again.route) == (1, better)
    store.finish_infer(again, extraction({"total": "right"}, cost=Decimal("0.002")))
    claim = claimed(store, job_id, Stage.VALIDATE)
    assert store.extraction(claim).result == {"total": "right"}
    store.finish_validate(claim, verdict(Outcome.PASS), store.extraction(claim), retry=None)
    record = store.record(job_id)
    assert (record.status, record.result, record.findings) == (Status.DONE, {"total": "right"}, ())
    assert backend.costs(job_id) == [Decimal("0.001"), Decimal("0.002")]


def test_every_reading_is_on_the_ledger_to_the_last_place(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    through_infer(backend.store, job_id, cost=Decimal("0.000000125"))
    assert backend.costs(job_id) == [Decimal("0.000000125")]


def test_a_job_that_was_never_read_is_not_on_the_ledger(backend: Backend) -> None:
    job_id = accepted(backend.store, b"one")
    through_parse(backend.store, job_id)
    assert backend.costs(job_id) == []


# ---------------------------------------------------------------- near-duplicates


def like(*changed: int, bands: Sequence[int] = (1, 2), amount: str = "5.2") -> Likeness:
    """Of a hundred shingles, those at `changed` are others."""
    hashes = [1000 + number if number in changed else number for number in range(100)]
    return Likeness(tuple(bands), np.array(sorted(hashes), dtype="<u4").tobytes(), {"numbers": [amount], "names": []})


def indexed(backend: Backend, data: bytes, likeness: Likeness, **of: str) -> str:
    job_id = accepted(backend.store, data, **of)
    through_parse(backend.store, job_id, likeness=likeness)
    return backend.store.record(job_id).document_id


def test_a_near_duplicate_is_linked_to_the_earlier_document_and_read_all_the_same(backend: Backend) -> None:
    first, second = indexed(backend, b"1", like()), indexed(backend, b"2", like(7, 8))
    assert backend.link(first) == UNLINKED
    assert backend.link(second) == {**UNLINKED, "near_duplicate_of": first, "similarity": 98 / 102, "differences": {}}
    assert backend.store.counts() == {Status.QUEUED: 2}


def test_a_document_with_another_amount_repeats_nothing_and_its_link_says_what_changed(backend: Backend) -> None:
    first, second = indexed(backend, b"1", like()), indexed(backend, b"2", like(amount="52"))
    link = backend.link(second)
    assert (link["near_duplicate_of"], link["same_template_as"], link["similarity"]) == (None, first, 1.0)
    changed = {"gone": ["5.2"], "new": ["52"], "gone_count": 1, "new_count": 1}
    assert link["differences"] == {"numbers": changed}


def test_a_repeat_is_found_among_many_documents_of_its_template(backend: Backend) -> None:
    original = indexed(backend, b"0", like())
    for number in range(1, 60):
        indexed(backend, b"%d" % number, like(number, amount=str(number)))
    assert backend.link(indexed(backend, b"repeat", like(3)))["near_duplicate_of"] == original


def test_the_most_similar_document_is_linked(backend: Backend) -> None:
    indexed(backend, b"1", like(1, 2, 3))
    nearest = indexed(backend, b"2", like(4))
    indexed(backend, b"3", like(amount="another"))
    assert backend.link(indexed(backend, b"4", like()))["near_duplicate_of"] == nearest


def test_likeness_does_not_go_through_a_third_document(backend: Backend) -> None:
    first = indexed(backend, b"1", like())
    second = indexed(backend, b"2", like(*range(10)))
    third = indexed(backend, b"3", like(*range(20)))
    assert backend.link(second)["near_duplicate_of"] == first
    assert backend.link(third)["near_duplicate_of"] == second
    assert backend.link(indexed(backend, b"4", like(*range(30), bands=(1, 9))))["near_duplicate_of"] == third
    assert backend.link(indexed(backend, b"5", like(*range(20, 50)))) == UNLINKED


def test_what_repeats_a_document_is_linked_to_one_and_the_same_when_that_comes_often(backend: Backend) -> None:
    first = indexed(backend, b"1", like())
    repeats = [indexed(backend, b"%d" % number, like()) for number in range(2, 6)]
    assert {backend.link(repeat)["near_duplicate_of"] for repeat in repeats} == {first}


def test_a_shared_band_without_likeness_is_no_link(backend: Backend) -> None:
    indexed(backend, b"1", like())
    assert backend.link(indexed(backend, b"2", like(*range(50)))) == UNLINKED


def test_a_document_without_a_shared_band_is_not_linked(backend: Backend) -> None:
    indexed(backend, b"1", like(bands=(1, 2)))
    assert backend.link(indexed(backend, b"2", like(bands=(3, 4)))) == UNLINKED


def test_texts_too_short_to_compare_are_not_linked(backend: Backend) -> None:
    indexed(backend, b"1", LIKE_NOTHING)
    assert backend.link(indexed(backend, b"2", LIKE_NOTHING)) == UNLINKED


def test_tenants_do_not_learn_of_each_others_documents(backend: Backend) -> None:
    indexed(backend, b"1", like(), tenant="one")
    assert backend.link(indexed(backend, b"2", like(), tenant="two")) == UNLINKED


def test_a_document_parsed_again_for_another_profile_is_not_linked_to_one_that_repeats_it(backend: Backend) -> None:
    first = indexed(backend, b"1", like())
    second = indexed(backend, b"2", like())
    third = indexed(backend, b"3", like(4))
    assert indexed(backend, b"1", like(), profile="screening") == first
    assert indexed(backend, b"2", like(), profile="screening") == second
    assert backend.link(first) == UNLINKED
    assert {backend.link(later)["near_duplicate_of"] for later in (second, third)} == {first}


def test_a_reading_that_was_accepted_stands_for_a_document_of_the_same_text(backend: Backend) -> None:
    store = backend.store
    through_parse(store, first := accepted(store, b"1"), likeness=like())
    through_parse(store, second := accepted(store, b"2"), likeness=like())
    claim = claimed(store, second, Stage.INFER)
    assert claim.repeats
    assert store.repeated_reading(claim) is None
    through_all(store, first)
    assert store.repeated_reading(claim) == extraction()


@pytest.mark.parametrize(
    ("likeness", "profile", "outcome"),
    [
        (like(7), "risk-report", Outcome.PASS),
        (like(amount="52"), "risk-report", Outcome.PASS),
        (like(), "screening", Outcome.PASS),
        (like(), "risk-report", Outcome.REVIEW),
    ],
    ids=["other words", "another amount", "another profile", "to be reviewed"],
)
def test_no_reading_stands_for_a_document_where_anything_differs(
    backend: Backend, likeness: Likeness, profile: str, outcome: Outcome
) -> None:
    store = backend.store
    through_parse(store, first := accepted(store, b"1"), likeness=like())
    through_all(store, first, outcome)
    through_parse(store, second := accepted(store, b"2", profile=profile), likeness=likeness)
    claim = claimed(store, second, Stage.INFER)
    assert claim.repeats == (likeness == like())
    assert store.repeated_reading(claim) is None


def test_a_message_that_is_about_to_be_sent_is_marked_by_the_write_that_ends_the_stage(backend: Backend) -> None:
    store = backend.store
    job_id = accepted(store, b"1")
    claim = claimed(store, job_id, Stage.PARSE)
    store.finish_parse(claim, prepared_of(claim.document_id), route(), likeness=LIKE_NOTHING, sent=True)
    assert not store.waiting(limit=9)
    store.finish_infer(claimed(store, job_id, Stage.INFER), read := extraction(), sent=True)
    assert not store.waiting(limit=9)
    to_check = claimed(store, job_id, Stage.VALIDATE)
    store.finish_validate(to_check, verdict(Outcome.REJECT), read, retry=route(), sent=True)
    assert not store.waiting(limit=9)
    store.mark_unpublished([job_id])
    assert [job.job_id for job in store.waiting(limit=9)] == [job_id]


# ---------------------------------------------------------------- waiting and messages


def queued(store: Jobs, name: str, heat: Heat, *, tenant: str = "acme", window_s: int = 3600, lane: str = "cpu") -> str:
    job_id = accepted(store, name.encode(), name=name, tenant=tenant, window_s=window_s)
    through_parse(store, job_id, to=route(heat, lane=lane))
    return job_id


def test_waiting_jobs_come_hottest_first_then_by_deadline(store: Jobs) -> None:
    cold = queued(store, "cold", Heat.COLD, window_s=10)
    later = queued(store, "warm, later", Heat.WARM, window_s=900)
    sooner = queued(store, "warm, sooner", Heat.WARM, window_s=600)
    hot = queued(store, "hot", Heat.HOT, window_s=3600)
    assert waiting_ids(store) == [hot, sooner, later, cold]


def test_before_the_parse_a_job_is_as_hot_as_its_need(store: Jobs) -> None:
    backfill = accepted(store, b"backfill", window_s=100)
    warm = queued(store, "warm", Heat.WARM, window_s=7200)
    vip = accepted(store, b"vip", window_s=3600, vip=True)
    somebody_waits = accepted(store, b"waits", window_s=0)
    assert waiting_ids(store) == [somebody_waits, vip, warm, backfill]


def test_a_backlog_of_one_lane_does_not_hide_the_work_of_another(store: Jobs) -> None:
    for number in range(6):
        queued(store, f"warm {number}", Heat.WARM)
    other = queued(store, "cold on an idle lane", Heat.COLD, lane="idle")
    assert other in waiting_ids(store, limit=3)


def test_a_backlog_of_one_tenant_does_not_hide_another(store: Jobs) -> None:
    for number in range(6):
        queued(store, f"of a large tenant {number}", Heat.COLD, window_s=10)
    small = queued(store, "of a small tenant", Heat.COLD, tenant="small")
    assert small in waiting_ids(store, limit=2)


def test_hot_work_is_never_cut_off_for_colder_work(store: Jobs) -> None:
    cold = queued(store, "cold", Heat.COLD)
    hot = [queued(store, f"hot {number}", Heat.HOT, window_s=60 + number) for number in range(3)]
    assert waiting_ids(store, limit=3) == hot
    assert waiting_ids(store, limit=4) == [*hot, cold]


def test_a_published_job_does_not_wait_and_its_next_stage_does(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    store.mark_published([job_id])
    assert waiting_ids(store) == []
    through_parse(store, job_id)
    assert waiting_ids(store) == [job_id]


def test_a_message_that_the_broker_did_not_take_waits_again(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    store.mark_published([job_id])
    store.mark_unpublished([job_id])
    assert waiting_ids(store) == [job_id]


def test_an_emptied_broker_unpublishes_what_waits_and_nothing_else(store: Jobs) -> None:
    waits, runs, over = (accepted(store, data) for data in (b"waits", b"runs", b"over"))
    store.mark_published([waits, runs, over])
    claimed(store, runs, Stage.PARSE)
    through_all(store, over)
    assert store.unpublish_all() == 1
    assert waiting_ids(store) == [waits]


def test_what_is_over_is_never_published(store: Jobs) -> None:
    job_id = accepted(store, b"one")
    through_all(store, job_id)
    store.mark_published([job_id])
    assert store.unpublish_all() == 0


def test_in_flight_counts_what_is_with_the_broker_or_a_worker(store: Jobs) -> None:
    queued(store, "waits in the database", Heat.COLD)
    published, running = queued(store, "published", Heat.COLD), queued(store, "running", Heat.COLD)
    store.mark_published([published, running])
    claimed(store, running, Stage.INFER)
    cold_parse, hot_parse = accepted(store, b"parse", window_s=60), accepted(store, b"hot parse", window_s=0)
    store.mark_published([cold_parse])
    claimed(store, hot_parse, Stage.PARSE)
    through_infer(store, accepted(store, b"in validation"))
    assert store.in_flight() == {"infer.cold.short@cpu": 2, "parse.cold": 1, "parse.hot": 1}


def test_a_waiting_job_is_rerouted_and_a_published_one_is_not(store: Jobs) -> None:
    waits, published = queued(store, "waits", Heat.COLD), queued(store, "published", Heat.COLD)
    store.mark_published([published])
    for job_id in (waits, published):
        store.reroute(job_id, route(Heat.HOT))
    assert store.record(waits).heat == Heat.HOT
    assert store.record(published).heat == Heat.COLD


def test_a_waiting_job_shows_what_dispatch_needs(backend: Backend) -> None:
    job_id = queued(backend.store, "one", Heat.WARM, window_s=600)
    backend.wait(0.1)
    (job,) = backend.store.waiting(limit=1)
    assert (job.job_id, job.stage, job.tenant, job.profile) == (job_id, Stage.INFER, "acme", "risk-report")
    assert (job.window_s, job.tokens, job.route) == (600, 300, route(Heat.WARM))
    assert 0.1 <= job.age_s < 60
    assert job.deadline.tzinfo is not None


# ---------------------------------------------------------------- records


def test_another_tenants_job_is_not_found(store: Jobs) -> None:
    job_id = accepted(store, b"one", tenant="mine")
    assert store.record(job_id, tenant="mine").job_id == job_id
    for tenant, unknown in [("theirs", job_id), ("mine", "job_unknown")]:
        with pytest.raises(NotFound, match=unknown):
            store.record(unknown, tenant=tenant)


def test_counts_are_by_status(store: Jobs) -> None:
    accept(store, b"received")
    through_parse(store, accepted(store, b"queued"))
    for name in (b"done", b"done too"):
        through_all(store, accepted(store, name))
    assert store.counts() == {Status.RECEIVED: 1, Status.QUEUED: 1, Status.DONE: 2}


# ---------------------------------------------------------------- many at once


def test_sixteen_threads_claim_two_hundred_jobs_each_once(store: Jobs) -> None:
    ids = [accepted(store, str(number).encode(), name=f"{number}.pdf") for number in range(200)]

    def claim_all(worker: int) -> list[str]:
        # Every worker gets every message, each in another order.
        mine = ids[worker * 12 :] + ids[: worker * 12]
        claims = (store.claim(job_id, Stage.PARSE, worker=f"w{worker}", lease_s=600) for job_id in mine)
        return [claim.job_id for claim in claims if claim is not None]

    with ThreadPoolExecutor(16) as threads:
        won = Counter(job_id for ids_of_one in threads.map(claim_all, range(16)) for job_id in ids_of_one)
    assert won == Counter(ids)


def test_the_same_file_handed_in_by_many_at_once_is_one_job(store: Jobs) -> None:
    with ThreadPoolExecutor(16) as threads:
        receipts = list(threads.map(lambda number: accept(store, b"same", name=f"{number}.pdf"), range(32)))
    assert Counter(receipt.outcome for receipt in receipts) == {"accepted": 1, "duplicate": 31}
    assert store.counts() == {Status.RECEIVED: 1}


def test_of_repeats_parsed_at_once_one_is_the_original(backend: Backend) -> None:
    jobs = [accepted(backend.store, str(number).encode(), name=f"{number}.pdf") for number in range(16)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda job: through_parse(backend.store, job, likeness=like()), jobs))
    documents_of = [backend.store.record(job).document_id for job in jobs]
    originals = [document for document in documents_of if backend.link(document) == UNLINKED]
    assert len(originals) == 1


def test_a_sweep_and_a_finish_at_once_leave_one_winner(backend: Backend) -> None:
    """Whichever comes first: either the job is queued, or it is back and the finish was refused."""
    store = backend.store
    ids = [accepted(store, str(number).encode(), name=f"{number}.pdf") for number in range(40)]
    claims = [claimed(store, job_id, Stage.PARSE, lease_s=SHORT_S) for job_id in ids]
    backend.wait(SHORT_S * 1.5)

    def finish(claim: Claim) -> bool:
        try:
            FINISH[Stage.PARSE](store, claim)
        except StaleAttempt:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        sweeps = [threads.submit(store.sweep, republish_after_s=3600, max_lost=3) for _ in range(4)]
        finished = [claim.job_id for claim, won in zip(claims, threads.map(finish, claims), strict=True) if won]
    returned = [job_id for sweep in sweeps for job_id in sweep.result().returned]
    assert sorted(finished + returned) == sorted(ids)
    assert store.counts() == Counter({Status.QUEUED: len(finished), Status.RECEIVED: len(returned)}) - Counter()


# ---------------------------------------------------------------- PostgreSQL alone


def test_one_result_a_job_is_the_databases_own_rule(engine: Engine) -> None:
    store = JobStore(engine)
    job_id = accepted(store, b"one")
    through_all(store, job_id)
    with engine.connect() as connection:
        assert connection.execute(select(func.count()).select_from(results)).scalar_one() == 1
    assert [column.name for column in results.primary_key] == ["job_id"]


def test_a_refused_write_leaves_no_event_either(engine: Engine) -> None:
    store = JobStore(engine)
    job_id = accepted(store, b"one")
    claim = claimed(store, job_id, Stage.PARSE)
    store.cancel(job_id, tenant="acme")
    with pytest.raises(StaleAttempt):
        FINISH[Stage.PARSE](store, claim)
    with engine.connect() as connection:
        kinds = connection.execute(select(events.c.kind).order_by(events.c.event_id)).scalars().all()
    assert kinds == ["received", "claimed_parse", "cancelled"]
