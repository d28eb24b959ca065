"""What the controller makes of reports: lanes, readings, the ladder's state; no server is needed for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from docmill.types import Heat
from inference.degrade import Reading, State, load_ladder
from inference.lanes import load_lanes
from workers.controller import by_lane, lane_state, readings_of
from workers.engine_report import ENOUGH, Report, Watch, hot_reading
from workers.ladder import Fresh, cheapest_first, kept_of, state_of

LANES = load_lanes()
FP16 = LANES["fp16"]
ONE = Report("fp16", "w1", running=4, waiting=1, kv_cache_usage=0.5, requests_per_second=3.0, seconds_a_job=2.0)
OTHER = replace(ONE, worker="w2", waiting=2, kv_cache_usage=0.8, seconds_a_job=4.0, hot_p99_s=1.9)


def test_a_lane_has_the_slots_of_all_its_engines() -> None:
    state = lane_state(FP16, [ONE, OTHER], share=0.7, backlog=[], length=None)
    assert (state.slots, state.engines, state.engine_waiting, state.share) == (32, 2, 3, 0.7)


def test_a_lane_that_nobody_tells_of_has_the_slots_of_one_engine() -> None:
    assert lane_state(FP16, [], share=1.0, backlog=[], length=None).slots == FP16.max_num_seqs


def test_the_slots_that_deadlines_need_follow_the_measured_time_of_a_job() -> None:
    state = lane_state(FP16, [ONE, OTHER], share=1.0, backlog=[(1000.0, 800)], length=None)
    assert state.needed == pytest.approx(3.0)


def test_reports_are_sorted_by_lane() -> None:
    assert {lane: len(told) for lane, told in by_lane([ONE, OTHER, replace(ONE, lane="awq")]).items()} == {
        "fp16": 2,
        "awq": 1,
    }


def test_readings_add_rates_and_take_the_worst_of_the_rest() -> None:
    assert readings_of([ONE, OTHER]) == {
        Reading.REQUESTS_PER_SECOND: 6.0,
        Reading.KV_CACHE_USAGE: 0.8,
        Reading.WAITING: 3.0,
        Reading.HOT_P99_S: 1.9,
    }


def test_what_no_engine_tells_is_no_reading() -> None:
    assert readings_of([]) == {}


def test_a_watch_tells_the_last_minute() -> None:
    watch = Watch(window_s=60)
    for second in range(120):
        watch.saw(Heat.COLD, took_s=2.0 if second < 60 else 3.0, since_needed_s=99.0, now=second)
    assert watch.summary(now=119.5) == (pytest.approx(1.0), pytest.approx(3.0), 0.0)
    assert watch.summary(now=1000) == (0.0, 0.0, 0.0)


def test_a_watch_tells_how_long_hot_work_takes_and_nothing_of_the_rest() -> None:
    watch = Watch()
    watch.saw(Heat.HOT, took_s=0.1, since_needed_s=1.5, now=1)
    watch.saw(Heat.WARM, took_s=0.1, since_needed_s=99.0, now=1)
    assert watch.summary(now=1)[2] == 1.5


def test_one_slow_job_among_few_moves_no_ladder_and_among_many_the_99th_percentile_does() -> None:
    assert hot_reading([]) == 0.0
    assert hot_reading([0.5] * 50 + [9.0]) == 0.5
    assert hot_reading([0.5] * (ENOUGH - 2) + [9.0] * 2) == 9.0
    assert hot_reading([3.0] * 5) == 3.0


def test_the_ladders_state_survives_the_database() -> None:
    state = State(2, triggered_since=12.5)
    kept = kept_of(state, load_ladder())
    assert state_of(kept) == state
    assert kept["steps"] == ["cheaper-precision", "no-logprobs"]
    assert state_of({}) == State()


def test_a_fresh_value_is_asked_for_again_only_when_it_is_old() -> None:
    asked = iter(range(9))
    lasting, passing = Fresh(lambda: next(asked), for_s=60), Fresh(lambda: next(asked), for_s=-1)
    assert [lasting.value(), lasting.value()] == [0, 0]
    assert [passing.value(), passing.value()] == [1, 2]


def test_the_cheaper_lane_comes_first_and_lanes_that_do_not_run_here_fall_away() -> None:
    assert cheapest_first(("fp16", "fp8", "awq", "elsewhere"), LANES) == ("awq", "fp8", "fp16")
