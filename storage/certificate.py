"""What became of every object of a batch, row by row: what a completeness certificate is made of and compared with.

Nothing is taken on trust: a file's hash is that of its bytes as they lie in the store now, a result's that of its JSON
as the database has it now.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, RowMapping, Select, select, union

from docmill.codec import canonical, encode, unpack
from docmill.errors import NotFound
from docmill.types import TERMINAL, PreparedDocument
from storage.batch_schema import batch_lines, batch_runs, files
from storage.blobs import Blobs, prepared_key
from storage.events import record_event
from storage.ports import Receipt
from storage.schema import batches, documents, events, fields, findings, jobs, results, tables

#: The event that tells of a file that was handed in with a batch, whatever became of it.
INPUT = "batch_input"
_OPEN_LINES = ("new", "open")

Row = dict[str, Any]


def note_input(connection: Connection, batch_id: str, receipt: Receipt, *, tenant: str, name: str, sha256: str) -> None:
    """Record a file of a batch: refused files and repeats have no job that would tell of it."""
    told = {"outcome": receipt.outcome, "code": receipt.code, "reason": receipt.reason, "name": name, "sha256": sha256}
    record_event(connection, INPUT, job_id=receipt.job_id, tenant=tenant, detail={"batch_id": batch_id, **told})


def is_over(connection: Connection, batch_id: str) -> bool:
    """Whether every job and every line of the batch has ended."""
    waits = select(jobs.c.job_id).where(jobs.c.job_id.in_(_job_ids(batch_id)), jobs.c.status.not_in(TERMINAL))
    lines = select(batch_lines.c.line_no).where(
        batch_lines.c.batch_id == batch_id, batch_lines.c.state.in_(_OPEN_LINES)
    )
    return not any(connection.execute(one.limit(1)).first() for one in (waits, lines))


def rows(connection: Connection, blobs: Blobs, batch_id: str) -> Iterator[Row]:
    """The batch, its inputs, lines, jobs, and each document with its file, pages and tables. Raises NotFound."""
    yield from _batch(connection, batch_id)
    yield from _inputs(connection, batch_id)
    yield from _lines(connection, batch_id)
    yield from _jobs(connection, batch_id)
    for document in connection.execute(_documents(batch_id)).mappings():
        yield _document(document, blobs)
        yield from _pages(document, blobs)
        yield from _tables(connection, document["document_id"])


# ---------------------------------------------------------------- the batch and what was handed in


def _batch(connection: Connection, batch_id: str) -> Iterator[Row]:
    found = connection.execute(select(batches).where(batches.c.batch_id == batch_id)).mappings().one_or_none()
    if found is None:
        raise NotFound(f"there is no batch {batch_id}; `docmill submit` and POST /v1/batches make one")
    yield {"kind": "batch", **_plain(found)}
    told = ("endpoint", "input_file_id", "status", "total", "completed", "failed", "errors")
    run = select(*(batch_runs.c[name] for name in told)).where(batch_runs.c.batch_id == batch_id)
    for row in connection.execute(run).mappings():
        yield {"kind": "run", **_plain(row)}


def _inputs(connection: Connection, batch_id: str) -> Iterator[Row]:
    told = (
        select(events.c.event_id, events.c.job_id, events.c.detail)
        .where(events.c.kind == INPUT, events.c.detail["batch_id"].astext == batch_id)
        .order_by(events.c.event_id)
    )
    for number, row in enumerate(connection.execute(told).mappings(), start=1):
        yield {"kind": "input", "number": number, "job_id": row["job_id"], **row["detail"]}


def _lines(connection: Connection, batch_id: str) -> Iterator[Row]:
    told = ("line_no", "custom_id", "profile", "file_id", "state", "job_id", "status_code", "code", "message")
    wanted = (
        select(*(batch_lines.c[name] for name in told), files.c.sha256.label("file_sha256"))
        .outerjoin(files, files.c.file_id == batch_lines.c.file_id)
        .where(batch_lines.c.batch_id == batch_id)
        .order_by(batch_lines.c.line_no)
    )
    for row in connection.execute(wanted).mappings():
        yield {"kind": "line", **_plain(row)}


# ---------------------------------------------------------------- jobs


def _job_ids(batch_id: str) -> Select[Any]:
    """Jobs that the batch made, and those that its files and lines share with others."""
    shared = select(events.c.job_id).where(
        events.c.kind == INPUT, events.c.detail["batch_id"].astext == batch_id, events.c.job_id.is_not(None)
    )
    own = select(jobs.c.job_id).where(jobs.c.batch_id == batch_id)
    of_lines = select(batch_lines.c.job_id).where(batch_lines.c.batch_id == batch_id, batch_lines.c.job_id.is_not(None))
    every = union(own, shared, of_lines).subquery()
    return select(every.c.job_id)


def _jobs(connection: Connection, batch_id: str) -> Iterator[Row]:
    told = ("job_id", "document_id", "profile", "profile_version", "status", "reason", "attempt", "finished_at")
    wanted = (
        select(*(jobs.c[name] for name in told), results.c.result, results.c.verdict, results.c.ruleset)
        .outerjoin(results, results.c.job_id == jobs.c.job_id)
        .where(jobs.c.job_id.in_(_job_ids(batch_id)))
        .order_by(jobs.c.job_id)
    )
    for row in connection.execute(wanted).mappings():
        values = _plain(row)
        result = values.pop("result")
        values["result_sha256"] = None if result is None else digest(result)
        for name, table in (("fields", fields), ("findings", findings)):
            values[name], values[f"{name}_sha256"] = _rows_of(connection, table, row["job_id"])
        yield {"kind": "job", **values}


def _rows_of(connection: Connection, table: Any, job_id: str) -> tuple[int, str]:
    """How many rows a job has in a table, and the hash of them all."""
    found = connection.execute(select(table).where(table.c.job_id == job_id).order_by(*table.primary_key)).mappings()
    plain = [_plain(row) for row in found]
    return len(plain), digest(plain)


# ---------------------------------------------------------------- documents


def _documents(batch_id: str) -> Select[Any]:
    of_jobs = select(jobs.c.document_id).where(jobs.c.job_id.in_(_job_ids(batch_id)))
    return select(documents).where(documents.c.document_id.in_(of_jobs)).order_by(documents.c.document_id)


def _document(row: RowMapping, blobs: Blobs) -> Row:
    """The file as it was accepted, and its bytes as they lie in the store."""
    told = ("document_id", "name", "source", "sha256", "size_bytes", "parser", "pages", "tables", "tokens")
    stored = _stored_sha256(blobs, row["blob_key"])
    state = "stored" if stored == row["sha256"] else "missing" if stored is None else "damaged"
    return {"kind": "file", **{name: row[name] for name in told}, "stored_sha256": stored, "state": state}


def _stored_sha256(blobs: Blobs, key: str) -> str | None:
    try:
        pieces = blobs.stream(key)
    except NotFound:
        return None
    hashed = hashlib.sha256()
    for piece in pieces:
        hashed.update(piece)
    return hashed.hexdigest()


def _pages(row: RowMapping, blobs: Blobs) -> Iterator[Row]:
    """Every page: as it was read, or missing with the reason. A document that was not parsed has none."""
    try:
        prepared = unpack(blobs.get(prepared_key(row["document_id"])), PreparedDocument)
    except NotFound:
        return
    about = {"kind": "page", "document_id": row["document_id"]}
    for page in prepared.pages:
        yield {
            **about,
            "page": page.number,
            "state": page.source,
            "blocks": len(page.blocks),
            "sha256": hashlib.sha256(encode(page)).hexdigest(),
        }
    for gone in prepared.missing:
        yield {**about, "page": gone.page, "state": "missing", "code": gone.code, "reason": gone.reason}


def _tables(connection: Connection, document_id: str) -> Iterator[Row]:
    told = ("document_id", "table_id", "pages", "rows", "cols", "caption", "unit", "scale", "reader", "cells")
    wanted = select(*(tables.c[name] for name in told)).where(tables.c.document_id == document_id)
    for row in connection.execute(wanted.order_by(tables.c.table_id)).mappings():
        values = _plain(row)
        yield {"kind": "table", **{name: value for name, value in values.items() if name != "cells"}} | {
            "cells_sha256": hashlib.sha256(row["cells"]).hexdigest()
        }


# ---------------------------------------------------------------- values as they are hashed


def digest(value: Any) -> str:
    """The hash of JSON, or of rows as JSON can hold them."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _plain(row: RowMapping) -> Row:
    """A row as JSON can hold it; decimals without the zeros that a column's type may add."""
    return {name: _as_json(value) for name, value in row.items()}


def _as_json(value: Any) -> Any:
    match value:
        case datetime():
            return value.isoformat()
        case Decimal():
            return f"{value.normalize():f}"
        case bytes() | memoryview():
            return hashlib.sha256(value).hexdigest()
        case _:
            return value
