"""How much more a lane takes: a token bucket whose depth follows the use of the KV cache.

The functions are pure; `workers/admission.py` has the same rule as one atomic script in Redis, and a test holds the
two together. What a token stands for is the bucket's own: a request, a thousand prompt tokens, a cent.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Above this use of the KV cache a lane is crowded, above the second one nearly full: vLLM then preempts requests,
#: which throws away their work.
CROWDED, NEARLY_FULL = 0.70, 0.90
#: The share of its depth that a bucket keeps then.
CROWDED_SHARE, NEARLY_FULL_SHARE = 0.7, 0.4
#: A share falls at once and grows back by this much a step.
GROWTH = 0.1
#: Shares are sums of tenths: without rounding 0.4 + 0.1 + 0.1 + 0.1 is less than 0.7.
_PLACES = 6


@dataclass(frozen=True, slots=True)
class Bucket:
    """`depth` tokens at most, `rate` new ones a second."""

    depth: float
    rate: float

    def __post_init__(self) -> None:
        if self.depth <= 0 or self.rate < 0:
            raise ValueError(f"{self}: a bucket has a depth above 0 and a rate of at least 0")


@dataclass(frozen=True, slots=True)
class Level:
    """What is in a bucket: `tokens` at the moment `at`, in seconds."""

    tokens: float
    at: float


def allowed_share(kv_use: float) -> float:
    """The share of the depth that this use of the KV cache allows; the fuller case is tested first."""
    if kv_use > NEARLY_FULL:
        return NEARLY_FULL_SHARE
    return CROWDED_SHARE if kv_use > CROWDED else 1.0


def next_share(share: float, kv_use: float) -> float:
    """The share after one step: down at once, up by a tenth."""
    return min(allowed_share(kv_use), round(share + GROWTH, _PLACES))


def refilled(level: Level, bucket: Bucket, share: float, now: float) -> Level:
    """The level at `now`; never above the depth that the share leaves. A clock that went back adds nothing."""
    passed = max(0.0, now - level.at)
    return Level(min(bucket.depth * share, level.tokens + passed * bucket.rate), max(now, level.at))


def take(level: Level, bucket: Bucket, *, cost: float, share: float, now: float) -> tuple[Level, bool]:
    """Take `cost` tokens if there are so many; the level afterwards, and whether they were there."""
    present = refilled(level, bucket, share, now)
    if present.tokens < cost:
        return present, False
    return Level(present.tokens - cost, present.at), True


def full(bucket: Bucket, now: float) -> Level:
    """A bucket that nobody has taken from yet."""
    return Level(bucket.depth, now)
