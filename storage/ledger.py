"""The ledger on PostgreSQL: who holds a lock on the job's row writes what `bookkeeping` says; nothing is changed.

`check` proves the books, `spent` sums them for quotas; `costs` reports them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    case,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)

from docmill.types import TERMINAL, LengthClass, Usage
from storage import bookkeeping, rules
from storage.bookkeeping import SPENDING, ZERO, Entry, Kind
from storage.events import record_event
from storage.ports import HELD_AS, Claim, Stage, Waste
from storage.schema import attempts, jobs, ledger

_COLUMNS = [ledger.c[field.name] for field in fields(Entry)]


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
    """Hold an amount for a claim. Raises StaleAttempt if the claim is no longer ours."""
    held = connection.execute(
        select(jobs.c.job_id)
        .where(
            jobs.c.job_id == claim.job_id,
            jobs.c.attempt == claim.attempt,
            jobs.c.status == HELD_AS[claim.stage],
            jobs.c.lease_until.is_not(None),
        )
        .with_for_update()
    ).scalar_one_or_none()
    if held is None:
        raise rules.stale(claim)
    # A commit whose answer was lost is repeated.
    if not book(connection, claim.job_id, claim.attempt):
        _write(connection, [bookkeeping.reservation(claim, amount_usd)])
    if note is not None:
        record_event(connection, "cost_control", job_id=claim.job_id, attempt=claim.attempt, detail=dict(note))


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
    statement = select(*_COLUMNS).where(ledger.c.job_id == job_id).order_by(ledger.c.entry_id)
    if attempt is not None:
        statement = statement.where(ledger.c.attempt == attempt)
    return [_entry(row) for row in connection.execute(statement)]


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
    rows = [asdict(entry) for entry in entries]
    if rows:
        connection.execute(insert(ledger), rows)


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
    entry = Entry(**row._mapping)
    return replace(
        entry,
        kind=Kind(entry.kind),
        length_class=LengthClass(entry.length_class) if entry.length_class else None,
        waste=Waste(entry.waste) if entry.waste else None,
    )


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
