"""The token buckets of `inference/admission.py` in Redis: one script, so that no two takers get the same token.

A bucket that Redis has lost is full again: the worst that a wiped Redis costs is one burst of a bucket's depth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from redis import Redis

from inference.admission import Bucket

#: A bucket that nobody asked for this long is forgotten; it would be full by then.
FORGET_S = 3600

#: Refill every bucket by Redis's own clock, then take from all of them or from none.
_TAKE = """
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1e6
local cost, keep = tonumber(ARGV[1]), tonumber(ARGV[2])
local levels, enough = {}, 1
for i, key in ipairs(KEYS) do
  local depth, rate = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  local most = depth * tonumber(ARGV[3 * i + 2])
  local held = redis.call('HMGET', key, 'tokens', 'at')
  local tokens, at = tonumber(held[1]) or depth, tonumber(held[2]) or now
  levels[i] = math.min(most, tokens + math.max(0, now - at) * rate)
  if levels[i] < cost then enough = 0 end
end
for i, key in ipairs(KEYS) do
  redis.call('HSET', key, 'tokens', string.format('%.9f', levels[i] - cost * enough), 'at', string.format('%.6f', now))
  redis.call('EXPIRE', key, keep)
end
return enough
"""


class Buckets:
    """Takes from named buckets, atomically between all processes."""

    def __init__(self, redis: Redis) -> None:
        self._take = redis.register_script(_TAKE)

    def take(self, buckets: Mapping[str, Bucket], *, cost: float = 1.0, shares: Mapping[str, float]) -> bool:
        """Take `cost` from every bucket, or from none if one has less; a name without a share has its whole depth."""
        numbers: list[Any] = [cost, FORGET_S]
        for name, bucket in buckets.items():
            numbers += [bucket.depth, bucket.rate, shares.get(name, 1.0)]
        taken = self._take(keys=[f"docmill:bucket:{name}" for name in buckets], args=numbers)
        return bool(cast("int", taken))
