"""The lines of batches that run: each gets a job, ends with it, or is ended with its batch. In pieces, and repeatable.

A document that was read with the same profile before is not read again: its line shares the job. So a batch that ends
ends only those jobs that it alone asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import (
    Connection,
    Engine,
    Interval,
    RowMapping,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from docmill.types import TERMINAL, Source, Status
from storage import files as file_rows
from storage.batch_schema import batch_lines, batch_runs, files
from storage.database import transactional
from storage.rules import CANCELLED, WITH_RESULT
from storage.schema import attempts, documents, events, jobs, ledger, reviews, submissions
from storage.stages import RELEASED

#: What an unfinished line is told, by how its batch ends.
UNFINISHED = {
    "cancelled": ("batch_cancelled", "This request was not executed: the batch was cancelled."),
    "expired": ("batch_expired", "This request could not be executed before the completion window expired."),
}


@dataclass(frozen=True, slots=True)
class Opened:
    """A line with the rows that its job is made of. `window_s` 0: as if somebody waited for it."""

    line_no: int
    job_id: str
    document: Mapping[str, Any]
    profile: str
    profile_version: str
    window_s: int
    deadline: datetime
    vip: bool
    ordering_key: str | None


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that gets no job, as an HTTP answer would say it."""

    line_no: int
    status_code: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class LineStore:
    """Lines of batches on PostgreSQL. Safe to use from many threads and workers."""

    engine: Engine

    @transactional
    def new(self, connection: Connection, batch: RowMapping, *, limit: int) -> list[RowMapping]:
        """Lines without a job, the most urgent first, with what is known of their file (nulls: there is none)."""
        there = or_(file_rows.is_there(), files.c.deleted_at > batch["created_at"])
        found = (
            select(batch_lines, *(files.c[name] for name in ("filename", "kind", "bytes", "sha256", "blob_key")))
            .outerjoin(files, (files.c.file_id == batch_lines.c.file_id) & (files.c.tenant == batch["tenant"]) & there)
            .where(batch_lines.c.batch_id == batch["batch_id"], batch_lines.c.state == "new")
            .order_by(
                case((batch_lines.c.priority == "high", 0), else_=1), batch_lines.c.deadline, batch_lines.c.line_no
            )
            .limit(limit)
        )
        return list(connection.execute(found).mappings())

    @transactional
    def room(self, connection: Connection, batch: RowMapping, *, most: int) -> int:
        """How many lines may be opened: a long batch waits here, not among the jobs that dispatch looks through."""
        open_now = select(func.count()).where(
            batch_lines.c.batch_id == batch["batch_id"], batch_lines.c.state == "open"
        )
        return max(0, most - connection.execute(open_now).scalar_one())

    @transactional
    def open(
        self, connection: Connection, batch: RowMapping, opened: Sequence[Opened], refused: Sequence[Refused]
    ) -> bool:
        """Give lines their jobs. False: the batch no longer runs, or another worker was first."""
        if not _still_runs(connection, batch["batch_id"]):
            return False
        if opened:
            fresh = _jobs_for(connection, batch, opened)
            _set_open(connection, batch["batch_id"], opened, fresh)
        if refused:
            _set_refused(connection, batch["batch_id"], refused)
        return True

    @transactional
    def settle(self, connection: Connection, batch: RowMapping, *, limit: int) -> int:
        """End the lines whose job has ended. Returns how many were ended."""
        # Once the batch is ending, a cancelled job is its own doing: `end` says so of the line.
        over = TERMINAL - {Status.CANCELLED} if batch["ending"] else TERMINAL
        ended = (
            select(batch_lines.c.line_no, batch_lines.c.job_id, jobs.c.status, jobs.c.reason)
            .join(jobs, jobs.c.job_id == batch_lines.c.job_id)
            .where(
                batch_lines.c.batch_id == batch["batch_id"],
                batch_lines.c.state == "open",
                jobs.c.status.in_(over),
            )
            .limit(limit)
            .with_for_update(of=batch_lines, skip_locked=True)
        )
        rows = connection.execute(ended).mappings().all()
        if rows:
            _set_ended(connection, batch, rows)
        return len(rows)

    @transactional
    def doomed(self, connection: Connection, batch: RowMapping, *, limit: int) -> list[RowMapping]:
        """Lines that will not be finished, with the job to cancel: null where it is not this batch's alone."""
        others = batch_lines.alias("others")
        shared = exists().where(
            others.c.job_id == jobs.c.job_id, others.c.state == "open", others.c.batch_id != batch["batch_id"]
        )
        elsewhere = exists().where(submissions.c.job_id == jobs.c.job_id, submissions.c.source != Source.BATCH)
        own = (jobs.c.batch_id == batch["batch_id"]) & ~shared & ~elsewhere & jobs.c.status.not_in(TERMINAL)
        spent = exists().where(ledger.c.job_id == jobs.c.job_id)
        plain = own & jobs.c.lease_until.is_(None) & ~spent
        found = (
            select(
                batch_lines.c.line_no,
                case((own, jobs.c.job_id)).label("job_id"),
                func.coalesce(plain, literal(False)).label("plain"),
            )
            .outerjoin(jobs, jobs.c.job_id == batch_lines.c.job_id)
            .where(batch_lines.c.batch_id == batch["batch_id"], batch_lines.c.state.in_(["new", "open"]))
            .order_by(batch_lines.c.state, batch_lines.c.line_no)
            .limit(limit)
        )
        return list(connection.execute(found).mappings())

    @transactional
    def end(self, connection: Connection, batch: RowMapping, lines: Sequence[RowMapping]) -> int:
        """End these lines with their batch, and the jobs that have cost nothing yet. Those that are done stay."""
        _cancel_plain(connection, [line["job_id"] for line in lines if line["plain"]], batch["tenant"])
        code, message = UNFINISHED[batch["ending"]]
        has_ended = exists().where(
            jobs.c.job_id == batch_lines.c.job_id, jobs.c.status.in_(TERMINAL - {Status.CANCELLED})
        )
        ended = connection.execute(
            update(batch_lines)
            .where(
                batch_lines.c.batch_id == batch["batch_id"],
                batch_lines.c.line_no.in_([line["line_no"] for line in lines]),
                batch_lines.c.state.in_(["new", "open"]),
                ~has_ended,
            )
            .values(state=batch["ending"], code=code, message=message)
        ).rowcount
        _count(connection, batch["batch_id"], failed=ended)
        return ended

    @transactional
    def unfinished(self, connection: Connection, batch_id: str) -> bool:
        """Whether any line waits for its job or its job's end."""
        of_batch = batch_lines.c.batch_id == batch_id
        waiting = [exists().where(of_batch, batch_lines.c.state == state) for state in ("new", "open")]
        return bool(connection.execute(select(or_(*waiting))).scalar_one())


