"""When an engine should be started afresh: it is old, it starves, or it has lost memory. A function of readings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Recycle:
    """The limits of a lane; 0 switches one off.

    `after_s`: its age. `preemptions_per_minute`: requests that it threw out for want of cache and has to read again;
    above a few, it does little else. `idle_cache`: the share of the cache in use while nothing runs, which is lost (it
    is given out in pages of one size, so nothing else is fragmentation there). `memory_gib`: main memory of the worker
    with its engine, which fragments. A worker that has not lived for `least_s` is left alone: starting helps no more.
    """

    after_s: float = 0.0
    preemptions_per_minute: float = 0.0
    idle_cache: float = 0.2
    memory_gib: float = 0.0
    least_s: float = 600.0

    def __post_init__(self) -> None:
        if min(self.after_s, self.preemptions_per_minute, self.idle_cache, self.memory_gib, self.least_s) < 0:
            raise ValueError(f"a limit is negative: {self}; 0 switches one off")


@dataclass(frozen=True, slots=True)
class Condition:
    """What is seen of an engine; `idle_cache` is None while it works."""

    age_s: float
    preemptions_per_minute: float
    idle_cache: float | None
    memory_gib: float


def reason_to_recycle(limits: Recycle, seen: Condition) -> str | None:
    """Why it should be started afresh, in words; None while it is well."""
    if seen.age_s < limits.least_s:
        return None
    if 0 < limits.after_s <= seen.age_s:
        return f"it is {seen.age_s:.0f} s old, the limit is {limits.after_s:g}"
    if 0 < limits.preemptions_per_minute < seen.preemptions_per_minute:
        return f"{seen.preemptions_per_minute:.1f} preemptions a minute, the limit is {limits.preemptions_per_minute:g}"
    if seen.idle_cache is not None and 0 < limits.idle_cache < seen.idle_cache:
        return f"{seen.idle_cache:.0%} of the cache is in use while nothing runs, the limit is {limits.idle_cache:.0%}"
    if 0 < limits.memory_gib < seen.memory_gib:
        return f"{seen.memory_gib:.1f} GiB of memory, the limit is {limits.memory_gib:g}"
    return None
