"""The bucket's depth follows the KV cache, and no order of takers gets more than it holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.admission import Bucket, Level, allowed_share, full, next_share, refilled, take

BUCKET = Bucket(depth=10, rate=2)


@pytest.mark.parametrize(
    ("kv_use", "share"), [(0.0, 1.0), (0.7, 1.0), (0.71, 0.7), (0.9, 0.7), (0.91, 0.4), (1.0, 0.4)]
)
def test_the_share_falls_at_70_and_at_90_percent(kv_use: float, share: float) -> None:
    assert allowed_share(kv_use) == share


def test_a_share_falls_at_once_and_grows_back_a_tenth_a_step() -> None:
    share, seen = 1.0, []
    for kv_use in (0.95, 0.8, 0.8, 0.8, 0.8, 0.5, 0.5, 0.5, 0.5):
        share = next_share(share, kv_use)
        seen.append(share)
    assert seen == pytest.approx([0.4, 0.5, 0.6, 0.7, 0.7, 0.8, 0.9, 1.0, 1.0])


def test_a_shrunken_depth_takes_away_tokens_that_are_there() -> None:
    assert refilled(full(BUCKET, 0), BUCKET, 0.4, 0) == Level(4, 0)


def test_a_bucket_refills_with_time_up_to_its_depth() -> None:
    empty = Level(0, 100)
    assert refilled(empty, BUCKET, 1, 102).tokens == 4
    assert refilled(empty, BUCKET, 1, 1000).tokens == 10


def test_a_clock_that_goes_back_gives_nothing() -> None:
    assert refilled(Level(3, 100), BUCKET, 1, 50) == Level(3, 100)


def test_what_is_refused_costs_nothing() -> None:
    level, taken = take(Level(3, 0), BUCKET, cost=4, share=1, now=0)
    assert (level, taken) == (Level(3, 0), False)


def test_a_bucket_without_depth_is_refused() -> None:
    with pytest.raises(ValueError, match="depth above 0"):
        Bucket(depth=0, rate=1)


@given(st.lists(st.tuples(st.floats(0, 3), st.floats(0.1, 5), st.floats(0, 1)), max_size=60))
def test_over_any_time_no_more_is_taken_than_depth_and_rate_give(
    asked: list[tuple[float, float, float]],
) -> None:
    level, now, share, given_out = full(BUCKET, 0), 0.0, 1.0, 0.0
    for pause, cost, kv_use in asked:
        now, share = now + pause, next_share(share, kv_use)
        level, taken = take(level, BUCKET, cost=cost, share=share, now=now)
        given_out += cost * taken
        assert level.tokens >= 0
    assert given_out <= BUCKET.depth + BUCKET.rate * now + 1e-6
