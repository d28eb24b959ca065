"""The writes that end a stage. Each is fenced by the claim's attempt; a stale one raises and leaves nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, and_, delete, exists, func, select, update
from sqlalchemy.dialects.postgresql import insert

from docmill.codec import builtins, pack, unpack
from docmill.likeness import Likeness
from docmill.types import Extraction, FieldValue, Finding, PreparedDocument, Route, Status, Table, Verdict
from storage import ledger, parts, rules
from storage.fence import claimed_by
from storage.near_duplicates import link_near_duplicate
from storage.page_texts import grid_of, save_texts
from storage.ports import Claim, Waste
from storage.rows import insert_rows
from storage.schema import attempts, documents, fields, findings, jobs, results, reviews, tables
from storage.stages import RELEASED, Move, let_go


def move(connection: Connection, claim: Claim, status: Status, **values: Any) -> None:
    """The fenced compare-and-set by which a worker lets go of a job. Raises StaleAttempt."""
    changed = connection.execute(
        update(jobs).where(claimed_by(claim)).values({**RELEASED, **values, "status": status, "updated_at": func.now()})
    )
    if changed.rowcount != 1:
        raise rules.stale(claim)


def end_attempt(connection: Connection, claim: Claim, outcome: str, **values: Any) -> None:
    """Close the claim's row in `attempts`."""
    connection.execute(
        update(attempts)
        .where(attempts.c.job_id == claim.job_id, attempts.c.no == claim.attempt)
        .values({"ended_at": func.clock_timestamp(), "outcome": outcome, **values})
    )


def route_columns(route: Route) -> dict[str, Any]:
    """A route as columns of `jobs`."""
    return {
        "heat": route.heat,
        "length_class": route.length_class,
        "priority": route.priority,
        "lane": route.lane,
        "queue": route.queue,
        "hot_score": route.hot_score,
    }


def finish_parse(
    connection: Connection, claim: Claim, prepared: PreparedDocument, route: Route, *, likeness: Likeness, sent: bool
) -> None:
    """received → prepared → queued, with the document's facts."""
    told, routed = ("prepared", "queued"), {**rules.GOT_ON, **route_columns(route)}
    let_go(connection, claim, Move(Status.QUEUED, "finished", told, job=routed, worked_out=_mark(sent)))
    _save_document(connection, prepared)
    link_near_duplicate(connection, claim.tenant, prepared.document_id, likeness)


def _save_document(connection: Connection, prepared: PreparedDocument) -> None:
    """What was read of the document, unless it stands there already: another profile's job has read the same."""
    changed = connection.execute(
        update(documents)
        .where(documents.c.document_id == prepared.document_id, documents.c.parser.is_distinct_from(prepared.parser))
        .values(
            parser=prepared.parser,
            pages=len(prepared.pages),
            tables=len(prepared.tables),
            tokens=prepared.tokens,
            warnings=list(prepared.warnings),
        )
    )
    if changed.rowcount:
        _save_tables(connection, prepared)
        save_texts(connection, prepared)


def _save_tables(connection: Connection, prepared: PreparedDocument) -> None:
    connection.execute(delete(tables).where(tables.c.document_id == prepared.document_id))
    rows = [_table_row(prepared.document_id, table) for table in prepared.tables]
    if rows:
        connection.execute(insert(tables), rows)


def _table_row(document_id: str, table: Table) -> dict[str, Any]:
    return {
        "document_id": document_id,
        "table_id": table.table_id,
        "pages": list(table.pages),
        "regions": builtins(table.regions),
        "caption": table.caption,
        "unit": table.unit,
        "scale": table.scale,
        "rows": table.rows,
        "cols": table.cols,
        "reader": table.reader,
        "cells": pack(table.cells),
        "grid": grid_of(table),
    }


def _mark(sent: bool) -> tuple[str, ...]:
    """A job whose next message is about to be sent counts as published, in the same write."""
    return ("published_at",) if sent else ()


def finish_infer(connection: Connection, claim: Claim, extraction: Extraction, *, sent: bool) -> None:
    """running → validating, with the extraction and its cost."""
    read = {**_reading(extraction), "read_as": parts.read_as(claim.profile, claim.profile_version, claim.route)}
    told = ("validating",)
    let_go(connection, claim, Move(Status.VALIDATING, "finished", told, rules.GOT_ON, _mark(sent), attempt=read))
    if extraction.parts > 1:
        parts.forget(connection, claim.job_id)
    ledger.finish(connection, claim, extraction.usage)


def _reading(extraction: Extraction) -> dict[str, Any]:
    """An extraction as columns of `attempts`."""
    usage = extraction.usage
    return {
        "engine": extraction.engine,
        "model": extraction.model,
        "precision": extraction.precision,
        "prompt_sha256": extraction.prompt_sha256,
        "seed": extraction.seed,
        "parts": extraction.parts,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "queue_ms": usage.queue_ms,
        "prefill_ms": usage.prefill_ms,
        "decode_ms": usage.decode_ms,
        "finish_reason": extraction.finish_reason,
        "cost_usd": usage.cost_usd,
        "gpu_seconds": usage.gpu_seconds,
        "extraction": pack(extraction),
        "longest_output": extraction.longest_output or None,
    }


