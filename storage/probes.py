"""Probes as the database keeps them: what was sent and what is expected, how it ended and how long it took.

They are ordinary jobs of a tenant of their own, which the analysts' views leave out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Engine, and_, extract, func, insert, select, update

from docmill.types import TERMINAL, Heat, LengthClass, Status
from storage.database import transactional
from storage.probe_schema import probes
from storage.rules import PROBE_TENANT
from storage.schema import jobs, results

#: Traffic is looked at over this long, and percentiles over that long.
MINUTE_S: Final = 60.0
WINDOW_S: Final = 3600.0
#: Over probes of so many at once is decided; the others come at the next look.
AT_ONCE: Final = 200


class Traffic(NamedTuple):
    """The last minute: documents that came, probes among them not counted; and how long ago the last probe was."""

    documents: int
    probes: int
    last_s: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A probe whose job is over. `result` is None where there is none."""

    job_id: str
    expected: Mapping[str, str]
    status: Status
    heat: Heat | None
    length: LengthClass | None
    seconds: float
    result: Mapping[str, Any] | None


class Judged(NamedTuple):
    """What is made of a probe that is over."""

    outcome: str
    in_time: bool


class Counted(NamedTuple):
    """Probes of one class that ended alike."""

    heat: str
    length: str
    outcome: str
    in_time: bool
    probes: int


class Percentiles(NamedTuple):
    """How long the probes of one class took in the last hour."""

    heat: str
    length: str
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True, slots=True)
class ProbeStore:
    """On PostgreSQL only, as what it measures."""

    engine: Engine

    @transactional
    def traffic(self, connection: Connection) -> Traffic:
        lately = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, MINUTE_S)
        came = select(func.count()).where(jobs.c.created_at > lately, jobs.c.tenant != PROBE_TENANT)
        sent = select(func.count(), extract("epoch", func.now() - func.max(probes.c.sent_at)))
        in_time = select(func.count()).where(probes.c.sent_at > lately)
        last = connection.execute(sent).one()[1]
        return Traffic(
            connection.execute(came).scalar_one(),
            connection.execute(in_time).scalar_one(),
            float(last) if last is not None else None,
        )

    @transactional
    def add(self, connection: Connection, job_id: str, expected: Mapping[str, str]) -> None:
        connection.execute(insert(probes).values(job_id=job_id, expected=dict(expected)))

    @transactional
    def settle(self, connection: Connection, judge: Callable[[Ended], Judged]) -> list[tuple[Ended, Judged]]:
        """Judge the probes whose jobs are over; each is judged once."""
        over = (
            select(
                probes, jobs.c.status, jobs.c.heat.label("went"), jobs.c.length_class.label("long"), results.c.result
            )
            .add_columns(extract("epoch", jobs.c.finished_at - jobs.c.created_at).label("took"))
            .join(jobs, jobs.c.job_id == probes.c.job_id)
            .outerjoin(results, results.c.job_id == probes.c.job_id)
            .where(probes.c.outcome.is_(None), jobs.c.status.in_(list(TERMINAL)))
            .order_by(probes.c.sent_at)
            .limit(AT_ONCE)
            .with_for_update(of=probes, skip_locked=True)
        )
        found = []
        for row in connection.execute(over).all():
            ended = Ended(
                row.job_id,
                row.expected,
                Status(row.status),
                Heat(row.went) if row.went else None,
                LengthClass(row.long) if row.long else None,
                float(row.took or 0.0),
                row.result,
            )
            found.append((ended, judge(ended)))
        for ended, judged in found:
            connection.execute(
                update(probes)
                .where(probes.c.job_id == ended.job_id)
                .values(
                    outcome=judged.outcome,
                    in_time=judged.in_time,
                    heat=ended.heat or "none",
                    length_class=ended.length or "none",
                    seconds=ended.seconds,
                )
            )
        return found

    @transactional
    def counts(self, connection: Connection) -> list[Counted]:
        """All probes that are over, by class and end."""
        by = (probes.c.heat, probes.c.length_class, probes.c.outcome, probes.c.in_time)
        rows = connection.execute(select(*by, func.count()).where(probes.c.outcome.is_not(None)).group_by(*by))
        return [Counted(*row) for row in rows]

    @transactional
    def percentiles(self, connection: Connection) -> list[Percentiles]:
        """P50, P95 and P99 of the probes that were sent in the last hour and are over."""
        lately = func.now() - func.make_interval(0, 0, 0, 0, 0, 0, WINDOW_S)
        at = [func.percentile_cont(share).within_group(probes.c.seconds) for share in (0.5, 0.95, 0.99)]
        by = (probes.c.heat, probes.c.length_class)
        over = and_(probes.c.outcome.is_not(None), probes.c.sent_at > lately)
        return [Percentiles(*row) for row in connection.execute(select(*by, *at).where(over).group_by(*by))]

    @transactional
    def oldest_s(self, connection: Connection) -> float:
        """For how long the oldest probe of somebody who waits is under way; 0 if none is."""
        age = extract("epoch", func.now() - func.min(probes.c.sent_at))
        open_ = select(age).join(jobs, jobs.c.job_id == probes.c.job_id)
        waiting = open_.where(probes.c.outcome.is_(None), jobs.c.window_s == 0)
        return float(connection.execute(waiting).scalar_one() or 0.0)
