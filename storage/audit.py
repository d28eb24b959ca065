"""Who changed what from outside: the events that name an actor. The database refuses to change or delete one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select

from storage.schema import events


@dataclass(frozen=True, slots=True)
class Entry:
    """One act: `actor` is `key:LABEL`, `cli:USER`, `bucket` or `anonymous`; `detail` holds key id and request id."""

    event_id: int
    at: datetime
    tenant: str | None
    actor: str
    kind: str
    job_id: str | None
    detail: dict[str, Any]


def record_act(connection: Connection, kind: str, *, tenant: str, actor: str, detail: dict[str, Any]) -> None:
    """Append one act in the caller's transaction."""
    connection.execute(insert(events).values(kind=kind, tenant=tenant, actor=actor, detail=detail))


def entries(
    connection: Connection, *, tenant: str | None = None, before: int | None = None, limit: int = 100
) -> Sequence[Entry]:
    """The latest acts first; `before` is the event id that the page ends above."""
    columns = (getattr(events.c, name) for name in Entry.__dataclass_fields__)
    statement = select(*columns).where(events.c.actor.is_not(None)).order_by(events.c.event_id.desc()).limit(limit)
    if tenant is not None:
        statement = statement.where(events.c.tenant == tenant)
    if before is not None:
        statement = statement.where(events.c.event_id < before)
    return [Entry(*row) for row in connection.execute(statement)]
