"""What was spent, on what, and what of it was wasted: sums of the ledger, exact to its last digit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select, text, true

from storage.bookkeeping import SPENDING, ZERO, Kind
from storage.schema import ledger

#: Calls above this percentile of what calls cost are the long tail.
TAIL_ABOVE = 0.9


@dataclass(frozen=True, slots=True)
class Line:
    """One tenant, profile and length class. `held_usd` is reserved for what runs; `wasted_usd` is part of the used."""

    tenant: str
    profile: str
    length_class: str
    calls: int
    retries: int
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    gpu_seconds: Decimal
    used_usd: Decimal
    wasted_usd: Decimal
    held_usd: Decimal


@dataclass(frozen=True, slots=True)
class Wasted:
    """What one kind of waste has taken."""

    waste: str
    attempts: int
    gpu_seconds: Decimal
    usd: Decimal


@dataclass(frozen=True, slots=True)
class Gap:
    """A batch from its first reading to its last, and how long of that nothing was read; None: work without a batch."""

    batch_id: str | None
    batch_s: Decimal
    idle_s: Decimal


@dataclass(frozen=True, slots=True)
class CostReport:
    """The ledger since a moment. `ledger_usd` is summed apart from the lines, which must add up to it."""

    lines: tuple[Line, ...]
    wasted: tuple[Wasted, ...]
    gaps: tuple[Gap, ...]
    p90_usd: Decimal
    tail_usd: Decimal
    entries: int
    ledger_usd: Decimal

    @property
    def used_usd(self) -> Decimal:
        return sum((line.used_usd for line in self.lines), ZERO)

    @property
    def held_usd(self) -> Decimal:
        return sum((line.held_usd for line in self.lines), ZERO)

    @property
    def wasted_usd(self) -> Decimal:
        return sum((one.usd for one in self.wasted), ZERO)

    @property
    def tail_share(self) -> Decimal:
        return share(self.tail_usd, self.used_usd)

    @property
    def cache_hit_rate(self) -> Decimal:
        return share(sum(line.cached_tokens for line in self.lines), sum(line.prompt_tokens for line in self.lines))

    @property
    def idle_share(self) -> Decimal:
        return share(sum((gap.idle_s for gap in self.gaps), ZERO), sum((gap.batch_s for gap in self.gaps), ZERO))

    @property
    def adds_up(self) -> bool:
        of_lines = sum((line.wasted_usd for line in self.lines), ZERO)
        return self.used_usd + self.held_usd == self.ledger_usd and of_lines == self.wasted_usd


def share(part: Decimal | int, whole: Decimal | int) -> Decimal:
    """To four places; nothing of nothing is nothing."""
    return (Decimal(part) / Decimal(whole)).quantize(Decimal("0.0001")) if whole else ZERO


def cost_report(connection: Connection, *, since: datetime | None = None, tenant: str | None = None) -> CostReport:
    """Everything at once. The connection's transaction should be REPEATABLE READ, so that all parts see one ledger."""
    wanted = and_(
        true() if since is None else ledger.c.at >= since, true() if tenant is None else ledger.c.tenant == tenant
    )
    p90, tail = _tail(connection, wanted)
    count, total = connection.execute(
        select(func.count(), func.coalesce(func.sum(ledger.c.amount_usd), ZERO)).where(wanted)
    ).one()
    return CostReport(
        lines=_lines(connection, wanted),
        wasted=_wasted(connection, wanted),
        gaps=_gaps(connection, since, tenant),
        p90_usd=p90,
        tail_usd=tail,
        entries=count,
        ledger_usd=total,
    )


_IS_USE = ledger.c.kind.in_(list(SPENDING))


def _sum(column: ColumnElement[Any], where: ColumnElement[bool] = _IS_USE) -> ColumnElement[Any]:
    return func.coalesce(func.sum(column).filter(where), 0).label(column.key)


