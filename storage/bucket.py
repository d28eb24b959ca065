"""What was seen in a bucket and what of it was taken: listings and events mark what waits, workers take it.

An object waits when it was seen with another etag than it was taken with last. Both may happen at once and repeat:
what is seen while a worker holds the object leaves it waiting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, delete, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from docmill.types import TERMINAL
from storage.bucket_schema import bucket_listings, bucket_objects
from storage.schema import jobs, submissions

#: One statement takes 65,535 parameters at most.
_ROWS_AT_ONCE = 2000


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as a listing or an event shows it; an event may not know the etag."""

    key: str
    tenant: str
    profile: str
    etag: str | None


@dataclass(frozen=True, slots=True)
class Held:
    """An object that a worker holds to take it. `seen_at` tells whether it was seen anew meanwhile."""

    key: str
    tenant: str
    profile: str
    taken_etag: str | None
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class Taken:
    """What was held, and in which version it was submitted; without a submission it has not changed."""

    held: Held
    etag: str | None = None
    version: str | None = None
    submission_id: int | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """An object whose job is over or which was refused; `outcome` is the job's status, or `refused`."""

    key: str
    etag: str
    outcome: str
    receipt: Mapping[str, Any]


def note(connection: Connection, bucket: str, seen: Iterable[Seen]) -> int:
    """Mark what waits of these. Of what has not changed no row is written. Returns the number of those that wait."""
    by_key = {one.key: one for one in seen}
    known = _known(connection, bucket, list(by_key))
    new = [one for one in by_key.values() if _is_new(one, known.get(one.key))]
    for start in range(0, len(new), _ROWS_AT_ONCE):
        _mark(connection, [{"bucket": bucket, **asdict(one)} for one in new[start : start + _ROWS_AT_ONCE]])
    return len(new)


def _known(connection: Connection, bucket: str, keys: list[str]) -> dict[str, Any]:
    table = bucket_objects.c
    statement = select(table.key, table.etag, table.taken_etag, table.waiting)
    rows = connection.execute(statement.where(table.bucket == bucket, table.key == func.any(keys)))
    return {row.key: row for row in rows}


def _is_new(one: Seen, known: Any) -> bool:
    if known is None:
        return True
    if known.waiting:
        return bool(one.etag != known.etag)
    return one.etag is None or bool(one.etag != known.taken_etag)


def _mark(connection: Connection, rows: list[dict[str, Any]]) -> None:
    new = insert(bucket_objects).values(rows)
    values: dict[str, Any] = {name: new.excluded[name] for name in ("tenant", "profile", "etag")}
    values |= {"waiting": True, "not_before": None, "seen_at": func.clock_timestamp()}
    connection.execute(new.on_conflict_do_update(index_elements=["bucket", "key"], set_=values))


def hold(
    connection: Connection, bucket: str, *, limit: int, hold_s: float, without: Collection[str] = ()
) -> Sequence[Held]:
    """Hold what waits longest, but for these tenants, for some seconds: nobody else takes it meanwhile."""
    table = bucket_objects.c
    free = or_(table.not_before.is_(None), table.not_before <= func.now())
    waits = select(table.bucket, table.key).where(table.bucket == bucket, table.waiting, free)
    waits = waits.where(table.tenant.not_in(without)) if without else waits
    waits = waits.order_by(table.seen_at, table.key).limit(limit).with_for_update(skip_locked=True)
    until = func.now() + timedelta(seconds=hold_s)
    taken = update(bucket_objects).where(tuple_(table.bucket, table.key).in_(waits)).values(not_before=until)
    rows = connection.execute(taken.returning(table.key, table.tenant, table.profile, table.taken_etag, table.seen_at))
    return [Held(*row) for row in rows]


def let_go(connection: Connection, bucket: str, keys: Iterable[str]) -> None:
    """Give back what was held and not taken."""
    connection.execute(update(bucket_objects).where(_these(bucket, keys)).values(not_before=None))


