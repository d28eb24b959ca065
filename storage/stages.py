"""Taking a job for a stage and letting go of it: one statement each, because every job does both three times.

Both are compare-and-sets on the job's row; what hangs on it (the attempt's row, events, results) is written by the same
statement from the row that was changed, so that nothing is written where nothing was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import (
    ARRAY,
    CTE,
    ColumnElement,
    Connection,
    Row,
    String,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from docmill.types import Heat, LengthClass, Route, Status
from storage import rules
from storage.fence import claimed_as
from storage.fixed import Fixed
from storage.holds import Hold, is_held
from storage.ports import HELD_AS, WAITS_FOR, Claim, Stage
from storage.schema import attempts, documents, events, jobs

#: What every change of stage resets.
RELEASED: Mapping[str, None] = {"lease_until": None, "worker": None, "published_at": None, "not_before": None}
#: Columns of a job that the database works out where `let_go` is told their names.
_WORKED_OUT: Mapping[str, ColumnElement[Any]] = {
    "finished_at": func.now(),
    "published_at": func.now(),
    "rejections": jobs.c.rejections + 1,
}
#: Its document repeats another to the last shingle: a reading of that one may stand for its own.
_REPEATS = and_(documents.c.near_duplicate_of.is_not(None), documents.c.similarity == rules.SAME_TEXT)


def seconds_since(moment: Any) -> Any:
    """Seconds from a timestamp to now, by the database's clock."""
    return func.extract("epoch", func.now() - moment)


def route_of(row: Row[Any]) -> Route | None:
    """The route that the columns hold, or None before the job is prepared."""
    if row.queue is None:
        return None
    return Route(Heat(row.heat), LengthClass(row.length_class), row.priority, row.lane, row.queue, row.hot_score)


# ---------------------------------------------------------------- taking


def take(connection: Connection, job_id: str, stage: Stage, *, worker: str, lease_s: float) -> Claim | None:
    """See `ports.Jobs.claim`."""
    row = _take(stage).run(connection, job=job_id, holder=worker, lease_s=lease_s).one_or_none()
    return _claim_of(row, stage) if row is not None else None


@cache
def _take(stage: Stage) -> Fixed:
    taken = (
        update(jobs)
        .where(
            jobs.c.job_id == bindparam("job"),
            jobs.c.status == WAITS_FOR[stage],
            jobs.c.lease_until.is_(None),
            or_(jobs.c.not_before.is_(None), jobs.c.not_before <= func.now()),
            ~is_held([Hold.PAUSE]),
        )
        .values(
            attempt=jobs.c.attempt + 1,
            status=HELD_AS[stage],
            lease_until=func.now() + func.make_interval(0, 0, 0, 0, 0, 0, bindparam("lease_s")),
            worker=bindparam("holder"),
            updated_at=func.now(),
        )
        .returning(*jobs.c)
        .cte("taken")
    )
    begun = insert(attempts).from_select(
        ["job_id", "no", "stage", "worker"],
        select(taken.c.job_id, taken.c.attempt, bindparam("stage", stage.value, String), taken.c.worker),
        include_defaults=False,
    )
    told = insert(events).from_select(
        ["job_id", "kind", "attempt", "detail"],
        select(
            taken.c.job_id,
            bindparam("kind", f"claimed_{stage}", String),
            taken.c.attempt,
            func.jsonb_build_object("worker", taken.c.worker),
        ),
        include_defaults=False,
    )
    return Fixed(
        select(
            taken,
            documents.c.blob_key,
            seconds_since(taken.c.needed_at).label("age_s"),
            (-seconds_since(taken.c.deadline)).label("remaining_s"),
            _REPEATS.label("repeats"),
        )
        .join(documents, documents.c.document_id == taken.c.document_id)
        .add_cte(begun.cte("begun"), told.cte("told")),
        *("job", "holder", "lease_s"),
    )


def _claim_of(row: Row[Any], stage: Stage) -> Claim:
    return Claim(
        job_id=row.job_id,
        attempt=row.attempt,
        stage=stage,
        document_id=row.document_id,
        tenant=row.tenant,
        profile=row.profile,
        profile_version=row.profile_version,
        blob_key=row.blob_key,
        vip=row.vip,
        age_s=float(row.age_s),
        window_s=row.window_s,
        remaining_s=float(row.remaining_s),
        retries=row.retries,
        rejections=row.rejections,
        lost=row.lost,
        route=route_of(row),
        ordering_key=row.ordering_key,
        repeats=bool(row.repeats),
    )


# ---------------------------------------------------------------- letting go


@dataclass(frozen=True, slots=True)
class Move:
    """What changes when a worker lets go of a job: columns of the job and of the attempt, and the events to tell.

    `worked_out` names those columns of the job that the database works out.
    """

    status: Status
    outcome: str
    kinds: Sequence[str]
    job: Mapping[str, Any] = field(default_factory=dict)
    worked_out: Sequence[str] = ()
    attempt: Mapping[str, Any] = field(default_factory=dict)


def let_go(connection: Connection, claim: Claim, move: Move) -> None:
    """The fenced compare-and-set by which a worker lets go of a job. Raises StaleAttempt."""
    statement = _let_go(claim.stage, tuple(move.job), tuple(move.worked_out), tuple(move.attempt))
    values = {f"job_{name}": value for name, value in move.job.items()}
    values |= {f"attempt_{name}": value for name, value in move.attempt.items()}
    own = {"job": claim.job_id, "no": claim.attempt}
    told = {"to": move.status, "ends_as": move.outcome, "kinds": list(move.kinds)}
    if statement.run(connection, **own, **told, **values).one_or_none() is None:
        raise rules.stale(claim)


@cache
def _let_go(stage: Stage, job: tuple[str, ...], worked_out: tuple[str, ...], attempt: tuple[str, ...]) -> Fixed:
    moved = _moved(stage, job, worked_out)
    ended = (
        update(attempts)
        .where(attempts.c.job_id == moved.c.job_id, attempts.c.no == moved.c.attempt)
        .values(
            {name: bindparam(f"attempt_{name}", type_=attempts.c[name].type) for name in attempt}
            | {"ended_at": func.clock_timestamp(), "outcome": bindparam("ends_as", type_=String)}
        )
    )
    told = insert(events).from_select(
        ["job_id", "tenant", "kind", "attempt"],
        select(moved.c.job_id, moved.c.tenant, func.unnest(bindparam("kinds", type_=ARRAY(String))), moved.c.attempt),
        include_defaults=False,
    )
    names = (*(f"job_{name}" for name in job), *(f"attempt_{name}" for name in attempt))
    done = select(moved.c.job_id).add_cte(ended.cte("ended"), told.cte("told"))
    return Fixed(done, "job", "no", "to", "ends_as", "kinds", *names)


def _moved(stage: Stage, job: tuple[str, ...], worked_out: tuple[str, ...]) -> CTE:
    given = {name: bindparam(f"job_{name}", type_=jobs.c[name].type) for name in job}
    return (
        update(jobs)
        .where(claimed_as(bindparam("job"), bindparam("no"), stage))
        .values(
            {**RELEASED, **given, **{name: _WORKED_OUT[name] for name in worked_out}}
            | {"status": bindparam("to", type_=String), "updated_at": func.now()}
        )
        .returning(jobs.c.job_id, jobs.c.attempt, jobs.c.tenant)
        .cte("moved")
    )
