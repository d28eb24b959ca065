"""Accepting and refusing files: documents, jobs and submissions, all by upsert so that repetition is harmless."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from docmill.types import Document, Status
from storage.events import record_event
from storage.ports import Order, Receipt, Submission
from storage.schema import documents, jobs, submissions

#: By when a request that somebody waits for is overdue.
IMMEDIATE_DEADLINE_S = 60


def accept(
    connection: Connection, document: Document, *, blob_key: str, submission: Submission, order: Order
) -> Receipt:
    """Insert what is new of document and job, and the submission; see `ports.Jobs.accept`."""
    known = _known(connection, submission)
    if known is not None:
        return known
    _insert_document(connection, document, blob_key)
    created = _insert_job(connection, document, order)
    reason = None if created else _duplicate_reason(connection, order.job_id)
    return _insert_submission(
        connection,
        submission,
        sha256=document.sha256,
        outcome="accepted" if created else "duplicate",
        code=None if created else "duplicate",
        reason=reason,
        document_id=document.document_id,
        job_id=order.job_id,
    )


def refuse(connection: Connection, submission: Submission, *, code: str, reason: str, sha256: str | None) -> Receipt:
    """Insert the submission with its reason; see `ports.Jobs.refuse`."""
    known = _known(connection, submission)
    if known is not None:
        return known
    record_event(connection, "refused", tenant=submission.tenant, detail={"name": submission.name, "code": code})
    return _insert_submission(connection, submission, sha256=sha256, outcome="refused", code=code, reason=reason)


def _known(connection: Connection, submission: Submission) -> Receipt | None:
    row = connection.execute(
        select(submissions).where(
            submissions.c.tenant == submission.tenant,
            submissions.c.source == submission.source,
            submissions.c.name == submission.name,
            submissions.c.etag == submission.etag,
            submissions.c.profile == submission.profile,
        )
    ).one_or_none()
    if row is None:
        return None
    return Receipt(row.submission_id, row.outcome, row.document_id, row.job_id, row.reason)


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
    allowed_s = order.window_s or IMMEDIATE_DEADLINE_S
    values = {
        "job_id": order.job_id,
        "document_id": document.document_id,
        "batch_id": order.batch_id,
        "tenant": document.tenant,
        "profile": order.profile,
        "profile_version": order.profile_version,
        "status": Status.RECEIVED,
        "window_s": order.window_s,
        "deadline": func.now() + timedelta(seconds=allowed_s),
        "vip": order.vip,
        "ordering_key": order.ordering_key,
    }
    statement = insert(jobs).values(values).on_conflict_do_nothing().returning(jobs.c.job_id)
    created = connection.execute(statement).one_or_none() is not None
    if created:
        record_event(connection, "received", job_id=order.job_id, tenant=document.tenant)
    return created


def _duplicate_reason(connection: Connection, job_id: str) -> str:
    name = connection.execute(
        select(documents.c.name)
        .join(jobs, jobs.c.document_id == documents.c.document_id)
        .where(jobs.c.job_id == job_id)
    ).scalar_one()
    return f"the same bytes as {name}, already read as {job_id}: its result holds for this file too"


def _insert_submission(connection: Connection, submission: Submission, **outcome: str | None) -> Receipt:
    values = {
        "tenant": submission.tenant,
        "source": submission.source,
        "name": submission.name,
        "etag": submission.etag,
        "profile": submission.profile,
        "size_bytes": submission.size_bytes,
        **outcome,
    }
    statement = insert(submissions).values(values).on_conflict_do_nothing().returning(submissions.c.submission_id)
    number = connection.execute(statement).scalar_one_or_none()
    if number is None:
        known = _known(connection, submission)
        assert known is not None, "a conflicting submission was rolled back meanwhile"
        return known
    return Receipt(
        number, str(outcome["outcome"]), outcome.get("document_id"), outcome.get("job_id"), outcome.get("reason")
    )
