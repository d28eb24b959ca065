"""The ledger on PostgreSQL: who holds a lock on the job's row writes what `bookkeeping` says; nothing is changed.

`check` proves the books, `spent` sums them for quotas; `costs` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    String,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert

from docmill.types import TERMINAL, LengthClass, Usage
from storage import bookkeeping, rules
from storage.bookkeeping import SPENDING, ZERO, Entry, Kind
from storage.fence import claimed_as
from storage.fixed import Fixed
from storage.ports import Claim, Stage, Waste
from storage.schema import attempts, events, jobs, ledger

_NAMES = [field.name for field in fields(Entry)]
_COLUMNS = [ledger.c[name] for name in _NAMES]
_INSERT = f"INSERT INTO ledger ({', '.join(_NAMES)}) VALUES ({', '.join(f'%({name})s' for name in _NAMES)})"


@dataclass(frozen=True, slots=True)
class Imbalance:
    """Something that the ledger and the attempts do not agree on; `attempt` None: the job as a whole."""

    job_id: str
    attempt: int | None
    what: str
    ledger_usd: Decimal
    actual_usd: Decimal


def reserve(
    connection: Connection, claim: Claim, amount_usd: Decimal, *, note: Mapping[str, Any] | None = None
) -> None:
    """Hold an amount for a claim, in one statement. Raises StaleAttempt if the claim is no longer ours."""
    told = None if note is None else Jsonb(dict(note))
    entry = _plain(bookkeeping.reservation(claim, amount_usd))
    held = _reserve(claim.stage).run(connection, held=claim.job_id, present=claim.attempt, note=told, **entry)
    if not held.scalar_one():
        raise rules.stale(claim)


@cache
def _reserve(stage: Stage) -> Fixed:
    mine = (
        select(jobs.c.job_id)
        .where(claimed_as(bindparam("held"), bindparam("present"), stage))
        .with_for_update()
        .cte("mine")
    )
    values = [cast(bindparam(name), ledger.c[name].type) for name in _NAMES]
    # A commit whose answer was lost is repeated.
    booked = insert(ledger).from_select(_NAMES, select(*values).select_from(mine), include_defaults=False)
    note = cast(bindparam("note"), events.c.detail.type)
    about = [mine.c.job_id, cast("cost_control", String), cast(bindparam("present"), Integer), note]
    told = insert(events).from_select(
        ["job_id", "kind", "attempt", "detail"],
        select(*about).where(note.is_not(None)),
        include_defaults=False,
    )
    return Fixed(
        select(func.count()).select_from(mine).add_cte(booked.on_conflict_do_nothing().cte("booked"), told.cte("told")),
        *("held", "present", "note", *_NAMES),
    )


def finish(connection: Connection, claim: Claim, usage: Usage) -> None:
    """Book what an attempt has used that is being finished."""
    _write(connection, bookkeeping.settlement(book(connection, claim.job_id, claim.attempt), claim, usage, None))


def settle(connection: Connection, claim: Claim, usage: Usage, waste: Waste) -> None:
    """Book what an attempt reports that finishes nothing, early or late; see `bookkeeping.settlement`."""
    present = connection.execute(
        select(jobs.c.attempt).where(jobs.c.job_id == claim.job_id).with_for_update()
    ).scalar_one()
    entries = bookkeeping.settlement(
        book(connection, claim.job_id, claim.attempt), claim, usage, waste, overtaken=present > claim.attempt
    )
    if not entries:
        return
    _write(connection, entries)
    _note_usage(connection, claim.job_id, claim.attempt, usage)


def close(connection: Connection, job_id: str, attempt: int) -> None:
    """Give back what an attempt still holds: it has ended without a word of the engine."""
    _write(connection, bookkeeping.closing(book(connection, job_id, attempt)))


def give_up(connection: Connection, job_id: str, waste: Waste, *, over: bool) -> None:
    """Charge attempts that cannot report by what they hold; if the job is over, all that it has used is wasted."""
    every = book(connection, job_id)
    for attempt in sorted({entry.attempt for entry in every}):
        entries = bookkeeping.closing([entry for entry in every if entry.attempt == attempt], waste)
        if entries:
            _write(connection, entries)
            _note_usage(connection, job_id, attempt, Usage(cost_usd=bookkeeping.spent(entries)))
    if over:
        write_off(connection, job_id, waste)


def write_off(connection: Connection, job_id: str, waste: Waste) -> None:
    """Mark all that a job has used so far as wasted."""
    _write(connection, bookkeeping.write_off(book(connection, job_id), waste))


def book(connection: Connection, job_id: str, attempt: int | None = None) -> list[Entry]:
    """The entries of a job, or of one attempt, in the order in which they were written."""
    if attempt is None:
        return [_entry(row) for row in _book().run(connection, job=job_id)]
    return [_entry(row) for row in _page().run(connection, job=job_id, attempt=attempt)]


@cache
def _book() -> Fixed:
    return Fixed(select(*_COLUMNS).where(ledger.c.job_id == bindparam("job")).order_by(ledger.c.entry_id), "job")


@cache
def _page() -> Fixed:
    of_attempt = (ledger.c.job_id == bindparam("job"), ledger.c.attempt == bindparam("attempt"))
    return Fixed(select(*_COLUMNS).where(*of_attempt).order_by(ledger.c.entry_id), "job", "attempt")


def spent(connection: Connection, tenant: str, since: datetime) -> Decimal:
    """What a tenant has used since then, with what is held for its attempts that run now."""
    amount = func.coalesce(func.sum(ledger.c.amount_usd), ZERO)
    of_tenant = select(amount).where(ledger.c.tenant == tenant, ledger.c.at >= since)
    return Decimal(connection.execute(of_tenant).scalar_one())


def check(connection: Connection) -> list[Imbalance]:
    """Every attempt and every job whose entries do not add up to what it cost; an empty list is a balanced ledger."""
    found = [Imbalance(**row._mapping) for row in connection.execute(_uneven_attempts())]
    return found + [Imbalance(**row._mapping) for row in connection.execute(_uneven_jobs())]


# ---------------------------------------------------------------- rows


def _write(connection: Connection, entries: Iterable[Entry]) -> None:
    rows = [_plain(entry) for entry in entries]
    if rows:
        connection.exec_driver_sql(_INSERT, rows)


def _plain(entry: Entry) -> dict[str, Any]:
    """The columns of an entry, words without their types."""
    values = ((name, getattr(entry, name)) for name in _NAMES)
    return {name: str(value) if isinstance(value, StrEnum) else value for name, value in values}


def _note_usage(connection: Connection, job_id: str, attempt: int, usage: Usage) -> None:
    """The attempt's own row says the same as the ledger: `check` compares the two."""
    connection.execute(
        update(attempts)
        .where(attempts.c.job_id == job_id, attempts.c.no == attempt)
        .values(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            output_tokens=usage.output_tokens,
            gpu_seconds=usage.gpu_seconds,
            cost_usd=usage.cost_usd,
        )
    )