def taken(connection: Connection, bucket: str, done: Iterable[Taken]) -> None:
    """These objects were submitted, or have not changed since. One that was seen anew since it was held waits again."""
    for one in done:
        new = {"taken_etag": one.etag, "version": one.version, "submission_id": one.submission_id, "settled": False}
        anew = bucket_objects.c.seen_at != one.held.seen_at
        values = {"waiting": anew, "not_before": None, **(new if one.submission_id is not None else {})}
        connection.execute(update(bucket_objects).where(_these(bucket, [one.held.key])).values(values))


def forget(connection: Connection, bucket: str, keys: Iterable[str]) -> None:
    """These keys are gone from the bucket; what was submitted of them stays."""
    connection.execute(delete(bucket_objects).where(_these(bucket, keys)))


def ended(connection: Connection, bucket: str, *, limit: int) -> Sequence[Ended]:
    """Objects that were taken and are over, whose end is not written beside them yet."""
    table = bucket_objects.c
    over = or_(submissions.c.outcome == "refused", jobs.c.status.in_(TERMINAL))
    statement = _receipts().where(table.bucket == bucket, table.taken_etag.is_not(None), ~table.settled, over)
    rows = [dict(row._mapping) for row in connection.execute(statement.limit(limit))]
    return [Ended(row["key"], row["etag"], row["status"] or row["outcome"], row) for row in rows]


def settled(connection: Connection, bucket: str, done: Mapping[str, str]) -> None:
    """The end of these objects (by key, in this etag) is written beside them."""
    for key, etag in done.items():
        same = and_(_these(bucket, [key]), bucket_objects.c.taken_etag == etag)
        connection.execute(update(bucket_objects).where(same).values(settled=True))


def receipt(connection: Connection, bucket: str, key: str) -> dict[str, Any] | None:
    """What became of an object so far; None if it was not taken."""
    statement = _receipts().where(bucket_objects.c.bucket == bucket, bucket_objects.c.key == key)
    row = connection.execute(statement).one_or_none()
    return None if row is None else dict(row._mapping)


def _receipts() -> Select[Any]:
    return (
        select(
            bucket_objects.c.key,
            bucket_objects.c.taken_etag.label("etag"),
            bucket_objects.c.version,
            *(submissions.c[name] for name in ("sha256", "size_bytes", "outcome", "document_id", "job_id")),
            func.coalesce(jobs.c.reason, submissions.c.reason).label("reason"),
            submissions.c.created_at.label("submitted_at"),
            jobs.c.status,
            jobs.c.finished_at,
        )
        .join(submissions, submissions.c.submission_id == bucket_objects.c.submission_id)
        .outerjoin(jobs, jobs.c.job_id == submissions.c.job_id)
    )


def _these(bucket: str, keys: Iterable[str]) -> ColumnElement[bool]:
    return and_(bucket_objects.c.bucket == bucket, bucket_objects.c.key == func.any(list(keys)))


# ---------------------------------------------------------------- how far a listing has come


@dataclass(frozen=True, slots=True)
class Listing:
    """A listing under way: the key that it has come to, and how many it has seen."""

    after: str
    listed: int


def go_on(connection: Connection, bucket: str, *, every_s: float) -> Listing | None:
    """The listing under way, or a new one if the last ended `every_s` ago; None if it rests, or another has it.

    It is this transaction's alone until that ends.
    """
    connection.execute(insert(bucket_listings).values(bucket=bucket).on_conflict_do_nothing())
    table = bucket_listings.c
    rests = and_(table.finished_at.is_not(None), table.finished_at > func.now() - timedelta(seconds=every_s))
    row = connection.execute(
        select(table.after, table.listed, table.finished_at, rests.label("rests"))
        .where(table.bucket == bucket)
        .with_for_update(skip_locked=True)
    ).one_or_none()
    if row is None or row.rests:
        return None
    return Listing(row.after, row.listed) if row.finished_at is None else Listing("", 0)


def came_to(connection: Connection, bucket: str, listing: Listing, *, begins: bool, over: bool) -> None:
    """Keep how far the listing has come."""
    values: dict[str, Any] = {"after": "" if over else listing.after, "listed": listing.listed}
    values |= {"started_at": func.now()} if begins else {}
    values |= {"finished_at": func.clock_timestamp() if over else None}
    connection.execute(update(bucket_listings).where(bucket_listings.c.bucket == bucket).values(values))
