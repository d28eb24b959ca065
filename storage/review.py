"""The review queue: what waits for a person, what the person decided, and the versions of values that come of it.

A review is open until somebody decides: accept, correct or reject. The decision is one compare-and-set, so of two
reviewers the second gets a Conflict and writes nothing. Every act is an audit event. All of it takes a connection: the
caller's transaction is the unit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from docmill.errors import Conflict, NotFound
from docmill.types import FieldValue, Status, Verdict
from storage import ledger
from storage.events import record_event
from storage.finish import field_row, last_versions
from storage.ports import Waste
from storage.rules import no_such_job
from storage.schema import documents, fields, jobs, results, reviews

ACCEPTED, CORRECTED, REJECTED = "accepted", "corrected", "rejected"
#: The status of a job whose review ended so.
_ENDS_AS = {ACCEPTED: Status.DONE, CORRECTED: Status.DONE, REJECTED: Status.FAILED}


@dataclass(frozen=True, slots=True)
class Reviewer:
    """Who acts, why, and for whose documents; `tenant` None is an operator's, for all."""

    name: str
    note: str = ""
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Review:
    """A job before a person. `decision` is None while it waits; a rejected one has no verdict any more."""

    review_id: int
    job_id: str
    document_id: str
    tenant: str
    name: str
    profile: str
    status: str
    reason: str | None
    opened_at: Any
    decision: str | None
    reviewer: str | None
    note: str | None
    decided_at: Any
    result: dict[str, Any]
    verdict: str | None

    @property
    def is_open(self) -> bool:
        return self.decision is None


def queue(
    connection: Connection, *, tenant: str | None = None, profile: str | None = None, limit: int = 100
) -> list[Review]:
    """What waits for a person, longest first."""
    statement = _reviews().where(reviews.c.decision.is_(None)).order_by(reviews.c.review_id).limit(limit)
    if tenant is not None:
        statement = statement.where(jobs.c.tenant == tenant)
    if profile is not None:
        statement = statement.where(jobs.c.profile == profile)
    return [Review(**row._mapping) for row in connection.execute(statement)]


def review_of(connection: Connection, job_id: str, *, tenant: str | None = None) -> Review:
    """The latest review of a job, open or decided. Raises NotFound, also for another tenant's job."""
    known = select(jobs.c.tenant, jobs.c.status).where(jobs.c.job_id == job_id)
    job = connection.execute(known).one_or_none()
    if job is None or tenant not in (None, job.tenant):
        raise no_such_job(job_id)
    latest = _reviews().where(reviews.c.job_id == job_id).order_by(reviews.c.review_id.desc()).limit(1)
    row = connection.execute(latest).one_or_none()
    if row is None:
        raise NotFound(f"{job_id} has never needed a review: it is {job.status}; `docmill review reopen` asks for one")
    return Review(**row._mapping)


def current_fields(connection: Connection, job_id: str) -> list[Row[Any]]:
    """The values of a job as they stand now, in the order in which their fields were first read."""
    first = func.min(fields.c.field_id).over(partition_by=fields.c.path).label("first")
    every = select(fields, first).where(fields.c.job_id == job_id).subquery()
    current = select(every).where(every.c.superseded_at.is_(None)).order_by(every.c.first)
    return list(connection.execute(current))


def versions(connection: Connection, job_id: str, path: str | None = None) -> list[Row[Any]]:
    """Every version of the values of a job, the oldest first."""
    statement = select(fields).where(fields.c.job_id == job_id).order_by(fields.c.path, fields.c.version)
    return list(connection.execute(statement if path is None else statement.where(fields.c.path == path)))


# ---------------------------------------------------------------- acts


def insist_on_open(review: Review) -> None:
    """Raise Conflict if somebody has decided."""
    if not review.is_open:
        raise Conflict(
            f"{review.job_id} was {review.decision} by {review.reviewer} at {review.decided_at:%Y-%m-%d %H:%M:%S} UTC:"
            " nothing was changed; `docmill review reopen` puts a result that is done before a person again"
        )


def accept(connection: Connection, review: Review, by: Reviewer) -> None:
    """The result is right as it stands. Raises Conflict if somebody has decided before."""
    _decide(connection, review, by, ACCEPTED)
    _confirm(connection, review.job_id, by)
    _record(connection, review, by, ACCEPTED)


def reject(connection: Connection, review: Review, by: Reviewer) -> None:
    """The result is of no use: the job has failed and has none. What was read is kept with the review."""
    _decide(connection, review, by, REJECTED, result_before=review.result)
    _supersede(connection, review.job_id, by, ())
    connection.execute(delete(results).where(results.c.job_id == review.job_id))
    ledger.write_off(connection, review.job_id, Waste.REJECTED)
    _record(connection, review, by, REJECTED)


def correct(connection: Connection, review: Review, by: Reviewer, *, result: dict[str, Any], verdict: Verdict) -> None:
    """The result with a reviewer's values in it; `verdict` is that on the new result."""
    _decide(connection, review, by, CORRECTED, result_before=review.result, result_after=result)
    changes = _supersede(connection, review.job_id, by, verdict.fields)
    _confirm(connection, review.job_id, by)
    connection.execute(
        update(results)
        .where(results.c.job_id == review.job_id)
        .values(result=result, verdict=verdict.outcome, ruleset=verdict.ruleset)
    )
    _record(connection, review, by, CORRECTED, changes=changes, verdict=verdict.outcome.value)


