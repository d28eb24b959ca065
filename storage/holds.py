"""What an operator holds back: a tenant, a lane or a batch, drained or paused. One small table that dispatch reads.

`drain`: nothing new is released; what is with the broker or a worker is finished. `pause`: what is with the broker is
not begun either; what runs is finished, because its cost is spent.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert

from docmill.types import TERMINAL, Status
from storage.control_schema import holds
from storage.events import record_event
from storage.ports import WAITS_FOR
from storage.schema import jobs


class Scope(StrEnum):
    """What can be held."""

    TENANT = "tenant"
    LANE = "lane"
    BATCH = "batch"


class Hold(StrEnum):
    """How it is held."""

    PAUSE = "pause"
    DRAIN = "drain"


@dataclass(frozen=True, slots=True)
class Held:
    """A hold that is in force."""

    scope: Scope
    name: str
    kind: Hold
    reason: str | None
    since: datetime


#: A lane's hold concerns what waits to be read there, not what is parsed before or checked after.
_COVERS = {
    Scope.TENANT: jobs.c.tenant == holds.c.name,
    Scope.LANE: and_(jobs.c.lane == holds.c.name, jobs.c.status == Status.QUEUED),
    Scope.BATCH: jobs.c.batch_id == holds.c.name,
}


def is_held(kinds: Collection[Hold] = tuple(Hold)) -> ColumnElement[bool]:
    """Whether a job is under a hold of these kinds."""
    covered = or_(*(and_(holds.c.scope == scope, covers) for scope, covers in _COVERS.items()))
    return exists(select(1).select_from(holds).where(holds.c.kind.in_(list(kinds)), covered).correlate(jobs))


def waits_for_its_key() -> ColumnElement[bool]:
    """Whether an earlier job of the same tenant and ordering key is not over: results of a key come in order."""
    earlier = jobs.alias("earlier")
    before = exists(
        select(1).where(
            earlier.c.tenant == jobs.c.tenant,
            earlier.c.ordering_key == jobs.c.ordering_key,
            earlier.c.status.not_in(TERMINAL),
            tuple_(earlier.c.created_at, earlier.c.job_id) < tuple_(jobs.c.created_at, jobs.c.job_id),
        )
    )
    return and_(jobs.c.ordering_key.is_not(None), jobs.c.status == Status.QUEUED, before)


def hold(connection: Connection, scope: Scope, name: str, kind: Hold, *, reason: str | None = None) -> int:
    """Hold it from now on, also if it is held otherwise; how many waiting jobs that concerns."""
    values = {"scope": scope, "name": name, "kind": kind, "reason": reason}
    connection.execute(
        insert(holds).values(values).on_conflict_do_update(index_elements=["scope", "name"], set_=values)
    )
    concerned = _wait_here(connection, scope, name) if kind is Hold.PAUSE else _waiting(connection, scope, name)
    _tell(connection, f"held_{kind}", scope, name, jobs=concerned, reason=reason)
    return concerned


def release(connection: Connection, scope: Scope, name: str) -> bool:
    """End a hold; what it kept waiting is dispatched at the next tick. False if there was none."""
    ended = connection.execute(delete(holds).where(holds.c.scope == scope, holds.c.name == name)).rowcount == 1
    if ended:
        # A message that came during a pause was dropped; without this its job would wait for the sweeper.
        _tell(connection, "resumed", scope, name, jobs=_wait_here(connection, scope, name))
    return ended


def in_force(connection: Connection) -> list[Held]:
    """Every hold, the oldest first."""
    rows = connection.execute(select(holds).order_by(holds.c.since, holds.c.scope, holds.c.name))
    return [Held(Scope(row.scope), row.name, Hold(row.kind), row.reason, row.since) for row in rows]


def _of(scope: Scope, name: str) -> ColumnElement[bool]:
    """The waiting jobs of a scope."""
    column = {Scope.TENANT: jobs.c.tenant, Scope.LANE: jobs.c.lane, Scope.BATCH: jobs.c.batch_id}[scope]
    statuses = [Status.QUEUED] if scope is Scope.LANE else list(WAITS_FOR.values())
    return and_(column == name, jobs.c.status.in_(statuses), jobs.c.lease_until.is_(None))


def _waiting(connection: Connection, scope: Scope, name: str) -> int:
    return connection.execute(select(func.count()).select_from(jobs).where(_of(scope, name))).scalar_one()


def _wait_here(connection: Connection, scope: Scope, name: str) -> int:
    """Take back the messages of what waits: it waits in the database."""
    return connection.execute(update(jobs).where(_of(scope, name)).values(published_at=None)).rowcount


def _tell(connection: Connection, kind: str, scope: Scope, name: str, **detail: object) -> None:
    tenant = name if scope is Scope.TENANT else None
    record_event(connection, kind, tenant=tenant, detail={"scope": scope, "name": name, **detail})