def _lines(connection: Connection, wanted: ColumnElement[bool]) -> tuple[Line, ...]:
    kind = (ledger.c.tenant, ledger.c.profile, func.coalesce(ledger.c.length_class, "-"))
    settled = ledger.c.kind == Kind.SETTLE
    rows = connection.execute(
        select(
            *kind,
            func.count().filter(settled),
            func.count().filter(settled, ledger.c.retries > 0),
            _sum(ledger.c.prompt_tokens),
            _sum(ledger.c.cached_tokens),
            _sum(ledger.c.output_tokens),
            _sum(ledger.c.gpu_seconds),
            _sum(ledger.c.amount_usd),
            _sum(ledger.c.amount_usd, and_(_IS_USE, ledger.c.waste.is_not(None))),
            _sum(ledger.c.amount_usd, ~_IS_USE),
        )
        .where(wanted)
        .group_by(*kind)
        .order_by(*kind)
    )
    return tuple(_line(row) for row in rows)


def _line(row: Iterable[Any]) -> Line:
    tenant, profile, length, calls, retries, *counted = row
    prompt, cached, output, *amounts = counted
    return Line(tenant, profile, length, calls, retries, int(prompt), int(cached), int(output), *map(Decimal, amounts))


def _wasted(connection: Connection, wanted: ColumnElement[bool]) -> tuple[Wasted, ...]:
    """An estimate that was taken back leaves nothing of its kind."""
    sums = [func.sum(ledger.c[name]).label(name) for name in ("gpu_seconds", "amount_usd", "prompt_tokens")]
    each = (
        select(ledger.c.waste, *sums)
        .where(wanted, _IS_USE, ledger.c.waste.is_not(None))
        .group_by(ledger.c.waste, ledger.c.job_id, ledger.c.attempt)
        .having(or_(*(one != 0 for one in sums)))
        .subquery()
    )
    rows = connection.execute(
        select(each.c.waste, func.count(), func.sum(each.c.gpu_seconds), func.sum(each.c.amount_usd))
        .group_by(each.c.waste)
        .order_by(each.c.waste)
    )
    return tuple(Wasted(*row) for row in rows)


def _tail(connection: Connection, wanted: ColumnElement[bool]) -> tuple[Decimal, Decimal]:
    """The 90th percentile of what calls cost, and what the calls above it cost together."""
    amount = func.sum(ledger.c.amount_usd).label("usd")
    calls = select(amount).where(wanted, _IS_USE).group_by(ledger.c.job_id, ledger.c.attempt).subquery()
    p90 = select(func.percentile_disc(TAIL_ABOVE).within_group(calls.c.usd)).scalar_subquery()
    above = func.sum(case((calls.c.usd > p90, calls.c.usd), else_=ZERO))
    row = connection.execute(select(p90, func.coalesce(above, ZERO)).select_from(calls)).one()
    return row[0] or ZERO, row[1]


#: Time in which anything was being read counts as busy for every batch that was under way.
_GAPS = text("""
WITH readings AS (
    SELECT jobs.batch_id, started_at, ended_at
    FROM attempts JOIN jobs USING (job_id)
    WHERE attempts.stage = 'infer' AND ended_at IS NOT NULL AND outcome <> 'lost'
      AND started_at >= coalesce(CAST(:since AS timestamptz), '-infinity')
      AND tenant = coalesce(CAST(:tenant AS text), tenant)
),
busy AS (SELECT range_agg(tstzrange(started_at, ended_at)) AS spans FROM readings),
stretches AS (SELECT batch_id, min(started_at) AS began, max(ended_at) AS ended FROM readings GROUP BY batch_id)
SELECT
    batch_id,
    extract(EPOCH FROM ended - began) AS batch_s,
    extract(EPOCH FROM ended - began) - coalesce((
        SELECT sum(extract(EPOCH FROM upper(span) - lower(span)))
        FROM unnest(busy.spans * tstzmultirange(tstzrange(began, ended))) AS span
    ), 0) AS idle_s
FROM stretches CROSS JOIN busy
ORDER BY began
""")


def _gaps(connection: Connection, since: datetime | None, tenant: str | None) -> tuple[Gap, ...]:
    return tuple(Gap(*row) for row in connection.execute(_GAPS, {"since": since, "tenant": tenant}))
