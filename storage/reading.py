"""Reads for the doors: one job, lists, the rows of a table."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Row, Select, insert, select, text

from docmill.errors import NotFound
from docmill.types import BBox, Finding, Heat, LengthClass, Outcome, Record, Status
from storage.ports import Stage
from storage.review import current_fields
from storage.rules import no_such_job
from storage.schema import attempts, batches, documents, findings, jobs, results


def record(connection: Connection, job_id: str, *, tenant: str | None = None) -> Record:
    """One job with its result and findings. Raises NotFound, also for another tenant's."""
    statement = _records().where(jobs.c.job_id == job_id)
    if tenant is not None:
        statement = statement.where(jobs.c.tenant == tenant)
    row = connection.execute(statement).one_or_none()
    if row is None:
        raise no_such_job(job_id)
    return _record_of(row, _findings(connection, row))


def records(connection: Connection, *, tenant: str | None, limit: int, status: Status | None = None) -> list[Record]:
    """The latest jobs first, without findings."""
    statement = _records().order_by(jobs.c.created_at.desc(), jobs.c.job_id).limit(limit)
    if tenant is not None:
        statement = statement.where(jobs.c.tenant == tenant)
    if status is not None:
        statement = statement.where(jobs.c.status == status)
    return [_record_of(row, ()) for row in connection.execute(statement)]


def document(connection: Connection, document_id: str, *, tenant: str) -> dict[str, Any]:
    """A document's row with the ids of its jobs. Raises NotFound, also for another tenant's."""
    columns = [column for column in documents.c if column.name != "blob_key"]
    row = connection.execute(
        select(*columns).where(documents.c.document_id == document_id, documents.c.tenant == tenant)
    ).one_or_none()
    if row is None:
        raise NotFound(f"there is no document {document_id}; POST /v1/documents makes one")
    ids = connection.execute(select(jobs.c.job_id).where(jobs.c.document_id == document_id)).scalars()
    return {**row._mapping, "jobs": list(ids)}


def fields(connection: Connection, job_id: str) -> list[dict[str, Any]]:
    """The values of a job with their places; decimals as strings, so that JSON loses no digit."""
    shown = ("path", "text", "unit", "page", "bbox", "verdict", "confidence", "version", "reviewer")
    return [
        {**{name: row._mapping[name] for name in shown}, "value": None if row.value is None else f"{row.value:f}"}
        for row in current_fields(connection, job_id)
    ]


def view(
    connection: Connection, name: str, *, tenant: str | None = None, limit: int = 1000, order_by: str = "1"
) -> list[dict[str, Any]]:
    """Rows of one of our views; `name` and `order_by` are code, never input."""
    where = "WHERE tenant = :tenant" if tenant is not None else ""
    statement = text(f"SELECT * FROM {name} {where} ORDER BY {order_by} LIMIT :limit")
    parameters = {"limit": limit} | ({"tenant": tenant} if tenant is not None else {})
    return [dict(row._mapping) for row in connection.execute(statement, parameters)]


def new_batch(connection: Connection, batch_id: str, tenant: str, *, label: str) -> str:
    """A batch that jobs may belong to."""
    connection.execute(insert(batches).values(batch_id=batch_id, tenant=tenant, label=label))
    return batch_id


def _records() -> Select[Any]:
    return (
        select(jobs, documents.c.pages, documents.c.tables, documents.c.tokens, results.c.result)
        .join(documents, documents.c.document_id == jobs.c.document_id)
        .outerjoin(results, results.c.job_id == jobs.c.job_id)
    )


def _findings(connection: Connection, row: Row[Any]) -> tuple[Finding, ...]:
    """The findings of the last attempt that was validated."""
    last = (
        select(attempts.c.no)
        .where(
            attempts.c.job_id == row.job_id,
            attempts.c.stage == Stage.VALIDATE,
            attempts.c.outcome.in_(["finished", "rejected"]),
        )
        .order_by(attempts.c.no.desc())
        .limit(1)
        .scalar_subquery()
    )
    rows = connection.execute(
        select(findings)
        .where(findings.c.job_id == row.job_id, findings.c.attempt == last)
        .order_by(findings.c.finding_id)
    )
    return tuple(
        Finding(f.rule, Outcome(f.outcome), f.message, f.path, f.page, BBox(*f.bbox) if f.bbox else None) for f in rows
    )


def _record_of(row: Row[Any], found: tuple[Finding, ...]) -> Record:
    return Record(
        job_id=row.job_id,
        document_id=row.document_id,
        tenant=row.tenant,
        profile=row.profile,
        profile_version=row.profile_version,
        status=Status(row.status),
        attempt=row.attempt,
        reason=row.reason,
        heat=Heat(row.heat) if row.heat else None,
        length_class=LengthClass(row.length_class) if row.length_class else None,
        priority=row.priority,
        lane=row.lane,
        hot_score=row.hot_score,
        pages=row.pages,
        tables=row.tables,
        tokens=row.tokens,
        created_at=row.created_at,
        finished_at=row.finished_at,
        result=row.result,
        findings=found,
    )
