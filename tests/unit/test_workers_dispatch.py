"""Dispatch is a pure choice: what waits, what is in flight, what the lanes say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Heat, LengthClass, Route
from storage.ports import Stage, Waiting
from workers.release import (
    BESIDE_PROMPT,
    CREDIT,
    PARSE_DEPTH,
    LaneState,
    View,
    charged,
    choose,
    slots_needed,
)

LANES = View({"cpu": LaneState(16)}, reserve=0.25)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def waiting(
    number: int,
    heat: Heat = Heat.COLD,
    *,
    length: LengthClass = LengthClass.SHORT,
    stage: Stage = Stage.INFER,
    tenant: str = "a",
    window_s: int = 3600,
    vip: bool = False,
    tokens: int = 100,
) -> Waiting:
    route = Route(heat, length, 3, "cpu", f"infer.{heat}.{length}", 0.1) if stage == Stage.INFER else None
    deadline = NOON + timedelta(seconds=number)
    return Waiting(f"job_{number}", stage, tenant, "risk-report", vip, 1.0, window_s, deadline, tokens, route)


def lanes_with(**state: Any) -> View:
    return replace(LANES, lanes={"cpu": LaneState(16, **state)})


def test_hot_work_is_released_at_once_however_full_the_lane_is() -> None:
    jobs = [waiting(number, Heat.HOT) for number in range(40)]
    assert len(choose(jobs, {"infer.hot.short": 100}, LANES)) == 40


def test_warm_work_leaves_the_reserve_free() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(40)]
    assert len(choose(jobs, {}, LANES)) == 12


def test_warm_work_in_flight_counts() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(40)]
    assert len(choose(jobs, {"infer.warm.long": 10}, LANES)) == 2


def names(jobs: Iterable[Waiting]) -> list[str]:
    return [job.job_id for job in jobs]


def test_cold_work_waits_while_hotter_work_holds_more_than_an_eighth_of_the_slots() -> None:
    jobs = [waiting(number) for number in range(4)]
    assert choose(jobs, {"infer.hot.short": 3}, LANES) == []
    assert choose(jobs, {"infer.hot.short": 1, "infer.warm.medium": 2}, LANES) == []
    assert len(choose(jobs, {}, LANES)) == 4


def test_what_hot_work_holds_is_taken_from_colds_room_and_not_from_the_reserve() -> None:
    jobs = [waiting(number) for number in range(40)]
    assert len(choose(jobs, {"infer.hot.short": 2}, LANES)) == 12 - 2


def test_cold_work_waits_while_requests_wait_in_the_engine() -> None:
    assert choose([waiting(1)], {}, lanes_with(engine_waiting=1)) == []


def test_a_crowded_cache_shrinks_what_warm_and_cold_work_may_hold() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(40)]
    assert len(choose(jobs, {}, lanes_with(share=0.4))) == 4


def test_held_cold_work_waits_and_warm_work_does_not() -> None:
    jobs = [waiting(1, Heat.WARM), waiting(2)]
    assert names(choose(jobs, {}, replace(LANES, hold_cold=True))) == ["job_1"]


def test_cold_work_whose_deadlines_need_slots_gets_them_on_a_busy_lane_and_no_more() -> None:
    jobs = [waiting(number) for number in range(40)]
    busy = {"infer.hot.short": 16, "infer.cold.short": 1}
    assert len(choose(jobs, busy, lanes_with(needed=6.5))) == 6
    assert len(choose(jobs, busy, replace(lanes_with(needed=6.5), hold_cold=True))) == 6
    assert choose(jobs, busy, lanes_with(needed=6.0)) == []


def test_the_reserve_is_kept_even_from_deadlines() -> None:
    jobs = [waiting(number) for number in range(40)]
    assert len(choose(jobs, {"infer.hot.short": 16}, lanes_with(needed=99))) == 12


@pytest.mark.parametrize(
    ("backlog", "slots"),
    [
        ([], 0.0),
        ([(1000, 400)], 1.0),
        ([(1000, 400), (2000, 400)], 1.0),
        ([(2000, 400), (1000, 800)], 2.0),
        ([(-5, 3)], 3.0),
    ],
)
def test_the_slots_that_deadlines_need_are_those_of_the_tightest(
    backlog: list[tuple[float, int]], slots: float
) -> None:
    assert slots_needed(backlog, service_s=2.0) == pytest.approx(slots)


def test_cold_work_comes_after_the_warm_work_of_the_same_tick() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(9)] + [waiting(10)]
    assert choose(jobs, {}, LANES)[:9] == jobs[:9]
    assert names(choose(jobs, {}, LANES)) == names(jobs[:9])


def test_cold_long_documents_are_read_one_at_a_time() -> None:
    jobs = [waiting(number, length=LengthClass.LONG) for number in range(3)]
    assert len(choose(jobs, {}, LANES)) == 1
    assert choose(jobs, {"infer.cold.long": 1}, LANES) == []


def test_a_lane_with_one_slot_still_takes_cold_work() -> None:
    assert len(choose([waiting(1)], {}, View({"cpu": LaneState(1)}, reserve=0.25))) == 1


def test_cold_long_documents_are_read_one_on_each_engine_unless_deadlines_need_more() -> None:
    jobs = [waiting(number, length=LengthClass.LONG) for number in range(9)]
    assert len(choose(jobs, {}, lanes_with(engines=2))) == 2
    assert len(choose(jobs, {}, lanes_with(needed=7))) == 7


# ---------------------------------------------------------------- fairness


def test_tenants_take_turns_within_a_heat() -> None:
    jobs = [waiting(number, Heat.WARM, tenant="a") for number in range(3)] + [waiting(9, Heat.WARM, tenant="b")]
    assert names(choose(jobs, {}, LANES)) == ["job_0", "job_9", "job_1", "job_2"]


def released_over(ticks: int, weights: dict[str, float], *, room: int, tokens: dict[str, int]) -> Counter[str]:
    """Releases by tenant over many ticks in which each has more than enough waiting."""
    view = View({"cpu": LaneState(room)}, reserve=0.0, weights=weights)
    counted: Counter[str] = Counter()
    for _ in range(ticks):
        jobs = [waiting(n, Heat.WARM, tenant=name, tokens=tokens[name]) for name in tokens for n in range(room)]
        chosen = choose(jobs, {}, view)
        counted.update(job.tenant for job in chosen)
        view = replace(view, served=charged(chosen, jobs, view))
    return counted


@pytest.mark.parametrize("room", [1, 3, 12])
def test_released_work_is_in_proportion_to_weights_within_two_percent(room: int) -> None:
    counted = released_over(1200 // room, {"a": 1, "b": 2, "c": 3}, room=room, tokens={"a": 100, "b": 100, "c": 100})
    assert [counted[name] / counted.total() for name in "abc"] == pytest.approx([1 / 6, 2 / 6, 3 / 6], abs=0.02)


def test_long_documents_use_up_more_of_a_tenants_share() -> None:
    tokens = {"short": 100, "long": 100 + 3 * (100 + BESIDE_PROMPT)}
    counted = released_over(400, {}, room=1, tokens=tokens)
    assert counted["short"] / counted["long"] == pytest.approx(4, rel=0.05)


def test_a_tenant_that_comes_back_does_not_stop_the_others_until_it_has_caught_up() -> None:
    view = replace(LANES, served={"a": 1e9, "b": 0.0})
    jobs = [waiting(number, Heat.WARM, tenant=name, tokens=BESIDE_PROMPT) for name in "ab" for number in range(200)]
    counted = Counter(job.tenant for job in choose(jobs, {}, replace(view, lanes={"cpu": LaneState(200)})))
    assert counted["a"] >= (150 - CREDIT / (2 * BESIDE_PROMPT)) / 2 - 1
    assert counted["b"] > counted["a"]


def test_within_a_tenant_the_nearest_deadline_comes_first() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(30)]
    assert choose(jobs, {}, LANES) == jobs[:12]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(Heat), st.integers(1, 9000)), max_size=60))
def test_no_choice_takes_a_job_twice_or_breaks_into_the_reserve(drawn: list[tuple[str, Heat, int]]) -> None:
    jobs = [waiting(n, heat, tenant=who, tokens=size) for n, (who, heat, size) in enumerate(drawn)]
    chosen = choose(sorted(jobs, key=lambda job: list(Heat).index(job.route.heat)), {}, LANES)  # type: ignore[union-attr]  # all are routed
    assert len(set(names(chosen))) == len(chosen)
    assert sum(job.route.heat != Heat.HOT for job in chosen if job.route) <= 12


# ---------------------------------------------------------------- length


def test_what_is_released_together_differs_in_length_by_no_more_than_two_where_the_backlog_allows_it() -> None:
    sizes = [100, 400, 120, 390, 90, 410, 110, 405, 95, 105, 100, 130, 70, 99, 400, 101, 98, 102]
    chosen = choose([waiting(number, tokens=size) for number, size in enumerate(sizes)], {}, LANES)
    lengths = [job.tokens for job in chosen]
    assert len(lengths) == 12
    assert max(lengths) / min(lengths) <= 2


def test_what_a_lane_is_reading_is_the_measure_of_what_comes_next() -> None:
    jobs = [waiting(1, tokens=100), waiting(2, tokens=400), waiting(3, tokens=380)]
    assert names(choose(jobs, {}, lanes_with(length=390.0))) == ["job_2", "job_3", "job_1"]


def test_a_backlog_of_other_lengths_still_fills_the_lane() -> None:
    jobs = [waiting(number, tokens=100 * 3**number) for number in range(6)]
    assert len(choose(jobs, {}, LANES)) == 6


# ---------------------------------------------------------------- parsing, validation, lanes


def test_documents_that_somebody_waits_for_are_parsed_before_cold_ones() -> None:
    jobs = [waiting(1, stage=Stage.PARSE), waiting(2, stage=Stage.PARSE, window_s=0)]
    assert names(choose(jobs, {}, LANES)) == ["job_2", "job_1"]


def test_cold_parses_with_the_broker_are_bounded_and_hot_ones_are_not() -> None:
    cold = [waiting(number, stage=Stage.PARSE) for number in range(40)]
    hot = [waiting(number + 100, stage=Stage.PARSE, vip=True) for number in range(40)]
    chosen = choose([*hot, *cold], {"parse.cold": 6}, LANES)
    assert len(chosen) == 40 + PARSE_DEPTH - 6


@pytest.mark.parametrize("stage", [Stage.VALIDATE])
def test_what_was_read_is_checked_at_once(stage: Stage) -> None:
    jobs = [waiting(number, stage=stage) for number in range(30)]
    assert len(choose(jobs, {"infer.hot.short": 99}, LANES)) == 30


def test_a_second_lane_has_slots_of_its_own() -> None:
    route = Route(Heat.WARM, LengthClass.SHORT, 2, "awq", "infer.warm.short@awq", 0.6)
    job = waiting(1, Heat.WARM)
    other = Waiting(*(getattr(job, name) for name in job.__slots__[:-1]), route)
    assert choose([other], {"infer.warm.short": 99}, View({"cpu": LaneState(16), "awq": LaneState(4)}, 0.25)) == [other]


def test_an_owned_lane_takes_its_owners_work_and_nobody_elses_not_even_hot() -> None:
    owned = lanes_with(tenants=("bank",))
    jobs = [waiting(number, heat, tenant=who) for number, (heat, who) in enumerate((h, t) for h in Heat for t in "ab")]
    assert choose(jobs, {}, owned) == []
    own = [replace(job, tenant="bank") for job in jobs]
    assert choose([*jobs, *own], {}, owned)
    assert {job.tenant for job in choose([*jobs, *own], {}, owned)} == {"bank"}
