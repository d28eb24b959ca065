"""What dispatch and the controller keep and ask beside the state machine: the ladder's state, backlog, marks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, func, or_, select
from sqlalchemy.dialects.postgresql import insert

from docmill.types import Heat, Status
from storage import holds
from storage.control_schema import ladder
from storage.database import transactional
from storage.events import record_event
from storage.holds import Held, Hold, Scope
from storage.schema import documents, jobs

#: The row of the one ladder.
_LADDER = 1
#: Deadlines are counted by the hour: a million jobs become a row for each hour that any of them is due in.
_BY = "hour"


@dataclass(frozen=True, slots=True)
class ControlStore:
    """On PostgreSQL only: it steers processes, and whatever has processes has a database."""

    engine: Engine

    @transactional
    def hold(self, connection: Connection, scope: Scope, name: str, kind: Hold, *, reason: str | None = None) -> int:
        return holds.hold(connection, scope, name, kind, reason=reason)

    @transactional
    def release(self, connection: Connection, scope: Scope, name: str) -> bool:
        return holds.release(connection, scope, name)

    @transactional
    def held(self, connection: Connection) -> Sequence[Held]:
        return holds.in_force(connection)

    @transactional
    def backlog(self, connection: Connection) -> dict[str, list[tuple[float, int]]]:
        """For each lane its waiting cold jobs as (seconds to the deadline, jobs); hours are rounded down."""
        due = func.date_trunc(_BY, jobs.c.deadline)
        rows = connection.execute(
            select(jobs.c.lane, func.extract("epoch", due - func.now()), func.count())
            .where(jobs.c.status == Status.QUEUED, jobs.c.heat == Heat.COLD, jobs.c.published_at.is_(None))
            .group_by(jobs.c.lane, due)
        )
        found: dict[str, list[tuple[float, int]]] = {}
        for lane, seconds, count in rows:
            found.setdefault(lane, []).append((float(seconds), count))
        return found

    @transactional
    def cold_lengths(self, connection: Connection) -> dict[str, float]:
        """The mean prompt of the cold work that each lane reads."""
        rows = connection.execute(
            select(jobs.c.lane, func.avg(documents.c.tokens))
            .join(documents, documents.c.document_id == jobs.c.document_id)
            .where(
                jobs.c.status.in_([Status.QUEUED, Status.RUNNING]),
                jobs.c.heat == Heat.COLD,
                or_(jobs.c.published_at.is_not(None), jobs.c.lease_until.is_not(None)),
            )
            .group_by(jobs.c.lane)
        )
        return {lane: float(mean) for lane, mean in rows if mean}

    @transactional
    def ladder(self, connection: Connection) -> dict[str, Any]:
        """The ladder's state, empty before the first step."""
        found = connection.execute(select(ladder.c.state).where(ladder.c.ladder_id == _LADDER)).scalar_one_or_none()
        return dict(found or {})

    @transactional
    def climb(
        self,
        connection: Connection,
        move: Callable[[dict[str, Any], float], tuple[dict[str, Any], Mapping[str, Any] | None]],
    ) -> dict[str, Any]:
        """Move the ladder's state, one caller at a time, by the database's clock; a change is an event."""
        start = insert(ladder).values(ladder_id=_LADDER, state={})
        connection.execute(start.on_conflict_do_nothing(index_elements=["ladder_id"]))
        held = connection.execute(
            select(ladder.c.state, func.extract("epoch", func.clock_timestamp()))
            .where(ladder.c.ladder_id == _LADDER)
            .with_for_update()
        ).one()
        state, change = move(held[0], float(held[1]))
        if state != held[0]:
            connection.execute(
                ladder.update()
                .where(ladder.c.ladder_id == _LADDER)
                .values(state=state, updated_at=func.clock_timestamp())
            )
        if change is not None:
            record_event(connection, "ladder", detail=dict(change))
        return state

    @transactional
    def mark(self, connection: Connection, job_id: str, *, attempt: int, steps: Sequence[str]) -> None:
        """Note on a job's record that it was read while these steps of the ladder were taken."""
        record_event(connection, "degraded", job_id=job_id, attempt=attempt, detail={"steps": list(steps)})
