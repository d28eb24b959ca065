"""Batches as the API runs them: the state machine, and how its input is read in pieces that a kill cannot repeat.

    validating ─▶ failed                                  finalizing ─▶ completed
        │ └─────▶ in_progress ─▶ finalizing               in_progress, at its window's end ─▶ expired
        └───────────────┴─────▶ cancelling ─▶ cancelled

Every step is one transaction that is fenced by what it started from (status, position of the input), so a worker that
dies repeats at most one step, and two workers on one batch do no harm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from docmill.errors import NotFound, RequestError
from storage import files, webhooks
from storage.batch_schema import batch_lines, batch_runs
from storage.database import transactional
from storage.events import record_event
from storage.files import NewFile, new_id, page_of, place_of
from storage.schema import batches

LIVE = ("validating", "in_progress", "finalizing", "cancelling")
#: Output files go after this time, unless the caller says otherwise.
OUTPUT_KEEP_S = 30 * 24 * 3600
#: Errors of an input file that are told; a file of a hundred thousand bad lines needs no more.
MAX_ERRORS = 100


class KeyReused(RequestError):
    """An Idempotency-Key came again with another request."""

    code = "idempotency_key_reused"


@dataclass(frozen=True, slots=True)
class NewBatch:
    """What a caller asks for. `request_sha256` tells requests of one Idempotency-Key apart."""

    tenant: str
    endpoint: str
    input_file_id: str
    completion_window: str
    window_s: int
    request_sha256: str
    metadata: Mapping[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    output_keep_s: int = OUTPUT_KEEP_S
    parent_batch_id: str | None = None
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One request of the input. With a `code` it is refused for itself; the batch goes on."""

    line_no: int
    custom_id: str
    profile: str
    file_id: str | None = None
    priority: str | None = None
    deadline: datetime | None = None
    ordering_key: str | None = None
    status_code: int | None = None
    code: str | None = None
    message: str | None = None

    def row(self, batch_id: str) -> dict[str, Any]:
        """As a row of `batch_lines`."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {**values, "batch_id": batch_id, "state": "failed" if self.code else "new"}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the input: its lines, what is wrong with it, and where the next piece begins."""

    lines: Sequence[Line]
    errors: Sequence[Mapping[str, Any]]
    position: int
    lines_read: int
    over: bool
    model: str | None = None


def error_of(code: str, message: str, *, line: int | None = None, param: str | None = None) -> dict[str, Any]:
    """An error of the whole batch, in OpenAI's form."""
    return {"code": code, "message": message, "param": param, "line": line}


