"""An S3 bucket as the inbox. Listings and events only mark what waits; what waits is taken here, and settled once over.

A listing is the truth and an event a shortcut: with every event lost, doubled or late, each version of each object is
still submitted once. Every step may be broken off and repeated, on several workers at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Any

from docmill.errors import BucketUnavailable, NotFound, QuotaExceeded
from docmill.log import logger, say
from ingest.bucket_events import Told
from ingest.folder import key_of, path_of
from ingest.places import Listed
from storage import bucket as kept
from storage.bucket import Ended, Held, Listing, Seen, Taken
from storage.ports import Receipt
from workers.arrivals import enter, refuse_misplaced
from workers.services import Services

if TYPE_CHECKING:
    from ingest.bucket import Bucket, Got

log = logger("bucket")

#: The worker that does this also dispatches and checks, and must not be away for long.
LIST_FOR_S = 2.0
TAKE_FOR_S = 4.0
TAKE_AT_ONCE = 50
#: While one waits for the bucket, another writes to the database; more would use up the connections.
SIDE_BY_SIDE = 4
SETTLE_AT_ONCE = 100
#: Long enough to take as many of the largest objects.
HOLD_S = 300.0


class Left(Enum):
    """Why an object that was held is not taken."""

    GONE = auto()
    OVER_QUOTA = auto()
    UNAVAILABLE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class ObjectArrival:
    """An object of the bucket: its name is its URL."""

    name: str
    tenant: str
    profile: str
    etag: str


def tick(use: Services) -> None:
    """List on, take what waits, settle what is over. While the bucket is away the next tick tries again."""
    bucket = use.bucket
    try:
        until = time.monotonic() + LIST_FOR_S
        while list_on(bucket, use) and time.monotonic() < until:
            pass
        take_waiting(bucket, use, time.monotonic() + TAKE_FOR_S)
        if use.settings.bucket_receipts or use.settings.bucket_moves or use.settings.bucket_tags:
            settle(bucket, use)
    except BucketUnavailable as error:
        say(log, "bucket_unavailable", level=logging.WARNING, why=error)


def list_on(bucket: Bucket, use: Services) -> bool:
    """The next page of the listing; False if it is over, rests, or another worker is at it."""
    with use.database.begin() as connection:
        listing = kept.go_on(connection, bucket.url, every_s=use.settings.bucket_list_every_s)
        if listing is None:
            return False
        page = bucket.page(path_of(listing.after))
        kept.note(connection, bucket.url, seen_in(page.objects, use))
        came = Listing(key_of(page.after or ""), listing.listed + len(page.objects))
        kept.came_to(connection, bucket.url, came, begins=not listing.after, over=page.after is None)
    if page.after is None:
        say(log, "listed", bucket=bucket.url, objects=came.listed)
    return page.after is not None


def told(events: Iterable[Told], bucket: Bucket, use: Services) -> int:
    """Mark the objects that events name, if they are of our inbox. Returns their number."""
    ours = [
        Listed(event.key.removeprefix(bucket.prefix), event.etag or "", 0)
        for event in events
        if event.bucket == bucket.name and event.key.startswith(bucket.prefix)
    ]
    seen = [replace(one, etag=one.etag or None) for one in seen_in(ours, use)]
    with use.database.begin() as connection:
        kept.note(connection, bucket.url, seen)
    return len(seen)


def seen_in(objects: Iterable[Listed], use: Services) -> list[Seen]:
    """Those of the objects that are inputs, each with its place."""
    inputs = [one for one in objects if use.layout.ours(one.key)]
    places = [use.layout.place_of(one.key) for one in inputs]
    return [
        Seen(key_of(one.key), place.tenant, place.profile, one.etag) for one, place in zip(inputs, places, strict=True)
    ]


def take_waiting(bucket: Bucket, use: Services, until: float) -> int:
    """Submit what waits, as much as there is time for. Objects of a tenant over its quota wait, and hold up nobody."""
    must_wait: set[str] = set()
    count = 0
    with ThreadPoolExecutor(SIDE_BY_SIDE, "bucket") as threads:
        while time.monotonic() < until:
            with use.database.begin() as connection:
                held = kept.hold(connection, bucket.url, limit=TAKE_AT_ONCE, hold_s=HOLD_S, without=must_wait)
            ends = dict(zip(held, threads.map(lambda one: _end_of(one, bucket, use), held), strict=True))
            _keep(ends, bucket, use)
            must_wait |= {one.tenant for one, end in ends.items() if end is Left.OVER_QUOTA}
            count += sum(isinstance(end, Taken) for end in ends.values())
            if not held or Left.UNAVAILABLE in ends.values():
                break
    return count


def _keep(ends: Mapping[Held, Taken | Left], bucket: Bucket, use: Services) -> None:
    """Write down what came of each; what failed stays held for a while, so that it holds up nobody either."""
    with use.database.begin() as connection:
        kept.taken(connection, bucket.url, [end for end in ends.values() if isinstance(end, Taken)])
        kept.forget(connection, bucket.url, [one.key for one, end in ends.items() if end is Left.GONE])
        again = (Left.OVER_QUOTA, Left.UNAVAILABLE)
        kept.let_go(connection, bucket.url, [one.key for one, end in ends.items() if end in again])


def _end_of(held: Held, bucket: Bucket, use: Services) -> Taken | Left:
    """Take one object; what keeps it from being taken is no error of the others."""
    try:
        return take(held, bucket, use)
    except NotFound:
        return Left.GONE
    except QuotaExceeded:
        return Left.OVER_QUOTA
    except BucketUnavailable as error:
        say(log, "bucket_unavailable", level=logging.WARNING, key=held.key, why=error)
        return Left.UNAVAILABLE
    except Exception:
        say(log, "not_taken", level=logging.ERROR, error=True, key=held.key)
        return Left.FAILED


def take(held: Held, bucket: Bucket, use: Services) -> Taken:
    """Submit an object as it is now, unless that was done before. Raises NotFound, QuotaExceeded, BucketUnavailable."""
    got = bucket.get(path_of(held.key), max_bytes=use.settings.max_bytes, unless=held.taken_etag)
    if got is None:
        return Taken(held)
    return Taken(held, got.etag, got.version, _enter(held, got, bucket, use).submission_id)


def _enter(held: Held, got: Got, bucket: Bucket, use: Services) -> Receipt:
    name = bucket.url + held.key
    place = use.layout.place_of(path_of(held.key))
    if place.reason is not None:
        return refuse_misplaced(name, got.etag, place.reason, use)
    return enter(ObjectArrival(name, place.tenant, place.profile, got.etag), got.data, use)


def settle(bucket: Bucket, use: Services) -> None:
    """Write the receipts of objects that are over, and tag or move the originals, as the settings say."""
    with use.database.begin() as connection:
        over = kept.ended(connection, bucket.url, limit=SETTLE_AT_ONCE)
    for one in over:
        moved = _settle(one, path_of(one.key), bucket, use)
        with use.database.begin() as connection:
            if moved:
                kept.forget(connection, bucket.url, [one.key])
            else:
                kept.settled(connection, bucket.url, {one.key: one.etag})


def _settle(one: Ended, key: str, bucket: Bucket, use: Services) -> bool:
    """Whether the original was moved: then another file may come under its key."""
    if use.settings.bucket_receipts:
        bucket.put_receipt(key, receipt_of(one.receipt, bucket))
    if use.settings.bucket_tags:
        bucket.tag(key, one.etag, {"docmill": one.outcome})
    to = use.settings.bucket_moves.get(one.outcome)
    return to is not None and bucket.move(key, one.etag, to)


def receipt_of(row: Any, bucket: Bucket) -> dict[str, Any]:
    """What is written beside an object."""
    return {**row, "key": bucket.prefix + path_of(row["key"]), "bucket": bucket.name}