def _entry(row: Row[Any]) -> Entry:
    words = {
        "kind": Kind(row.kind),
        "length_class": LengthClass(row.length_class) if row.length_class else None,
        "waste": Waste(row.waste) if row.waste else None,
    }
    return Entry(**{**row._mapping, **words})


# ---------------------------------------------------------------- proof


def _amount(kinds: Iterable[Kind]) -> ColumnElement[Any]:
    amount = func.sum(ledger.c.amount_usd).filter(ledger.c.kind.in_(list(kinds)))
    return func.coalesce(amount, ZERO)


def _uneven_attempts() -> Select[Any]:
    booked = (
        select(
            ledger.c.job_id,
            ledger.c.attempt,
            _amount(set(Kind) - SPENDING).label("held"),
            _amount(SPENDING).label("used"),
            func.count().filter(ledger.c.kind == Kind.SETTLE).label("settled"),
        )
        .group_by(ledger.c.job_id, ledger.c.attempt)
        .subquery()
    )
    actual = func.coalesce(attempts.c.cost_usd, ZERO)
    used, held = func.coalesce(booked.c.used, ZERO), func.coalesce(booked.c.held, ZERO)
    over = attempts.c.ended_at.is_not(None)
    read = and_(attempts.c.stage == Stage.INFER, attempts.c.outcome == "finished")
    faults: Sequence[tuple[ColumnElement[bool], str]] = (
        (attempts.c.no.is_(None), "entries of an attempt that never was"),
        (and_(over, held != 0), "it has ended and its reservation is still held"),
        (and_(over, used != actual), "the ledger and the attempt name different costs"),
        (and_(read, func.coalesce(booked.c.settled, 0) == 0), "it has read and is not on the ledger"),
    )
    return (
        select(
            func.coalesce(attempts.c.job_id, booked.c.job_id).label("job_id"),
            func.coalesce(attempts.c.no, booked.c.attempt).label("attempt"),
            case(*faults).label("what"),
            (used + held).label("ledger_usd"),
            actual.label("actual_usd"),
        )
        .select_from(attempts)
        .join(booked, and_(booked.c.job_id == attempts.c.job_id, booked.c.attempt == attempts.c.no), full=True)
        .where(or_(*(fault for fault, _ in faults)))
    )


def _uneven_jobs() -> Select[Any]:
    """A job that is over: reserved, settled, refunded and corrected must be what its attempts cost."""
    booked = select(func.coalesce(func.sum(ledger.c.amount_usd), ZERO)).where(ledger.c.job_id == jobs.c.job_id)
    cost = select(func.coalesce(func.sum(attempts.c.cost_usd), ZERO)).where(attempts.c.job_id == jobs.c.job_id)
    on_ledger, actual = booked.scalar_subquery(), cost.scalar_subquery()
    return select(
        jobs.c.job_id,
        null().label("attempt"),
        literal("the job is over and its entries do not add up to its cost").label("what"),
        on_ledger.label("ledger_usd"),
        actual.label("actual_usd"),
    ).where(jobs.c.status.in_(TERMINAL), on_ledger != actual)
