"""Attempts that end without a word: their job waits again, or is poison.

A worker that dies takes all its claims with it, and at most one of them is to blame. So a job that was lost often is
read once more alone in its worker, which the worker says beforehand (`alone`): only the loss of such an attempt makes
a job poison. A stage that is finished clears the count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, update

from docmill.types import Status
from storage import ledger, rules
from storage.events import record_event
from storage.fence import claimed_by
from storage.ports import Claim, Waste
from storage.schema import attempts, jobs
from storage.stages import RELEASED


def alone(connection: Connection, claim: Claim) -> None:
    """Note that nothing else runs in the worker of this claim: if the worker dies now, the job is to blame."""
    connection.execute(
        update(attempts)
        .where(attempts.c.job_id == claim.job_id, attempts.c.no == claim.attempt, attempts.c.ended_at.is_(None))
        .values(reason=rules.ALONE)
    )


def end_leases(connection: Connection, max_lost: int, grace_s: float) -> Sequence[Row[Any]]:
    """Take back every job whose lease has ended; the attempt that held it can write nothing any more.

    While the server was down nobody could renew: after its start the workers have `grace_s` to do so.
    """
    ended = jobs.c.lease_until < func.now()
    renewable = func.now() > func.pg_postmaster_start_time() + timedelta(seconds=grace_s)
    return _take_back(connection, and_(ended, renewable), max_lost, reason=rules.LOST)


def lose(connection: Connection, claim: Claim, *, reason: str, max_lost: int) -> None:
    """Take back one claim that its worker loses with open eyes: what it worked with is dead."""
    if not _take_back(connection, claimed_by(claim), max_lost, reason=reason):
        raise rules.stale(claim)


def _take_back(connection: Connection, which: ColumnElement[bool], max_lost: int, *, reason: str) -> Sequence[Row[Any]]:
    is_poison = and_(jobs.c.lost + 1 >= max_lost, _was_alone())
    ended = connection.execute(
        update(jobs)
        .where(which)
        .values(_lost(is_poison, max_lost))
        .returning(jobs.c.job_id, jobs.c.attempt, jobs.c.status)
    ).all()
    for row in ended:
        connection.execute(
            update(attempts)
            .where(attempts.c.job_id == row.job_id, attempts.c.no == row.attempt)
            .values(ended_at=func.clock_timestamp(), outcome="lost", reason=reason)
        )
        ledger.give_up(connection, row.job_id, Waste.LOST, over=row.status == Status.FAILED)
        record_event(connection, "lease_ended", job_id=row.job_id, attempt=row.attempt, detail={"now": row.status})
    return ended


def _was_alone() -> ColumnElement[bool]:
    return exists().where(
        attempts.c.job_id == jobs.c.job_id, attempts.c.no == jobs.c.attempt, attempts.c.reason == rules.ALONE
    )


def _lost(is_poison: ColumnElement[bool], max_lost: int) -> Mapping[Any, Any]:
    return {
        **RELEASED,
        "lost": jobs.c.lost + 1,
        "status": case((is_poison, Status.FAILED), else_=case(rules.GOES_BACK_TO, value=jobs.c.status)),
        "reason": case((is_poison, rules.poison_reason(max_lost)), else_=jobs.c.reason),
        "finished_at": case((is_poison, func.now()), else_=None),
        "updated_at": func.now(),
    }