def _still_runs(connection: Connection, batch_id: str) -> bool:
    """Hold the batch for this transaction: it is not cancelled in between."""
    one = select(batch_runs.c.status, batch_runs.c.ending).where(batch_runs.c.batch_id == batch_id)
    row = connection.execute(one.with_for_update()).one()
    return row.status == "in_progress" and row.ending is None


def _count(connection: Connection, batch_id: str, *, completed: int = 0, failed: int = 0) -> None:
    connection.execute(
        update(batch_runs)
        .where(batch_runs.c.batch_id == batch_id)
        .values(completed=batch_runs.c.completed + completed, failed=batch_runs.c.failed + failed)
    )


# ---------------------------------------------------------------- opening


def _jobs_for(connection: Connection, batch: RowMapping, opened: Sequence[Opened]) -> set[str]:
    """The documents, jobs and submissions of the lines; the jobs that are begun (again) for them."""
    connection.execute(upsert(documents).on_conflict_do_nothing(), [dict(line.document) for line in opened])
    by_job = {line.job_id: line for line in reversed(opened)}
    made = _insert_jobs(connection, batch, list(by_job.values()))
    present = [line for job_id, line in by_job.items() if job_id not in made]
    again = _begin_again(connection, batch, present)
    _hasten(connection, [line for line in present if line.job_id not in again])
    _insert_submissions(connection, batch["tenant"], opened, made)
    told = [("received", job_id) for job_id in made] + [("begun_again", job_id) for job_id in again]
    rows = [{"kind": kind, "job_id": job_id, "tenant": batch["tenant"], "detail": {}} for kind, job_id in told]
    if rows:
        connection.execute(insert(events), rows)
    return made | again