def repeated_reading(connection: Connection, claim: Claim) -> Extraction | None:
    """The reading that may stand for that of the claimed document, if there is one."""
    same_text = documents.c.near_duplicate_of == jobs.c.document_id, documents.c.similarity == rules.SAME_TEXT
    same_question = jobs.c.profile == claim.profile, jobs.c.profile_version == claim.profile_version
    found = connection.execute(
        select(jobs.c.job_id)
        .join(documents, and_(*same_text))
        .where(
            documents.c.document_id == claim.document_id,
            *same_question,
            jobs.c.status == Status.DONE,
            ~exists().where(reviews.c.job_id == jobs.c.job_id),
        )
    ).scalar_one_or_none()
    return latest_extraction(connection, found) if found is not None else None


def latest_extraction(connection: Connection, job_id: str) -> Extraction:
    """The extraction of the last attempt that finished reading."""
    data = connection.execute(
        select(attempts.c.extraction)
        .where(attempts.c.job_id == job_id, attempts.c.extraction.is_not(None))
        .order_by(attempts.c.no.desc())
        .limit(1)
    ).scalar_one()
    return unpack(data, Extraction)


def finish_validate(
    connection: Connection,
    claim: Claim,
    verdict: Verdict,
    extraction: Extraction,
    *,
    retry: Route | None,
    ends: Status | None,
    sent: bool,
) -> Status:
    """validating → done or needs_review with the one result, or failed without one, or queued again on `retry`."""
    status = Status.QUEUED if retry else ends or rules.ENDS_AS[verdict.outcome]
    reason = rules.reason_of(verdict)
    said = {"reason": reason}
    move = Move(status, "finished", (status,), job=said, worked_out=("finished_at",), attempt=said)
    if retry:
        routed, marks = {**rules.GOT_ON, **route_columns(retry)}, ("rejections", *_mark(sent))
        move = Move(status, "rejected", (status,), job=routed, worked_out=marks, attempt=said)
    let_go(connection, claim, move)
    if status in rules.WITH_RESULT:
        _save_result(connection, claim, verdict, extraction)
    if status == Status.NEEDS_REVIEW:
        insert_rows(connection, reviews, [{"job_id": claim.job_id, "reason": reason}])
    if status not in rules.WITH_RESULT:
        ledger.write_off(connection, claim.job_id, Waste.REJECTED)
    _save_findings(connection, claim, verdict.findings)
    return status


#: A job that a reviewer rejected may have been read again: its values have versions already.
_NEXT_VERSION = (
    "1 + coalesce((SELECT max(version) FROM fields AS older"
    " WHERE older.job_id = new.job_id AND older.path = new.path), 0)"
)
_ITS_PARSER = "(SELECT parser FROM jobs JOIN documents USING (document_id) WHERE jobs.job_id = new.job_id)"


def _save_result(connection: Connection, claim: Claim, verdict: Verdict, extraction: Extraction) -> None:
    result = {
        "job_id": claim.job_id,
        "attempt": claim.attempt,
        "result": extraction.result,
        "verdict": verdict.outcome,
        "ruleset": verdict.ruleset,
    }
    insert_rows(connection, results, [result])
    made_by = {"model": extraction.model, "prompt_sha256": extraction.prompt_sha256, "ruleset": verdict.ruleset}
    rows = [{**field_row(claim.job_id, value), **made_by} for value in verdict.fields]
    insert_rows(connection, fields, rows, worked_out={"version": _NEXT_VERSION, "parser": _ITS_PARSER})


def last_versions(connection: Connection, job_id: str) -> dict[str, int]:
    """The last version of each value."""
    highest = select(fields.c.path, func.max(fields.c.version)).where(fields.c.job_id == job_id)
    return {path: number for path, number in connection.execute(highest.group_by(fields.c.path))}


def field_row(job_id: str, value: FieldValue) -> dict[str, Any]:
    """A value as a row of `fields`."""
    return {
        "job_id": job_id,
        "path": value.path,
        "text": value.text,
        "value": value.value,
        "date": value.date,
        "unit": value.unit,
        "scale": value.scale,
        "page": value.page,
        "bbox": list(value.bbox) if value.bbox else None,
        "table_id": value.table_id,
        "row": value.row,
        "col": value.col,
        "verdict": value.verdict,
        "confidence": value.confidence,
    }


def _save_findings(connection: Connection, claim: Claim, found: Sequence[Finding]) -> None:
    rows = [
        {
            "job_id": claim.job_id,
            "attempt": claim.attempt,
            "rule": finding.rule,
            "outcome": finding.outcome,
            "message": finding.message,
            "path": finding.path,
            "page": finding.page,
            "bbox": list(finding.bbox) if finding.bbox else None,
        }
        for finding in found
    ]
    insert_rows(connection, findings, rows)