@dataclass(frozen=True, slots=True)
class BatchStore:
    """Batches on PostgreSQL. Safe to use from many threads."""

    engine: Engine

    @transactional
    def create(self, connection: Connection, new: NewBatch) -> RowMapping:
        """Record a batch; the same request with the same Idempotency-Key gives the one that there is.

        A child has its lines from its parent: that the input was deleted since does not matter.
        """
        if new.idempotency_key is not None and (known := _known(connection, new)) is not None:
            return known
        named = () if new.parent_batch_id else (new.input_file_id, *new.options.get("file_ids", ()))
        for file_id in named:
            files.get(connection, file_id, tenant=new.tenant)
        return _insert(connection, new)

    @transactional
    def get(self, connection: Connection, batch_id: str, *, tenant: str | None = None) -> RowMapping:
        """One batch. Raises NotFound, also for another tenant's."""
        return _get(connection, batch_id, tenant)

    @transactional
    def page(
        self, connection: Connection, *, tenant: str, after: str | None, limit: int
    ) -> tuple[list[RowMapping], bool]:
        """A page of a tenant's batches, the newest first, and whether there are more."""
        key = batch_runs.c.batch_id
        start = place_of(connection, batch_runs, key, after, tenant=tenant) if after else None
        if after and start is None:
            raise no_such_batch(after)
        wanted = select(batch_runs).where(batch_runs.c.tenant == tenant)
        return page_of(connection, wanted, batch_runs, key, start, limit=limit, ascending=False)

    @transactional
    def live(self, connection: Connection) -> list[str]:
        """Batches that are not over, the oldest first."""
        found = select(batch_runs.c.batch_id).where(batch_runs.c.status.in_(LIVE)).order_by(batch_runs.c.created_at)
        return list(connection.execute(found).scalars())

    @transactional
    def cancel(self, connection: Connection, batch_id: str, *, tenant: str) -> RowMapping:
        """Ask for its end. One that is being finished or is over stays as it is."""
        _get(connection, batch_id, tenant)
        stops = update(batch_runs).where(
            batch_runs.c.batch_id == batch_id,
            batch_runs.c.status.in_(["validating", "in_progress"]),
            batch_runs.c.ending.is_(None),
        )
        connection.execute(stops.values(status="cancelling", ending="cancelled", cancelling_at=func.now()))
        return _get(connection, batch_id, tenant)

    # ------------------------------------------------------------ validating

    @transactional
    def add_lines(self, connection: Connection, batch: RowMapping, chunk: Chunk) -> bool:
        """Keep a piece of the input and remember where the next begins. False: another worker was first."""
        place = {"position": chunk.position, "lines_read": chunk.lines_read, "model": chunk.model}
        if not _fenced(connection, batch, **place):
            return False
        twice = _insert_lines(connection, batch["batch_id"], chunk.lines)
        errors = [*batch["errors"], *chunk.errors, *twice][:MAX_ERRORS]
        if len(errors) > len(batch["errors"]):
            one = batch_runs.c.batch_id == batch["batch_id"]
            connection.execute(update(batch_runs).where(one).values(errors=errors))
        if chunk.over:
            _conclude_reading(connection, batch["batch_id"])
        return True

    @transactional
    def copy_failed(self, connection: Connection, batch: RowMapping) -> bool:
        """The lines of a child: those of its parent that have no result."""
        if not _fenced(connection, batch, position=1):
            return False
        kept = ("custom_id", "profile", "file_id", "priority", "ordering_key")
        lines = batch_lines.c
        number = func.row_number().over(order_by=lines.line_no)
        failed = select(
            literal(batch["batch_id"]),
            number,
            literal("new"),
            *(lines[name] for name in kept),
        ).where(lines.batch_id == batch["parent_batch_id"], lines.state != "completed")
        connection.execute(insert(batch_lines).from_select(["batch_id", "line_no", "state", *kept], failed))
        _conclude_reading(connection, batch["batch_id"])
        return True

    @transactional
    def fail(self, connection: Connection, batch_id: str, errors: Sequence[Mapping[str, Any]]) -> None:
        """validating → failed, with what is wrong with its input."""
        _fail(connection, batch_id, errors)

    @transactional
    def tell_estimate(self, connection: Connection, batch_id: str, estimate: Mapping[str, Any]) -> None:
        """The end of a dry run: what the batch would take, and no line of it."""
        connection.execute(delete(batch_lines).where(batch_lines.c.batch_id == batch_id))
        _move(connection, batch_id, "validating", "completed", estimate=dict(estimate), total=0, failed=0)

    # ------------------------------------------------------------ ending

    @transactional
    def decide_end(self, connection: Connection, batch_id: str, ending: str) -> None:
        """in_progress → finalizing when every line has ended; at its window's end it stays what it is until then."""
        one = update(batch_runs).where(
            batch_runs.c.batch_id == batch_id, batch_runs.c.status == "in_progress", batch_runs.c.ending.is_(None)
        )
        moved = {"status": "finalizing", "finalizing_at": func.now()} if ending == "completed" else {}
        connection.execute(one.values(ending=ending, **moved))

    @transactional
    def finish(self, connection: Connection, batch: RowMapping, output: NewFile | None, errors: NewFile | None) -> bool:
        """The batch is over: its files, its usage, its event. False: another worker was first."""
        one = select(batch_runs.c.status).where(batch_runs.c.batch_id == batch["batch_id"]).with_for_update()
        if connection.execute(one).scalar_one() != batch["status"]:
            return False
        for new in filter(None, (output, errors)):
            files.add(connection, new)
        return _move(
            connection,
            batch["batch_id"],
            batch["status"],
            batch["ending"],
            output_file_id=output.file_id if output else None,
            error_file_id=errors.file_id if errors else None,
            **_usage(connection, batch["batch_id"]),
        )

    @transactional
    def drop_lines(self, connection: Connection, batch_id: str) -> None:
        """The lines of a batch that was cancelled before they were all read."""
        connection.execute(delete(batch_lines).where(batch_lines.c.batch_id == batch_id))


def no_such_batch(batch_id: str) -> NotFound:
    """Also for another tenant's."""
    return NotFound(f"there is no batch {batch_id}; GET /v1/batches lists those that exist")


def _get(connection: Connection, batch_id: str, tenant: str | None) -> RowMapping:
    wanted = select(batch_runs).where(batch_runs.c.batch_id == batch_id)
    if tenant is not None:
        wanted = wanted.where(batch_runs.c.tenant == tenant)
    row = connection.execute(wanted).mappings().one_or_none()
    if row is None:
        raise no_such_batch(batch_id)
    return row


