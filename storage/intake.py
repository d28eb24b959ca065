"""Accepting and refusing files: documents, jobs and submissions, all by upsert so that repetition is harmless."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, func, literal, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from docmill.types import TERMINAL, Document, Status
from storage.events import record_event
from storage.ports import Order, Receipt, Submission
from storage.rules import duplicate_reason, seconds_allowed
from storage.schema import documents, jobs, submissions

#: What makes two submissions the same file at the same door.
SAME_FILE = ("tenant", "source", "name", "etag", "profile", "profile_version")


def accept(
    connection: Connection, document: Document, *, blob_key: str, submission: Submission, order: Order
) -> Receipt:
    """Insert what is new of document and job, and the submission; see `ports.Jobs.accept`."""
    known = _known(connection, submission)
    if known is not None and known.job_id is not None:
        _hasten(connection, known.job_id, order)
        return known
    _insert_document(connection, document, blob_key)
    created = _insert_job(connection, document, order)
    job_id, reason = (order.job_id, None) if created else _present_job(connection, document, order)
    if not created:
        _hasten(connection, job_id, order)
    return _insert_submission(
        connection,
        submission,
        sha256=document.sha256,
        outcome="accepted" if created else "duplicate",
        code=None if created else "duplicate",
        reason=reason,
        document_id=document.document_id,
        job_id=job_id,
    )


def refuse(connection: Connection, submission: Submission, *, code: str, reason: str, sha256: str | None) -> Receipt:
    """Insert the submission with its reason; see `ports.Jobs.refuse`."""
    known = _known(connection, submission)
    if known is not None and (known.outcome != "refused" or known.reason == reason):
        return known
    record_event(connection, "refused", tenant=submission.tenant, detail={"name": submission.name, "code": code})
    return _insert_submission(connection, submission, sha256=sha256, outcome="refused", code=code, reason=reason)


def _known(connection: Connection, submission: Submission) -> Receipt | None:
    row = connection.execute(
        select(submissions).where(*(submissions.c[name] == getattr(submission, name) for name in SAME_FILE))
    ).one_or_none()
    if row is None:
        return None
    return Receipt(row.submission_id, row.outcome, row.document_id, row.job_id, row.code, row.reason)


def _insert_document(connection: Connection, document: Document, blob_key: str) -> None:
    values = {
        "document_id": document.document_id,
        "tenant": document.tenant,
        "sha256": document.sha256,
        "size_bytes": document.size_bytes,
        "name": document.name,
        "source": document.source,
        "blob_key": blob_key,
    }
    connection.execute(insert(documents).values(values).on_conflict_do_nothing())


def _insert_job(connection: Connection, document: Document, order: Order) -> bool:
    values = {
        "job_id": order.job_id,
        "document_id": document.document_id,
        "batch_id": order.batch_id,
        "tenant": document.tenant,
        "profile": order.profile,
        "profile_version": order.profile_version,
        "status": Status.RECEIVED,
        "window_s": order.window_s,
        "deadline": func.now() + timedelta(seconds=seconds_allowed(order)),
        "vip": order.vip,
        "ordering_key": order.ordering_key,
    }
    statement = insert(jobs).values(values).on_conflict_do_nothing().returning(jobs.c.job_id)
    created = connection.execute(statement).one_or_none() is not None
    if created:
        record_event(connection, "received", job_id=order.job_id, tenant=document.tenant)
    return created


def _present_job(connection: Connection, document: Document, order: Order) -> tuple[str, str]:
    """The job that stands for the same bytes and profile, and what to say of it."""
    row = connection.execute(
        select(jobs.c.job_id, documents.c.name)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .where(
            jobs.c.document_id == document.document_id,
            jobs.c.profile == order.profile,
            jobs.c.profile_version == order.profile_version,
        )
    ).one()
    return row.job_id, duplicate_reason(row.name, row.job_id)


def _hasten(connection: Connection, job_id: str, order: Order) -> None:
    """Somebody needs the result sooner than it was ordered first: the nearer deadline holds."""
    deadline = func.now() + timedelta(seconds=seconds_allowed(order))
    connection.execute(
        update(jobs)
        .where(jobs.c.job_id == job_id, jobs.c.status.not_in(TERMINAL), jobs.c.deadline > deadline)
        .values(
            deadline=deadline, window_s=order.window_s, needed_at=func.now(), vip=or_(jobs.c.vip, literal(order.vip))
        )
    )


def _insert_submission(connection: Connection, submission: Submission, **outcome: str | None) -> Receipt:
    """The file's record. A refusal is not for ever: the same file handed in again (a limit was raised) replaces it."""
    values = {
        "tenant": submission.tenant,
        "source": submission.source,
        "name": submission.name,
        "etag": submission.etag,
        "profile": submission.profile,
        "profile_version": submission.profile_version,
        "size_bytes": submission.size_bytes,
        **outcome,
    }
    upsert = insert(submissions).values(values)
    again = upsert.on_conflict_do_update(
        index_elements=SAME_FILE, set_={**outcome, "created_at": func.now()}, where=submissions.c.outcome == "refused"
    )
    number = connection.execute(again.returning(submissions.c.submission_id)).scalar_one_or_none()
    if number is None:
        known = _known(connection, submission)
        assert known is not None, "a submission that stands in the way is there to be read"
        return known
    return Receipt(
        number,
        str(outcome["outcome"]),
        outcome.get("document_id"),
        outcome.get("job_id"),
        outcome.get("code"),
        outcome.get("reason"),
    )
