"""What the scanner of the inbox saw, kept from one scan to the next, and which versions of files it has taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from sqlalchemy import ARRAY, Connection, Select, Text, cast, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from storage.schema import inbox


class Observation(Protocol):
    """A file as a scan saw it; `first_seen` is when this very `etag` was first met."""

    @property
    def key(self) -> str: ...
    @property
    def etag(self) -> str: ...
    @property
    def first_seen(self) -> float: ...


Seen = TypeVar("Seen", bound=Observation)


def load(connection: Connection, make: Callable[[str, str, float], Seen]) -> tuple[dict[str, Seen], dict[str, str]]:
    """The observations by key, each made by `make(key, etag, first_seen)`, and the etag of each file taken."""
    rows = connection.execute(select(inbox)).all()
    seen = {row.key: make(row.key, row.etag, row.first_seen) for row in rows}
    return seen, {row.key: row.etag for row in rows if row.taken}


def save(connection: Connection, observed: Iterable[Observation]) -> None:
    """Keep exactly these observations. A file that has changed is no longer taken."""
    kept = {key: etag for key, etag in connection.execute(select(inbox.c.key, inbox.c.etag))}
    now = {one.key: one for one in observed}
    _delete(connection, [key for key in kept if key not in now])
    _put(connection, [one for one in now.values() if kept.get(one.key) != one.etag])


def _delete(connection: Connection, keys: list[str]) -> None:
    # One array, not a list of parameters: there can be no more than 65535 of those.
    if keys:
        connection.execute(delete(inbox).where(inbox.c.key.in_(_unnested(keys))))


def _put(connection: Connection, changed: list[Observation]) -> None:
    rows = [{"key": one.key, "etag": one.etag, "first_seen": one.first_seen, "taken": False} for one in changed]
    if rows:
        new = insert(inbox)
        values = {name: new.excluded[name] for name in ("etag", "first_seen", "taken")}
        connection.execute(new.on_conflict_do_update(index_elements=["key"], set_=values), rows)


def mark_taken(connection: Connection, keys: Iterable[str]) -> None:
    """These files were submitted in the version that was saved last."""
    connection.execute(update(inbox).where(inbox.c.key.in_(_unnested(list(keys)))).values(taken=True))


def _unnested(keys: list[str]) -> Select[tuple[str]]:
    return select(func.unnest(cast(keys, ARRAY(Text))))
