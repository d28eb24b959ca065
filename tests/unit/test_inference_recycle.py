"""An engine is started afresh when a limit is passed, and not before it has lived for a while."""

from __future__ import annotations

from dataclasses import replace

import pytest

from inference.recycle import Condition, Recycle, reason_to_recycle

LIMITS = Recycle(after_s=3600, preemptions_per_minute=30, idle_cache=0.2, memory_gib=8, least_s=600)
WELL = Condition(age_s=1800, preemptions_per_minute=1, idle_cache=0.0, memory_gib=4)


def test_a_young_and_healthy_engine_stays() -> None:
    assert reason_to_recycle(LIMITS, WELL) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age_s": 3601.0}, "3601 s old"),
        ({"preemptions_per_minute": 31.0}, "31.0 preemptions a minute"),
        ({"idle_cache": 0.25}, "25% of the cache"),
        ({"memory_gib": 9.0}, "9.0 GiB"),
    ],
)
def test_each_limit_is_a_reason_in_words(change: dict[str, float], words: str) -> None:
    assert words in str(reason_to_recycle(LIMITS, replace(WELL, **change)))


def test_a_cache_in_use_by_work_is_no_reason() -> None:
    assert reason_to_recycle(LIMITS, replace(WELL, idle_cache=None)) is None


def test_an_engine_that_was_just_started_is_left_alone() -> None:
    assert reason_to_recycle(LIMITS, Condition(599, 99, 0.9, 99)) is None


def test_a_limit_of_zero_is_none() -> None:
    assert reason_to_recycle(Recycle(0, 0, 0, 0), Condition(1e9, 1e9, 1.0, 1e9)) is None
