"""How much of an engine's time each request has had, and what one attempt has used, whatever became of it.

While n requests are in the engine, each gets an n-th of every second: the shares add up to the time in which the
engine was busy, so all of it is paid for, once. A request that waits in the engine's own queue counts as being in it;
callers keep no more there than the lane has slots.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from docmill.errors import EngineUnavailable, PromptTooLong
from docmill.types import Usage
from inference.cost import Prices, cost, gpu_time
from inference.engine import Completion, Engine, EngineInfo, Health, Request

_NANOSECONDS: Final = Decimal(1_000_000_000)
_MICROSECOND: Final = Decimal("1e-6")
#: A request that was cancelled is out of the engine soon; its bill waits so long for it.
_SETTLES_WITHIN_S: Final = 2.0
#: These say that the engine has not begun.
_UNUSED: Final = (EngineUnavailable, PromptTooLong)


@dataclass
class Meter:
    """Shares one engine's time between the requests in it. Safe to use from many threads."""

    clock: Callable[[], int] = time.monotonic_ns
    busy_ns: int = 0
    _inside: int = 0
    _at: int = 0
    #: Nanoseconds that a request has had which is in the engine since it was last empty.
    _each: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self) -> float:
        """A request goes in; what it gets back is for `end`."""
        with self._lock:
            self._advance()
            self._inside += 1
            return self._each

    def end(self, begun: float) -> Decimal:
        """It comes out: its share in seconds."""
        with self._lock:
            self._advance()
            share = self._each - begun
            self._inside -= 1
            if not self._inside:
                self._each = 0.0
            return (Decimal(share) / _NANOSECONDS).quantize(_MICROSECOND)

    def _advance(self) -> None:
        now = self.clock()
        if self._inside:
            self.busy_ns += now - self._at
            self._each += (now - self._at) / self._inside
        self._at = now


@dataclass
class Bill:
    """What one attempt uses of an engine. `prompt_tokens` is the length of a prompt that came to no answer."""

    meter: Meter
    prices: Prices
    gpus: int = 1
    prompt_tokens: int = 0
    _used: Usage = field(default_factory=Usage)
    _inside: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def over(self, engine: Engine) -> Engine:
        """The engine, with its requests on this bill."""
        return _Metered(engine, self)

    def usage(self) -> Usage:
        """All that was used; the tokens of an answer that was broken off are not known."""
        with self._changed:
            self._changed.wait_for(lambda: not self._inside, _SETTLES_WITHIN_S)
            return self._used

    @property
    def is_used(self) -> bool:
        """Whether the engine has begun anything."""
        return self.usage() != Usage()

    def enter(self) -> None:
        with self._changed:
            self._inside += 1

    def leave(self, share: Decimal, completion: Completion | None, *, used: bool) -> None:
        with self._changed:
            self._inside -= 1
            if used:
                self._used = _with(self._used, share, completion or self._broken_off(), self)
            self._changed.notify_all()

    def _broken_off(self) -> Completion:
        return Completion("", "", self.prompt_tokens, 0, 0, 0.0, 0.0, 0.0)


def _with(used: Usage, share: Decimal, one: Completion, bill: Bill) -> Usage:
    """Tokens, shares and costs add up; requests run side by side, so of their times the longest counts."""
    paid = gpu_time(share, bill.gpus, bill.prices) if bill.prices.gpu_hour else None
    by_tokens = cost(one.prompt_tokens, one.cached_tokens, one.output_tokens, bill.prices)
    return Usage(
        prompt_tokens=used.prompt_tokens + one.prompt_tokens,
        cached_tokens=used.cached_tokens + one.cached_tokens,
        output_tokens=used.output_tokens + one.output_tokens,
        queue_ms=max(used.queue_ms, one.queue_ms),
        prefill_ms=max(used.prefill_ms, one.prefill_ms),
        decode_ms=max(used.decode_ms, one.decode_ms),
        cost_usd=used.cost_usd + (by_tokens if paid is None else paid),
        gpu_seconds=used.gpu_seconds + share,
    )


@dataclass(frozen=True)
class _Metered:
    """`inference.engine.Engine` around another one."""

    engine: Engine
    bill: Bill

    @property
    def info(self) -> EngineInfo:
        return self.engine.info

    async def submit(self, request: Request) -> Completion:
        completion, used = None, True
        self.bill.enter()
        begun = self.bill.meter.begin()
        try:
            completion = await self.engine.submit(request)
            return completion
        except _UNUSED:
            used = False
            raise
        finally:
            self.bill.leave(self.bill.meter.end(begun), completion, used=used)

    async def cancel(self, request_id: str) -> None:
        await self.engine.cancel(request_id)

    async def health(self) -> Health:
        return await self.engine.health()

    async def metrics(self) -> dict[str, float]:
        return await self.engine.metrics()

    async def close(self) -> None:
        await self.engine.close()