def _known(connection: Connection, new: NewBatch) -> RowMapping | None:
    """The batch of this Idempotency-Key. Whoever else comes with the key now waits until this call is over."""
    name = f"{new.tenant}\0{new.idempotency_key}".encode().hex()
    connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(name, 0))))
    mine = batch_runs.c.tenant == new.tenant, batch_runs.c.idempotency_key == new.idempotency_key
    row = connection.execute(select(batch_runs).where(*mine)).mappings().one_or_none()
    if row is not None and row["request_sha256"] != new.request_sha256:
        raise KeyReused(
            f"the Idempotency-Key {new.idempotency_key!r} made {row['batch_id']} of another request: take a new key"
        )
    return row


def _insert(connection: Connection, new: NewBatch) -> RowMapping:
    batch_id = new_id("batch_")
    connection.execute(insert(batches).values(batch_id=batch_id, tenant=new.tenant, label="api"))
    values = {name: getattr(new, name) for name in NewBatch.__slots__ if name != "window_s"}
    values["expires_at"] = func.now() + timedelta(seconds=new.window_s)
    made = insert(batch_runs).values(batch_id=batch_id, status="validating", **values).returning(batch_runs)
    row = connection.execute(made).mappings().one()
    record_event(connection, "batch_created", tenant=new.tenant, detail={"batch_id": batch_id})
    return row


def _fenced(connection: Connection, batch: RowMapping, **values: Any) -> bool:
    """Change a batch that is being read, if nobody has since it was looked at."""
    changed = update(batch_runs).where(
        batch_runs.c.batch_id == batch["batch_id"],
        batch_runs.c.status == "validating",
        batch_runs.c.ending.is_(None),
        batch_runs.c.position == batch["position"],
        batch_runs.c.lines_read == batch["lines_read"],
    )
    return connection.execute(changed.values(values)).rowcount == 1


def _insert_lines(connection: Connection, batch_id: str, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Insert; the errors of those whose custom_id has been there."""
    if not lines:
        return []
    added = upsert(batch_lines).on_conflict_do_nothing().returning(batch_lines.c.line_no)
    there = set(connection.execute(added, [line.row(batch_id) for line in lines]).scalars())
    return [
        error_of(
            "duplicate_custom_id",
            f"The custom_id {line.custom_id!r} stands in an earlier line too: give each line its own.",
            line=line.line_no,
            param="custom_id",
        )
        for line in lines
        if line.line_no not in there
    ]


def _conclude_reading(connection: Connection, batch_id: str) -> None:
    """The whole input has been read: the batch begins, or fails for what was found."""
    row = _get(connection, batch_id, None)
    failed = func.count().filter(batch_lines.c.state == "failed")
    counts = select(func.count().label("total"), failed.label("failed")).where(batch_lines.c.batch_id == batch_id)
    total, refused = connection.execute(counts).one()
    if not row["errors"] and not total:
        _fail(connection, batch_id, [error_of("empty_file", "The input has no request: write one JSON object a line.")])
    elif row["errors"]:
        _fail(connection, batch_id, row["errors"])
    elif row["options"].get("dry_run"):
        one = update(batch_runs).where(batch_runs.c.batch_id == batch_id)
        connection.execute(one.values(ending="estimate", total=0))
    else:
        _move(connection, batch_id, "validating", "in_progress", total=total, failed=refused)


def _fail(connection: Connection, batch_id: str, errors: Sequence[Mapping[str, Any]]) -> None:
    if _move(connection, batch_id, "validating", "failed", errors=list(errors)):
        connection.execute(delete(batch_lines).where(batch_lines.c.batch_id == batch_id))


def _move(connection: Connection, batch_id: str, old: str, new: str, **values: Any) -> bool:
    """The compare-and-set from one state to the next; its time, its event, and who is told of it."""
    moved = (
        update(batch_runs)
        .where(batch_runs.c.batch_id == batch_id, batch_runs.c.status == old)
        .values({"status": new, f"{new}_at": func.now(), **values})
        .returning(batch_runs.c.tenant)
    )
    tenant = connection.execute(moved).scalar_one_or_none()
    if tenant is None:
        return False
    record_event(connection, f"batch_{new}", tenant=tenant, detail={"batch_id": batch_id})
    if f"batch.{new}" in webhooks.EVENT_TYPES:
        webhooks.emit(connection, f"batch.{new}", tenant=tenant, data={"id": batch_id})
    return True


def _usage(connection: Connection, batch_id: str) -> dict[str, int]:
    """Tokens of the readings that this batch asked for; those that it shares with earlier work are not its own."""
    own = batch_lines.c.batch_id == batch_id, batch_lines.c.fresh
    sums = {"input_tokens": "prompt_tokens", "cached_tokens": "cached_tokens", "output_tokens": "output_tokens"}
    wanted = [func.coalesce(func.sum(batch_lines.c[column]), 0).label(name) for name, column in sums.items()]
    return {
        name: int(value) for name, value in connection.execute(select(*wanted).where(*own)).mappings().one().items()
    }
