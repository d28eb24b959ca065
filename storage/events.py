"""The append-only audit."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from storage.schema import events


def record_event(
    connection: Connection,
    kind: str,
    *,
    job_id: str | None = None,
    tenant: str | None = None,
    attempt: int | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """Append one event in the caller's transaction."""
    values = {"kind": kind, "job_id": job_id, "tenant": tenant, "attempt": attempt, "detail": detail or {}}
    connection.execute(insert(events).values(values))