def _insert_jobs(connection: Connection, batch: RowMapping, lines: Sequence[Opened]) -> set[str]:
    rows = [
        {
            "job_id": line.job_id,
            "document_id": line.document["document_id"],
            "batch_id": batch["batch_id"],
            "tenant": batch["tenant"],
            "profile": line.profile,
            "profile_version": line.profile_version,
            "status": Status.RECEIVED,
            "window_s": line.window_s,
            "deadline": line.deadline,
            "vip": line.vip,
            "ordering_key": line.ordering_key,
            # Lines of one ordering key are read in the order of the file, and a transaction has one time for all.
            "after": timedelta(microseconds=number),
        }
        for number, line in enumerate(sorted(lines, key=lambda line: line.line_no))
    ]
    added = upsert(jobs).values(created_at=func.now() + bindparam("after", type_=Interval)).on_conflict_do_nothing()
    return set(connection.execute(added.returning(jobs.c.job_id), rows).scalars())


def _begin_again(connection: Connection, batch: RowMapping, lines: Sequence[Opened]) -> set[str]:
    """Jobs that ended without a result before this batch came are read again for it, unless a person ended them."""
    decided = exists().where(reviews.c.job_id == jobs.c.job_id)
    again: set[str] = set()
    for need, ids in _by_need(lines).items():
        begun = (
            update(jobs)
            .where(
                jobs.c.job_id.in_(ids),
                jobs.c.status.in_([Status.FAILED, Status.CANCELLED]),
                jobs.c.finished_at < batch["created_at"],
                ~decided,
            )
            .values(
                {**RELEASED, **_need(need), "status": Status.RECEIVED, "reason": None, "finished_at": None}
                | {"lost": 0, "retries": 0, "rejections": 0, "batch_id": batch["batch_id"], "updated_at": func.now()}
            )
            .returning(jobs.c.job_id)
        )
        again |= set(connection.execute(begun).scalars())
    return again


def _hasten(connection: Connection, lines: Sequence[Opened]) -> None:
    """Jobs that are under way: the nearer deadline holds."""
    for need, ids in _by_need(lines).items():
        sooner = jobs.c.job_id.in_(ids), jobs.c.status.not_in(TERMINAL), jobs.c.deadline > need[1]
        connection.execute(update(jobs).where(*sooner).values(_need(need)))


def _by_need(lines: Iterable[Opened]) -> dict[tuple[int, datetime], list[str]]:
    """Jobs by window and deadline: mostly one for a whole batch."""
    found: dict[tuple[int, datetime], list[str]] = {}
    for line in lines:
        found.setdefault((line.window_s, line.deadline), []).append(line.job_id)
    return found


def _need(need: tuple[int, datetime]) -> dict[str, Any]:
    return {"window_s": need[0], "deadline": need[1], "needed_at": func.now()}


def _insert_submissions(connection: Connection, tenant: str, lines: Sequence[Opened], made: set[str]) -> None:
    rows = [
        {
            "tenant": tenant,
            "source": Source.BATCH,
            "name": line.document["name"],
            "etag": line.document["sha256"],
            "profile": line.profile,
            "profile_version": line.profile_version,
            "size_bytes": line.document["size_bytes"],
            "sha256": line.document["sha256"],
            "outcome": "accepted" if line.job_id in made else "duplicate",
            "document_id": line.document["document_id"],
            "job_id": line.job_id,
        }
        for line in lines
    ]
    connection.execute(upsert(submissions).on_conflict_do_nothing(), rows)


