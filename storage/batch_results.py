"""What the lines of a batch came to, page by page: the rows of its output and error files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, and_, select

from storage.batch_schema import batch_lines
from storage.database import reading
from storage.schema import findings, jobs, results

#: Lines that are in memory at a time.
PAGE = 500
#: Lines that did not come to a result.
WITHOUT_RESULT = ("failed", "cancelled", "expired")


def pages(engine: Engine, batch_id: str, states: Sequence[str]) -> Iterator[list[dict[str, Any]]]:
    """Lines in these states in the order of the input, each with its job's result and findings."""
    after = -1
    while True:
        with reading(engine) as connection:
            rows = _page(connection, batch_id, states, after)
        if not rows:
            return
        yield rows
        after = rows[-1]["line_no"]


def _page(connection: Connection, batch_id: str, states: Sequence[str], after: int) -> list[dict[str, Any]]:
    of_job = ("document_id", "profile_version", "status", "reason", "created_at", "finished_at")
    found = (
        select(batch_lines, *(jobs.c[name] for name in of_job), results.c.result, results.c.attempt, results.c.verdict)
        .outerjoin(jobs, jobs.c.job_id == batch_lines.c.job_id)
        .outerjoin(results, results.c.job_id == batch_lines.c.job_id)
        .where(batch_lines.c.batch_id == batch_id, batch_lines.c.line_no > after, batch_lines.c.state.in_(states))
        .order_by(batch_lines.c.line_no)
        .limit(PAGE)
    )
    rows = connection.execute(found).mappings().all()
    told = _findings(connection, [row for row in rows if row["attempt"] is not None])
    return [{**row, "findings": told.get(row["job_id"], [])} for row in rows]


def _findings(connection: Connection, rows: Sequence[RowMapping]) -> dict[str, list[dict[str, Any]]]:
    """What the rules said of each result."""
    of_result = and_(findings.c.job_id == results.c.job_id, findings.c.attempt == results.c.attempt)
    shown = [findings.c[name] for name in ("rule", "outcome", "message", "path", "page", "bbox")]
    found = select(findings.c.job_id, *shown).join(results, of_result)
    wanted = found.where(findings.c.job_id.in_({row["job_id"] for row in rows})).order_by(findings.c.finding_id)
    told: dict[str, list[dict[str, Any]]] = {}
    for row in connection.execute(wanted).mappings():
        told.setdefault(row["job_id"], []).append({name.name: row[name.name] for name in shown})
    return told
