"""The token buckets in a real Valkey: many takers at once, and the same numbers as the pure rule."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from redis import Redis

from inference.admission import Bucket
from tests.conftest import valkey
from workers.admission import Buckets

CLIENTS = 50


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from valkey(tmp_path_factory.mktemp("buckets"))


@pytest.fixture
def redis(url: str) -> Iterator[Redis]:
    with Redis.from_url(url) as client:
        client.flushall()
        yield client


def storm(url: str, buckets: dict[str, Bucket], *, tries: int, shares: dict[str, float]) -> int:
    """Fifty clients with a connection each start together and take as often as they can; what they got in all."""
    start = threading.Barrier(CLIENTS)

    def client(number: int) -> int:
        with Redis.from_url(url) as redis:
            mine = Buckets(redis)
            start.wait(timeout=30)
            return sum(mine.take(buckets, shares=shares) for _ in range(tries))

    with ThreadPoolExecutor(CLIENTS) as pool:
        return sum(pool.map(client, range(CLIENTS)))


def test_fifty_clients_at_once_get_exactly_what_a_bucket_holds(redis: Redis, url: str) -> None:
    assert storm(url, {"lane": Bucket(depth=100, rate=0)}, tries=20, shares={}) == 100


def test_under_a_refill_fifty_clients_get_no_more_than_depth_and_time_give(redis: Redis, url: str) -> None:
    bucket, began = Bucket(depth=40, rate=100), time.monotonic()
    given_out = storm(url, {"lane": bucket}, tries=20, shares={})
    assert 40 < given_out <= bucket.depth + bucket.rate * (time.monotonic() - began) + 1


def test_a_crowded_lane_gives_out_only_its_share(redis: Redis, url: str) -> None:
    assert storm(url, {"lane": Bucket(depth=100, rate=0)}, tries=5, shares={"lane": 0.4}) == 40


def test_lane_and_tenant_are_taken_from_together_or_not_at_all(redis: Redis, url: str) -> None:
    lane, tenant = Bucket(depth=60, rate=0), Bucket(depth=25, rate=0)
    assert storm(url, {"lane": lane, "tenant:a": tenant}, tries=4, shares={}) == 25
    assert storm(url, {"lane": lane, "tenant:b": tenant}, tries=4, shares={}) == 25
    assert storm(url, {"lane": lane, "tenant:c": tenant}, tries=4, shares={}) == 10


def test_a_wiped_redis_costs_no_more_than_one_full_bucket(redis: Redis) -> None:
    buckets = Buckets(redis)
    assert sum(buckets.take({"lane": Bucket(5, 0)}, shares={}) for _ in range(9)) == 5
    redis.flushall()
    redis.script_flush()
    assert sum(buckets.take({"lane": Bucket(5, 0)}, shares={}) for _ in range(9)) == 5