def reopen(connection: Connection, job_id: str, by: Reviewer) -> None:
    """Put a result that was done before a person (again). Raises Conflict unless it is done."""
    tenant = connection.execute(select(jobs.c.tenant).where(jobs.c.job_id == job_id)).scalar_one_or_none()
    if tenant is None or by.tenant not in (None, tenant):
        raise no_such_job(job_id)
    reason = f"opened again by {by.name}: {by.note}"
    changed = connection.execute(
        update(jobs)
        .where(jobs.c.job_id == job_id, jobs.c.status == Status.DONE)
        .values(status=Status.NEEDS_REVIEW, reason=reason, updated_at=func.now())
    )
    if changed.rowcount != 1:
        raise Conflict(f"{job_id} is not done: only a result that is done can be opened again")
    open_review(connection, job_id, reason)
    detail = {"reviewer": by.name, "note": by.note}
    record_event(connection, "review_reopened", job_id=job_id, tenant=tenant, detail=detail)


def open_review(connection: Connection, job_id: str, reason: str) -> None:
    """Ask a person."""
    connection.execute(insert(reviews).values(job_id=job_id, reason=reason))


def corrections(connection: Connection, *, profile: str, tenant: str | None = None) -> list[Row[Any]]:
    """What reviewers corrected of this profile's results, the oldest first: what was read and what it should be."""
    statement = (
        select(reviews, jobs.c.document_id, documents.c.name)
        .join(jobs, jobs.c.job_id == reviews.c.job_id)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .where(jobs.c.profile == profile, reviews.c.decision == CORRECTED)
        .order_by(reviews.c.review_id)
    )
    return list(connection.execute(statement if tenant is None else statement.where(jobs.c.tenant == tenant)))


# ---------------------------------------------------------------- how


def _reviews() -> Any:
    return (
        select(
            reviews.c.review_id,
            reviews.c.job_id,
            jobs.c.document_id,
            jobs.c.tenant,
            documents.c.name,
            jobs.c.profile,
            jobs.c.status,
            reviews.c.reason,
            reviews.c.opened_at,
            reviews.c.decision,
            reviews.c.reviewer,
            reviews.c.note,
            reviews.c.decided_at,
            func.coalesce(results.c.result, reviews.c.result_before).label("result"),
            results.c.verdict,
        )
        .join(jobs, jobs.c.job_id == reviews.c.job_id)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .outerjoin(results, results.c.job_id == reviews.c.job_id)
    )


def _decide(connection: Connection, review: Review, by: Reviewer, decision: str, **more: Any) -> None:
    """The compare-and-set that of two reviewers one wins; the other waits here and then finds it decided."""
    decided = connection.execute(
        update(reviews)
        .where(reviews.c.review_id == review.review_id, reviews.c.decision.is_(None))
        .values(decision=decision, reviewer=by.name, note=by.note, decided_at=func.now(), **more)
    )
    if decided.rowcount != 1:
        insist_on_open(review_of(connection, review.job_id))
        raise Conflict(f"{review.job_id} was decided and opened again meanwhile: look at it again")
    reason = f"{decision} by {by.name}" + (f": {by.note}" if by.note else "")
    moved = connection.execute(
        update(jobs)
        .where(jobs.c.job_id == review.job_id, jobs.c.status == Status.NEEDS_REVIEW)
        .values(status=_ENDS_AS[decision], reason=reason, updated_at=func.now())
    )
    if moved.rowcount != 1:
        raise Conflict(f"{review.job_id} no longer waits for a review: look at it again")


def _confirm(connection: Connection, job_id: str, by: Reviewer) -> None:
    """Whoever lets a result pass answers for each of its values."""
    connection.execute(
        update(fields).where(fields.c.job_id == job_id, fields.c.superseded_at.is_(None)).values(reviewer=by.name)
    )


def _makers(current: Collection[Row[Any]]) -> dict[str, str | None]:
    """What made the reading that is corrected: all of its values have the same makers."""
    names = ("model", "prompt_sha256", "parser", "ruleset")
    return {name: next((getattr(row, name) for row in current), None) for name in names}


def _supersede(connection: Connection, job_id: str, by: Reviewer, values: Sequence[FieldValue]) -> list[dict[str, Any]]:
    """Close the versions that no longer hold, add those that do; what changed, for the audit."""
    current = {row.path: row for row in current_fields(connection, job_id)}
    wanted = {value.path: value for value in values}
    changed = [path for path in {**current, **wanted} if _differ(current.get(path), wanted.get(path))]
    connection.execute(
        update(fields)
        .where(fields.c.job_id == job_id, fields.c.path.in_(changed), fields.c.superseded_at.is_(None))
        .values(superseded_at=func.now())
    )
    numbers = last_versions(connection, job_id)
    written = {**_makers(current.values()), "reviewer": by.name, "note": by.note}
    rows = [
        {**field_row(job_id, wanted[path]), **written, "version": numbers.get(path, 0) + 1}
        for path in changed
        if path in wanted
    ]
    if rows:
        connection.execute(insert(fields), rows)
    return [_change(path, current.get(path), wanted.get(path)) for path in changed]


def _differ(was: Row[Any] | None, value: FieldValue | None) -> bool:
    if was is None or value is None:
        return True
    return bool((was.text, was.value, was.date) != (value.text, value.value, value.date))


def _change(path: str, was: Row[Any] | None, value: FieldValue | None) -> dict[str, Any]:
    return {"path": path, "from": None if was is None else was.text, "to": None if value is None else value.text}


def _record(connection: Connection, review: Review, by: Reviewer, what: str, **more: Any) -> None:
    detail: Mapping[str, Any] = {"reviewer": by.name, "note": by.note, "review": review.review_id, **more}
    record_event(connection, f"review_{what}", job_id=review.job_id, tenant=review.tenant, detail=dict(detail))
