"""The store of jobs in memory: the fake that passes the conformance tests, and the store of tools without a database.

One process, nothing kept after it. The clock is given, so that tests need not wait. What it leaves out is the audit:
events, the rows of `attempts`, and tables, values and reviews for people.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any

from docmill.likeness import LIKE_NOTHING, Likeness
from docmill.types import Document, Extraction, PreparedDocument, Record, Route, Status, Usage, Verdict
from storage import rules
from storage.memory_ledger import MemoryLedger
from storage.memory_rows import (
    KeptDocument,
    KeptJob,
    claim_of,
    foremost,
    record_of,
    take_back,
    urgency,
    waiting_of,
    waits_for_its_key,
)
from storage.near_duplicates import Candidate, best_link, link_columns
from storage.ports import HELD_AS, NO_HEADS, WAITS_FOR, Claim, Order, Receipt, Stage, Submission, Swept, Waiting, Waste

#: Before any job.
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def utc_now() -> datetime:
    """The clock of a store that is given none."""
    return datetime.now(UTC)


@dataclass
class MemoryJobStore:
    """`ports.Jobs` in memory. Safe to use from many threads."""

    clock: Callable[[], datetime] = utc_now
    documents: dict[str, KeptDocument] = field(default_factory=dict)
    jobs: dict[str, KeptJob] = field(default_factory=dict)
    submissions: dict[Submission, Receipt] = field(default_factory=dict)
    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    _bands: dict[tuple[str, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def accept(self, document: Document, *, blob_key: str, submission: Submission, order: Order) -> Receipt:
        with self._lock:
            known = self._known(submission)
            if known is not None and known.job_id is not None:
                self._hasten(self.jobs[known.job_id], order)
                return known
            kept = self.documents.setdefault(document.document_id, KeptDocument(document, blob_key))
            present = self._job_of(document, order)
            if present is None:
                self._add_job(document, order)
                return self._submit(submission, "accepted", document.document_id, order.job_id)
            self._hasten(present, order)
            job_id = present.order.job_id
            reason = rules.duplicate_reason(kept.document.name, job_id)
            return self._submit(submission, "duplicate", document.document_id, job_id, "duplicate", reason)

    def refuse(self, submission: Submission, *, code: str, reason: str, sha256: str | None) -> Receipt:
        with self._lock:
            known = self._known(submission)
            if known is not None and known.job_id is not None:
                return known
            return self._submit(submission, "refused", None, None, code, reason)

    def claim(self, job_id: str, stage: Stage, *, worker: str, lease_s: float) -> Claim | None:
        with self._lock:
            job, now = self.jobs.get(job_id), self.clock()
            if job is None or job.status != WAITS_FOR[stage] or not job.waits or not job.is_due(now):
                return None
            job.attempt += 1
            job.status = HELD_AS[stage]
            job.lease_until = now + timedelta(seconds=lease_s)
            return claim_of(job, self.documents[job.document_id], stage, now)

    def renew(self, claims: Collection[Claim], *, lease_s: float) -> frozenset[Claim]:
        with self._lock:
            held = {claim: self.jobs[claim.job_id] for claim in claims}
            ours = {claim: job for claim, job in held.items() if job.attempt == claim.attempt and job.lease_until}
            for job in ours.values():
                job.lease_until = self.clock() + timedelta(seconds=lease_s)
            return frozenset(ours)

    def finish_parse(
        self, claim: Claim, prepared: PreparedDocument, route: Route, *, likeness: Likeness, sent: bool = False
    ) -> None:
        with self._lock:
            job = self.held(claim)
            self.documents[claim.document_id].prepared = prepared
            self._link(claim.tenant, claim.document_id, likeness)
            job.go(Status.QUEUED, self._mark(sent))
            job.route = route
            job.got_on()

    def repeated_reading(self, claim: Claim) -> Extraction | None:
        with self._lock:
            link = self.documents[claim.document_id].link
            wanted = (link.get("near_duplicate_of"), claim.profile, claim.profile_version)
            job = next((job for job in self.jobs.values() if job.subject == wanted), None)
            if job is None or link["similarity"] != rules.SAME_TEXT or job.status != Status.DONE:
                return None
            return job.extraction

    def reserve(self, claim: Claim, amount_usd: Decimal, *, note: Mapping[str, Any] | None = None) -> None:
        with self._lock:
            self.held(claim)
            self.ledger.reserve(claim, amount_usd)

    def settle(self, claim: Claim, usage: Usage, *, waste: Waste) -> None:
        with self._lock:
            overtaken = self.jobs[claim.job_id].attempt > claim.attempt
            self.ledger.settle(claim, usage, waste, overtaken=overtaken)

    def finish_infer(self, claim: Claim, extraction: Extraction, *, sent: bool = False) -> None:
        with self._lock:
            job = self.held(claim)
            job.go(Status.VALIDATING, self._mark(sent))
            job.extraction = extraction
            job.got_on()
            self.ledger.settle(claim, extraction.usage, None)

    def finish_validate(
        self,
        claim: Claim,
        verdict: Verdict,
        extraction: Extraction,
        *,
        retry: Route | None,
        ends: Status | None = None,
        sent: bool = False,
    ) -> Status:
        with self._lock:
            job = self.held(claim)
            job.verdict = verdict
            if retry is not None:
                job.go(Status.QUEUED, self._mark(sent))
                job.route = retry
                job.got_on()
                job.rejections += 1
                self.ledger.write_off(claim.job_id, Waste.REJECTED)
                return job.status
            job.end(ends or rules.ENDS_AS[verdict.outcome], rules.reason_of(verdict), self.clock())
            if job.status in rules.WITH_RESULT:
                job.result = extraction
            else:
                self.ledger.write_off(claim.job_id, Waste.REJECTED)
            return job.status

    def give_back(self, claim: Claim, *, reason: str, delay_s: float, counts: bool) -> None:
        with self._lock:
            job = self.held(claim)
            job.go(WAITS_FOR[claim.stage])
            job.not_before = self.clock() + timedelta(seconds=delay_s)
            job.retries += counts
            self.ledger.close(claim.job_id)

    def alone(self, claim: Claim) -> None:
        with self._lock:
            self.jobs[claim.job_id].alone = claim.attempt

    def lose(self, claim: Claim, *, reason: str, max_lost: int) -> None:
        with self._lock:
            self._take_back(self.held(claim), max_lost)

    def fail(self, claim: Claim, *, code: str, reason: str) -> None:
        with self._lock:
            self.held(claim).end(Status.FAILED, rules.failure_reason(code, reason), self.clock())
            self.ledger.close(claim.job_id)
            self.ledger.write_off(claim.job_id, Waste.FAILED)

    def cancel(self, job_id: str, *, tenant: str) -> bool:
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None or job.tenant != tenant or job.status.terminal:
                return False
            job.end(Status.CANCELLED, rules.CANCELLED, self.clock())
            self.ledger.give_up(job_id, Waste.CANCELLED, over=True)
            return True

    def extraction(self, claim: Claim) -> Extraction:
        with self._lock:
            found = self.jobs[claim.job_id].extraction
            assert found is not None, f"{claim.job_id} is in validation, so it has been read"
            return found

    def waiting(self, *, limit: int) -> Sequence[Waiting]:
        with self._lock:
            now = self.clock()
            waiting = [job for job in self.jobs.values() if job.waits and job.published_at is None and job.is_due(now)]
            waiting = [job for job in waiting if not waits_for_its_key(job, self.jobs.values())]
            chosen = foremost(sorted(waiting, key=urgency), limit)
            return [waiting_of(job, self.documents[job.document_id], now) for job in chosen]

    def in_flight(self) -> dict[str, int]:
        with self._lock:
            counted = (Status.RECEIVED, Status.QUEUED, Status.RUNNING)
            return dict(
                Counter(
                    job.queue
                    for job in self.jobs.values()
                    if job.status in counted and (job.published_at or job.lease_until)
                )
            )

    def mark_published(self, job_ids: Iterable[str]) -> None:
        self._publish(job_ids, self.clock())

    def mark_unpublished(self, job_ids: Iterable[str]) -> None:
        self._publish(job_ids, None)

    def reroute(self, job_id: str, route: Route) -> None:
        with self._lock:
            job = self.jobs[job_id]
            if job.status == Status.QUEUED and job.published_at is None:
                job.route = route

    def sweep(
        self, *, republish_after_s: float, max_lost: int, heads: Mapping[str, str] = NO_HEADS, grace_s: float = 0.0
    ) -> Swept:
        with self._lock:
            now = self.clock()
            ended = [job for job in self.jobs.values() if job.lease_until is not None and job.lease_until < now]
            for job in ended:
                self._take_back(job, max_lost)
            silent, first = now - timedelta(seconds=republish_after_s), self._first_published(heads)
            unpublished = self._unpublish(
                lambda job: job.published_at is not None and job.published_at < min(silent, first.get(job.queue, now))
            )
            returned = tuple(job.order.job_id for job in ended if job.status != Status.FAILED)
            poisoned = tuple(job.order.job_id for job in ended if job.status == Status.FAILED)
            return Swept(returned, poisoned, unpublished)

    def unpublish_all(self) -> int:
        with self._lock:
            return len(self._unpublish(lambda job: job.published_at is not None))

    def record(self, job_id: str, *, tenant: str | None = None) -> Record:
        with self._lock:
            job = self.jobs.get(job_id)
            if job is None or tenant not in (None, job.tenant):
                raise rules.no_such_job(job_id)
            return record_of(job, self.documents[job.document_id].prepared)

    def counts(self) -> dict[Status, int]:
        with self._lock:
            return dict(Counter(job.status for job in self.jobs.values()))

    def _known(self, submission: Submission) -> Receipt | None:
        return self.submissions.get(replace(submission, size_bytes=0))

    def _submit(
        self,
        submission: Submission,
        outcome: str,
        document_id: str | None,
        job_id: str | None,
        code: str | None = None,
        reason: str | None = None,
    ) -> Receipt:
        known = self._known(submission)
        number = known.submission_id if known else len(self.submissions) + 1
        receipt = Receipt(number, outcome, document_id, job_id, code, reason)
        self.submissions[replace(submission, size_bytes=0)] = receipt
        return receipt

    def _job_of(self, document: Document, order: Order) -> KeptJob | None:
        wanted = (document.document_id, order.profile, order.profile_version)
        return next((job for job in self.jobs.values() if job.subject == wanted), None)

    def _add_job(self, document: Document, order: Order) -> None:
        now = self.clock()
        deadline = now + timedelta(seconds=rules.seconds_allowed(order))
        self.jobs[order.job_id] = KeptJob(order, document.document_id, document.tenant, now, now, deadline)

    def _hasten(self, job: KeptJob, order: Order) -> None:
        now = self.clock()
        deadline = now + timedelta(seconds=rules.seconds_allowed(order))
        if not job.status.terminal and job.deadline > deadline:
            vip = job.order.vip or order.vip
            job.order = replace(job.order, window_s=order.window_s, vip=vip)
            job.deadline, job.needed_at = deadline, now

    def _mark(self, sent: bool) -> datetime | None:
        return self.clock() if sent else None

    def held(self, claim: Claim) -> KeptJob:
        """The claimed job, if the claim still holds it. Raises StaleAttempt."""
        job = self.jobs[claim.job_id]
        if job.attempt != claim.attempt or job.status != HELD_AS[claim.stage] or job.lease_until is None:
            raise rules.stale(claim)
        return job

    def _link(self, tenant: str, document_id: str, like: Likeness) -> None:
        document, near = self.documents[document_id], [self._bands[tenant, band] for band in like.bands]
        if document.likeness is not LIKE_NOTHING:
            return
        document.likeness = like
        others = {name: self.documents[name].likeness for name in dict.fromkeys(chain.from_iterable(near))}
        link = best_link(
            like, (Candidate(name, other.shingles, other.facts == like.facts) for name, other in others.items())
        )
        if link is not None:
            document.link = link_columns(link, others[link.document_id].facts, like.facts)
        for bucket in near:
            bucket.append(document_id)

    def _take_back(self, job: KeptJob, max_lost: int) -> None:
        take_back(job, max_lost, self.clock())
        self.ledger.give_up(job.order.job_id, Waste.LOST, over=job.status == Status.FAILED)

    def _first_published(self, heads: Mapping[str, str]) -> dict[str, datetime]:
        """When the next message of each queue was published; long ago where that cannot be told."""
        jobs = {queue: self.jobs.get(job_id) for queue, job_id in heads.items()}
        return {
            queue: job.published_at if job is not None and job.waits and job.published_at else LONG_AGO
            for queue, job in jobs.items()
        }

    def _publish(self, job_ids: Iterable[str], at: datetime | None) -> None:
        with self._lock:
            for job_id in job_ids:
                if self.jobs[job_id].waits:
                    self.jobs[job_id].published_at = at

    def _unpublish(self, which: Callable[[KeptJob], bool]) -> tuple[str, ...]:
        found = [job for job in self.jobs.values() if job.waits and which(job)]
        for job in found:
            job.published_at = None
        return tuple(job.order.job_id for job in found)
