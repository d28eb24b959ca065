"""The same quota at every door: requests are counted in Redis, tokens and money are what PostgreSQL has on record.

Tokens and money are known once a document has been read, so a tenant may overshoot by what it has under way. Counting
stops no work: while Redis is away, requests are let through.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Generic, TypeVar

from limits import RateLimitItemPerMinute
from limits.storage import RedisStorage
from limits.strategies import MovingWindowRateLimiter
from redis.exceptions import RedisError
from sqlalchemy import Engine

from docmill.errors import QuotaExceeded, RateLimited
from docmill.log import logger, say
from storage import tenants
from storage.tenants import Quota, Used

log = logger("quotas")
T = TypeVar("T")

#: A changed quota, and what was used meanwhile, are seen this much later at most.
REMEMBERED_S = 3.0
#: Tenants of whom something is remembered; beyond it all is asked for anew.
MOST_REMEMBERED = 10_000
#: No longer than this for an answer of Redis.
REDIS_TIMEOUT_S = 1.0


class Remembered(Generic[T]):
    """Answers by tenant, asked for again once they are older than `REMEMBERED_S`."""

    def __init__(self, ask: Callable[[str], T]) -> None:
        self._ask = ask
        self._held: dict[str, tuple[float, T]] = {}

    def of(self, tenant: str) -> T:
        held = self._held.get(tenant)
        if held is None or time.monotonic() - held[0] > REMEMBERED_S:
            if len(self._held) >= MOST_REMEMBERED:
                self._held.clear()
            held = self._held[tenant] = (time.monotonic(), self._ask(tenant))
        return held[1]


@dataclass
class Quotas:
    """The doors' question: may this tenant go on? The answer no is an error that says until when."""

    database: Engine
    redis_url: str
    usual: Quota
    clock: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    def count_request(self, tenant: str) -> None:
        """One more request. Raises RateLimited."""
        limit = self._quotas.of(tenant).requests_per_minute
        if limit:
            wait_s = self._hit(tenant, limit)
            if wait_s is not None:
                raise RateLimited(
                    f"{tenant} has made {limit} requests within a minute, its limit: go on in {wait_s:.0f} s, or have "
                    f"the limit raised (`docmill tenants set {tenant} --requests-per-minute N`)",
                    retry_after_s=wait_s,
                )

    def check_spending(self, tenant: str) -> None:
        """Before work is taken: whether tokens and money are left. Raises QuotaExceeded."""
        quota = self._quotas.of(tenant)
        today, month = self._spans()
        if quota.tokens_per_day or quota.usd_per_day:
            used = self._today.of(tenant)
            _refuse_over(tenant, "tokens-per-day", used.tokens, quota.tokens_per_day, today.left_s)
            _refuse_over(tenant, "usd-per-day", used.usd, quota.usd_per_day, today.left_s)
        if quota.usd_per_month:
            _refuse_over(tenant, "usd-per-month", self._month.of(tenant).usd, quota.usd_per_month, month.left_s)

    def quota(self, tenant: str) -> Quota:
        """The limits in force for the tenant."""
        with self.database.begin() as connection:
            return tenants.quota(connection, tenant).over(self.usual)

    def used_today(self, tenant: str) -> Used:
        """What was used since midnight, UTC."""
        return self._used(tenant, self._spans()[0])

    def used_this_month(self, tenant: str) -> Used:
        """What was used since the first of the month, UTC."""
        return self._used(tenant, self._spans()[1])

    def _used(self, tenant: str, span: Span) -> Used:
        with self.database.begin() as connection:
            return tenants.used(connection, tenant, span.since)

    def _spans(self) -> tuple[Span, Span]:
        return _spans(self.clock())

    @cached_property
    def _quotas(self) -> Remembered[Quota]:
        return Remembered(self.quota)

    @cached_property
    def _today(self) -> Remembered[Used]:
        return Remembered(self.used_today)

    @cached_property
    def _month(self) -> Remembered[Used]:
        return Remembered(self.used_this_month)

    @cached_property
    def _limiter(self) -> MovingWindowRateLimiter:
        storage = RedisStorage(
            self.redis_url,
            key_prefix="docmill:quota",
            socket_timeout=REDIS_TIMEOUT_S,
            socket_connect_timeout=REDIS_TIMEOUT_S,
        )
        return MovingWindowRateLimiter(storage)

    def _hit(self, tenant: str, limit: int) -> float | None:
        """Count one; the seconds to wait if that is one too many."""
        item = RateLimitItemPerMinute(limit)
        try:
            if self._limiter.hit(item, tenant):
                return None
            return max(1.0, self._limiter.get_window_stats(item, tenant).reset_time - time.time())
        except RedisError as error:
            say(log, "not_counted", level=logging.WARNING, tenant=tenant, why=type(error).__name__)
            return None


@dataclass(frozen=True, slots=True)
class Span:
    """A day or a month: since when, and for how many seconds still."""

    since: datetime
    left_s: float


def _spans(now: datetime) -> tuple[Span, Span]:
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    month = day.replace(day=1)
    next_month = (month + timedelta(days=32)).replace(day=1)
    return Span(day, (day + timedelta(days=1) - now).total_seconds()), Span(month, (next_month - now).total_seconds())


def _refuse_over(tenant: str, name: str, used: int | Decimal, limit: int | Decimal | None, wait_s: float) -> None:
    if limit and used >= limit:
        raise QuotaExceeded(
            f"{tenant} has used {_shown(used)} of {_shown(limit)} {name.replace('-', ' ')}: go on in {wait_s:.0f} s "
            f"or have the quota raised (`docmill tenants set {tenant} --{name} N`)",
            retry_after_s=wait_s,
        )


def _shown(number: int | Decimal) -> str:
    return f"{Decimal(number).normalize():,f}"
