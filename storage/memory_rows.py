"""What the store in memory keeps: one row a document and a job, and what can be read off them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from docmill.likeness import LIKE_NOTHING, Likeness
from docmill.types import Document, Extraction, Heat, PreparedDocument, Record, Route, Status, Verdict
from storage import rules
from storage.ports import WAITS_FOR, Claim, Order, Stage, Waiting


@dataclass
class KeptDocument:
    document: Document
    blob_key: str
    prepared: PreparedDocument | None = None
    likeness: Likeness = LIKE_NOTHING
    #: As columns of `documents`.
    link: dict[str, Any] = field(default_factory=dict)


@dataclass
class KeptJob:
    order: Order
    document_id: str
    tenant: str
    created_at: datetime
    needed_at: datetime
    deadline: datetime
    status: Status = Status.RECEIVED
    attempt: int = 0
    lease_until: datetime | None = None
    published_at: datetime | None = None
    not_before: datetime | None = None
    lost: int = 0
    #: The attempt that was alone in its worker.
    alone: int | None = None
    retries: int = 0
    rejections: int = 0
    route: Route | None = None
    reason: str | None = None
    finished_at: datetime | None = None
    extraction: Extraction | None = None
    verdict: Verdict | None = None
    result: Extraction | None = None

    @property
    def waits(self) -> bool:
        return self.lease_until is None and self.status in WAITS_FOR.values()

    def is_due(self, now: datetime) -> bool:
        return self.not_before is None or self.not_before <= now

    @property
    def heat(self) -> Heat:
        if self.route is not None:
            return self.route.heat
        return rules.heat_before_parse(vip=self.order.vip, window_s=self.order.window_s)

    @property
    def queue(self) -> str:
        if self.status == Status.VALIDATING:
            return rules.VALIDATE
        if self.route is not None:
            return self.route.queue
        return rules.PARSE_HOT if self.heat == Heat.HOT else rules.PARSE_COLD

    @property
    def subject(self) -> tuple[str, str, str]:
        """There is one job for each."""
        return self.document_id, self.order.profile, self.order.profile_version

    def go(self, status: Status, published_at: datetime | None = None) -> None:
        """Change the status and let go of what belonged to the last one."""
        self.status, self.published_at = status, published_at
        self.lease_until = self.not_before = None

    def got_on(self) -> None:
        """A stage is finished; the next one starts from nothing."""
        for name, value in rules.GOT_ON.items():
            setattr(self, name, value)

    def end(self, status: Status, reason: str, at: datetime) -> None:
        self.go(status)
        self.reason, self.finished_at = reason, at


def claim_of(job: KeptJob, kept: KeptDocument, stage: Stage, now: datetime) -> Claim:
    """The claim that a worker gets."""
    return Claim(
        job_id=job.order.job_id,
        attempt=job.attempt,
        stage=stage,
        document_id=job.document_id,
        tenant=job.tenant,
        profile=job.order.profile,
        profile_version=job.order.profile_version,
        blob_key=kept.blob_key,
        vip=job.order.vip,
        age_s=(now - job.needed_at).total_seconds(),
        window_s=job.order.window_s,
        remaining_s=(job.deadline - now).total_seconds(),
        retries=job.retries,
        rejections=job.rejections,
        lost=job.lost,
        route=job.route,
        ordering_key=job.order.ordering_key,
        repeats=bool(kept.link.get("near_duplicate_of")) and kept.link["similarity"] == rules.SAME_TEXT,
    )


def waiting_of(job: KeptJob, kept: KeptDocument, now: datetime) -> Waiting:
    """What dispatch sees of a job that waits."""
    return Waiting(
        job_id=job.order.job_id,
        stage=rules.STAGE_OF[job.status],
        tenant=job.tenant,
        profile=job.order.profile,
        vip=job.order.vip,
        age_s=(now - job.needed_at).total_seconds(),
        window_s=job.order.window_s,
        deadline=job.deadline,
        tokens=kept.prepared.tokens if kept.prepared else 0,
        route=job.route,
    )


def waits_for_its_key(job: KeptJob, jobs: Iterable[KeptJob]) -> bool:
    """Whether an earlier job of the same tenant and ordering key is not over."""
    key = (job.tenant, job.order.ordering_key)
    return (
        job.order.ordering_key is not None
        and job.status == Status.QUEUED
        and any(
            (other.tenant, other.order.ordering_key) == key
            and not other.status.terminal
            and (other.created_at, other.order.job_id) < (job.created_at, job.order.job_id)
            for other in jobs
        )
    )


def urgency(job: KeptJob) -> tuple[int, datetime, datetime, str]:
    """What waiting jobs are sorted by."""
    return rules.HOTTEST_FIRST[job.heat], job.deadline, job.created_at, job.order.job_id


def foremost(waiting: Sequence[KeptJob], limit: int) -> list[KeptJob]:
    """All that is hot, then the foremost of every queue and tenant, in the order given."""
    turns: Counter[tuple[str | None, str]] = Counter()
    ranked = []
    for place, job in enumerate(waiting):
        of = (job.route.queue if job.route else None, job.tenant)
        turns[of] += 1
        ranked.append((job.heat != Heat.HOT, turns[of], place))
    return [waiting[place] for place in sorted(place for _, _, place in sorted(ranked)[:limit])]


def take_back(job: KeptJob, max_lost: int, now: datetime) -> None:
    """What becomes of a job whose lease has ended."""
    job.lost += 1
    if job.lost >= max_lost and job.alone == job.attempt:
        job.end(Status.FAILED, rules.poison_reason(max_lost), now)
    else:
        job.go(rules.GOES_BACK_TO[job.status])


def record_of(job: KeptJob, prepared: PreparedDocument | None) -> Record:
    """What a door may show of it."""
    route = job.route
    return Record(
        job_id=job.order.job_id,
        document_id=job.document_id,
        tenant=job.tenant,
        profile=job.order.profile,
        profile_version=job.order.profile_version,
        status=job.status,
        attempt=job.attempt,
        reason=job.reason,
        heat=route.heat if route else None,
        length_class=route.length_class if route else None,
        priority=route.priority if route else None,
        lane=route.lane if route else None,
        hot_score=route.hot_score if route else None,
        pages=len(prepared.pages) if prepared else None,
        tables=len(prepared.tables) if prepared else None,
        tokens=prepared.tokens if prepared else None,
        created_at=job.created_at,
        finished_at=job.finished_at,
        result=job.result.result if job.result else None,
        findings=job.verdict.findings if job.verdict else (),
    )
