"""The state machine of jobs on PostgreSQL: claim, renew, hand over, sweep. The clock is the database's."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, Connection, Engine, Row, case, func, or_, select, tuple_, update

from docmill.likeness import Likeness
from docmill.types import (
    TERMINAL,
    Document,
    Extraction,
    PreparedDocument,
    Record,
    Route,
    Status,
    Usage,
    Verdict,
)
from storage import finish, intake, leases, ledger, lines, reading, rules, stages
from storage.database import autocommitted, transactional
from storage.events import record_event
from storage.ports import NO_HEADS, WAITS_FOR, Claim, Order, Receipt, Stage, Submission, Swept, Waiting, Waste
from storage.rules import STAGE_OF
from storage.schema import attempts, jobs
from storage.stages import RELEASED, route_of

#: Before any job, and a moment that PostgreSQL and Python can both name.
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class JobStore:
    """`ports.Jobs` on PostgreSQL. Safe to use from many threads."""

    engine: Engine

    @transactional
    def accept(
        self, connection: Connection, document: Document, *, blob_key: str, submission: Submission, order: Order
    ) -> Receipt:
        return intake.accept(connection, document, blob_key=blob_key, submission=submission, order=order)

    @transactional
    def refuse(
        self, connection: Connection, submission: Submission, *, code: str, reason: str, sha256: str | None
    ) -> Receipt:
        return intake.refuse(connection, submission, code=code, reason=reason, sha256=sha256)

    @autocommitted
    def claim(self, connection: Connection, job_id: str, stage: Stage, *, worker: str, lease_s: float) -> Claim | None:
        return stages.take(connection, job_id, stage, worker=worker, lease_s=lease_s)

    @autocommitted
    def renew(self, connection: Connection, claims: Collection[Claim], *, lease_s: float) -> frozenset[Claim]:
        held = {(claim.job_id, claim.attempt): claim for claim in claims}
        renewed = connection.execute(
            update(jobs)
            .where(tuple_(jobs.c.job_id, jobs.c.attempt).in_(list(held)), jobs.c.lease_until.is_not(None))
            .values(lease_until=func.now() + timedelta(seconds=lease_s))
            .returning(jobs.c.job_id, jobs.c.attempt)
        )
        return frozenset(held[row.job_id, row.attempt] for row in renewed)

    @transactional
    def finish_parse(
        self,
        connection: Connection,
        claim: Claim,
        prepared: PreparedDocument,
        route: Route,
        *,
        likeness: Likeness,
        sent: bool = False,
    ) -> None:
        finish.finish_parse(connection, claim, prepared, route, likeness=likeness, sent=sent)

    @transactional
    def repeated_reading(self, connection: Connection, claim: Claim) -> Extraction | None:
        return finish.repeated_reading(connection, claim)

    @autocommitted
    def reserve(
        self, connection: Connection, claim: Claim, amount_usd: Decimal, *, note: Mapping[str, Any] | None = None
    ) -> None:
        ledger.reserve(connection, claim, amount_usd, note=note)

    @transactional
    def settle(self, connection: Connection, claim: Claim, usage: Usage, *, waste: Waste) -> None:
        ledger.settle(connection, claim, usage, waste)

    @transactional
    def finish_infer(self, connection: Connection, claim: Claim, extraction: Extraction, *, sent: bool = False) -> None:
        finish.finish_infer(connection, claim, extraction, sent=sent)

    @transactional
    def finish_validate(
        self,
        connection: Connection,
        claim: Claim,
        verdict: Verdict,
        extraction: Extraction,
        *,
        retry: Route | None,
        ends: Status | None = None,
        sent: bool = False,
    ) -> Status:
        return finish.finish_validate(connection, claim, verdict, extraction, retry=retry, ends=ends, sent=sent)

    @transactional
    def give_back(self, connection: Connection, claim: Claim, *, reason: str, delay_s: float, counts: bool) -> None:
        wait_until = func.now() + timedelta(seconds=delay_s)
        retries = jobs.c.retries + (1 if counts else 0)
        finish.move(connection, claim, WAITS_FOR[claim.stage], not_before=wait_until, retries=retries)
        finish.end_attempt(connection, claim, "given_back", reason=reason)
        ledger.close(connection, claim.job_id, claim.attempt)
        record_event(connection, "given_back", job_id=claim.job_id, attempt=claim.attempt, detail={"reason": reason})

    @transactional
    def alone(self, connection: Connection, claim: Claim) -> None:
        leases.alone(connection, claim)

    @transactional
    def lose(self, connection: Connection, claim: Claim, *, reason: str, max_lost: int) -> None:
        leases.lose(connection, claim, reason=reason, max_lost=max_lost)

    @transactional
    def fail(self, connection: Connection, claim: Claim, *, code: str, reason: str) -> None:
        finish.move(connection, claim, Status.FAILED, reason=rules.failure_reason(code, reason), finished_at=func.now())
        finish.end_attempt(connection, claim, "failed", reason=reason)
        ledger.close(connection, claim.job_id, claim.attempt)
        ledger.write_off(connection, claim.job_id, Waste.FAILED)
        record_event(connection, "failed", job_id=claim.job_id, attempt=claim.attempt, detail={"code": code})

    @transactional
    def cancel(self, connection: Connection, job_id: str, *, tenant: str) -> bool:
        changed = connection.execute(
            update(jobs)
            .where(jobs.c.job_id == job_id, jobs.c.tenant == tenant, jobs.c.status.not_in(TERMINAL))
            .values(
                {**RELEASED, "status": Status.CANCELLED, "reason": rules.CANCELLED}
                | {"finished_at": func.now(), "updated_at": func.now()}
            )
        )
        if changed.rowcount:
            connection.execute(
                update(attempts)
                .where(attempts.c.job_id == job_id, attempts.c.ended_at.is_(None))
                .values(ended_at=func.clock_timestamp(), outcome="cancelled", reason=rules.CANCELLED)
            )
            ledger.give_up(connection, job_id, Waste.CANCELLED, over=True)
            record_event(connection, "cancelled", job_id=job_id, tenant=tenant)
        return changed.rowcount == 1

    @autocommitted
    def extraction(self, connection: Connection, claim: Claim) -> Extraction:
        return finish.latest_extraction(connection, claim.job_id)

    @autocommitted
    def waiting(self, connection: Connection, *, limit: int) -> Sequence[Waiting]:
        return [_waiting_of(row) for row in lines.foremost(connection, limit)]

    @autocommitted
    def in_flight(self, connection: Connection) -> dict[str, int]:
        queue = _queue().label("queue")
        rows = connection.execute(
            select(queue, func.count())
            .where(
                jobs.c.status.in_([Status.RECEIVED, Status.QUEUED, Status.RUNNING]),
                or_(jobs.c.published_at.is_not(None), jobs.c.lease_until.is_not(None)),
            )
            .group_by(queue)
        )
        return {name: count for name, count in rows}

    @autocommitted
    def mark_published(self, connection: Connection, job_ids: Iterable[str]) -> None:
        connection.execute(
            update(jobs)
            .where(jobs.c.job_id.in_(list(job_ids)), jobs.c.lease_until.is_(None), jobs.c.status.not_in(TERMINAL))
            .values(published_at=func.now())
        )

    @autocommitted
    def mark_unpublished(self, connection: Connection, job_ids: Iterable[str]) -> None:
        connection.execute(
            update(jobs).where(jobs.c.job_id.in_(list(job_ids)), jobs.c.lease_until.is_(None)).values(published_at=None)
        )

    @autocommitted
    def reroute(self, connection: Connection, job_id: str, route: Route) -> None:
        connection.execute(
            update(jobs)
            .where(jobs.c.job_id == job_id, jobs.c.status == Status.QUEUED, jobs.c.published_at.is_(None))
            .values(finish.route_columns(route))
        )

    @transactional
    def sweep(
        self,
        connection: Connection,
        *,
        republish_after_s: float,
        max_lost: int,
        heads: Mapping[str, str] = NO_HEADS,
        grace_s: float = 0.0,
    ) -> Swept:
        ended = leases.end_leases(connection, max_lost, grace_s)
        silent = func.now() - timedelta(seconds=republish_after_s)
        unpublished = connection.execute(
            update(jobs)
            .where(
                jobs.c.status.in_(list(WAITS_FOR.values())),
                jobs.c.lease_until.is_(None),
                jobs.c.published_at < silent,
                jobs.c.published_at < _first_published(connection, heads),
            )
            .values(published_at=None)
            .returning(jobs.c.job_id)
        ).scalars()
        returned = tuple(row.job_id for row in ended if row.status != Status.FAILED)
        poisoned = tuple(row.job_id for row in ended if row.status == Status.FAILED)
        return Swept(returned, poisoned, tuple(unpublished))

    @transactional
    def unpublish_all(self, connection: Connection) -> int:
        changed = connection.execute(
            update(jobs)
            .where(
                jobs.c.status.in_(list(WAITS_FOR.values())),
                jobs.c.lease_until.is_(None),
                jobs.c.published_at.is_not(None),
            )
            .values(published_at=None)
        )
        record_event(connection, "broker_was_emptied", detail={"jobs": changed.rowcount})
        return changed.rowcount

    @transactional
    def record(self, connection: Connection, job_id: str, *, tenant: str | None = None) -> Record:
        return reading.record(connection, job_id, tenant=tenant)

    @autocommitted
    def counts(self, connection: Connection) -> dict[Status, int]:
        rows = connection.execute(select(jobs.c.status, func.count()).group_by(jobs.c.status))
        return {Status(status): count for status, count in rows}


def _waiting_of(row: Row[Any]) -> Waiting:
    return Waiting(
        job_id=row.job_id,
        stage=STAGE_OF[Status(row.status)],
        tenant=row.tenant,
        profile=row.profile,
        vip=row.vip,
        age_s=float(row.age_s),
        window_s=row.window_s,
        deadline=row.deadline,
        tokens=row.tokens or 0,
        route=route_of(row),
    )


def _first_published(connection: Connection, heads: Mapping[str, str]) -> Any:
    """When the next message of a job's queue was published: now where it has none, never where that cannot be told."""
    known = connection.execute(
        select(jobs.c.job_id, jobs.c.published_at).where(
            jobs.c.job_id.in_(list(heads.values())),
            jobs.c.status.in_(list(WAITS_FOR.values())),
            jobs.c.lease_until.is_(None),
            jobs.c.published_at.is_not(None),
        )
    )
    published = {job_id: at for job_id, at in known}
    if not heads:
        return func.now()
    first = {queue: published.get(job_id, LONG_AGO) for queue, job_id in heads.items()}
    return case(first, value=_queue(), else_=func.now())


def _queue() -> ColumnElement[str]:
    """The queue that carries the message a job waits for."""
    before_parse = case((or_(jobs.c.vip, jobs.c.window_s == 0), rules.PARSE_HOT), else_=rules.PARSE_COLD)
    return case(
        (jobs.c.status == Status.RECEIVED, before_parse),
        (jobs.c.status == Status.VALIDATING, rules.VALIDATE),
        else_=jobs.c.queue,
    )
