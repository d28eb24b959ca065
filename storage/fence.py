"""The fence: what must still be true of a job for its claim to write. Written once: all rests on it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, and_

from storage.ports import HELD_AS, Claim, Stage
from storage.schema import jobs


def claimed_as(job_id: Any, attempt: Any, stage: Stage) -> ColumnElement[bool]:
    """The row of a job that this attempt holds for this stage; the first two may be bound parameters."""
    return and_(
        jobs.c.job_id == job_id,
        jobs.c.attempt == attempt,
        jobs.c.status == HELD_AS[stage],
        jobs.c.lease_until.is_not(None),
    )


def claimed_by(claim: Claim) -> ColumnElement[bool]:
    """The row of the job that this claim holds."""
    return claimed_as(claim.job_id, claim.attempt, claim.stage)