def _set_open(connection: Connection, batch_id: str, lines: Sequence[Opened], fresh: set[str]) -> None:
    """The first line of a job that was begun for it has it read; the others share."""
    own = {line.job_id: line.line_no for line in reversed(lines) if line.job_id in fresh}
    rows = [{"no": line.line_no, "job": line.job_id, "own": own.get(line.job_id) == line.line_no} for line in lines]
    one = batch_lines.c.batch_id == batch_id, batch_lines.c.line_no == bindparam("no"), batch_lines.c.state == "new"
    opened = update(batch_lines).where(*one).values(state="open", job_id=bindparam("job"), fresh=bindparam("own"))
    connection.execute(opened, rows)


def _set_refused(connection: Connection, batch_id: str, refused: Sequence[Refused]) -> None:
    rows = [{"no": one.line_no, "http": one.status_code, "word": one.code, "why": one.message} for one in refused]
    one = batch_lines.c.batch_id == batch_id, batch_lines.c.line_no == bindparam("no"), batch_lines.c.state == "new"
    values: dict[str, Any] = {"status_code": bindparam("http"), "code": bindparam("word"), "message": bindparam("why")}
    changed = connection.execute(update(batch_lines).where(*one).values(state="failed", **values), rows)
    _count(connection, batch_id, failed=changed.rowcount)


# ---------------------------------------------------------------- ending


def _set_ended(connection: Connection, batch: RowMapping, rows: Sequence[RowMapping]) -> None:
    used = _used(connection, {row["job_id"] for row in rows})
    nothing = {"prompt_tokens": 0, "cached_tokens": 0, "output_tokens": 0, "cost_usd": 0}
    values = [
        {"no": row["line_no"], "now": _state(row["status"]), "why": row["reason"]}
        | {f"{name}_": value for name, value in used.get(row["job_id"], nothing).items()}
        for row in rows
    ]
    one = batch_lines.c.batch_id == batch["batch_id"], batch_lines.c.line_no == bindparam("no")
    taken: dict[str, Any] = {name: bindparam(f"{name}_") for name in nothing}
    connection.execute(
        update(batch_lines).where(*one).values(state=bindparam("now"), message=bindparam("why"), **taken), values
    )
    done = sum(value["now"] == "completed" for value in values)
    _count(connection, batch["batch_id"], completed=done, failed=len(values) - done)


def _state(status: str) -> str:
    return "completed" if status in WITH_RESULT else "failed"


def _used(connection: Connection, job_ids: set[str]) -> dict[str, dict[str, Any]]:
    """Tokens and money of jobs, all attempts together."""
    names = ("prompt_tokens", "cached_tokens", "output_tokens", "cost_usd")
    sums = [func.coalesce(func.sum(attempts.c[name]), 0).label(name) for name in names]
    found = select(attempts.c.job_id, *sums).where(attempts.c.job_id.in_(job_ids)).group_by(attempts.c.job_id)
    return {row["job_id"]: {name: row[name] for name in names} for row in connection.execute(found).mappings()}


def _cancel_plain(connection: Connection, job_ids: Sequence[str], tenant: str) -> None:
    """Cancel jobs that nobody holds and that have cost nothing: many at once."""
    cancelled = connection.execute(
        update(jobs)
        .where(jobs.c.job_id.in_(job_ids), jobs.c.status.not_in(TERMINAL), jobs.c.lease_until.is_(None))
        .values(
            {**RELEASED, "status": Status.CANCELLED, "reason": CANCELLED}
            | {"finished_at": func.now(), "updated_at": func.now()}
        )
        .returning(jobs.c.job_id)
    )
    rows = [{"kind": "cancelled", "job_id": job_id, "tenant": tenant, "detail": {}} for job_id in cancelled.scalars()]
    if rows:
        connection.execute(insert(events), rows)
