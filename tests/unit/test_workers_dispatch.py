"""Dispatch is a pure choice: what waits, what is in flight, how many slots there are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from docmill.types import Heat, LengthClass, Route
from storage.ports import Stage, Waiting
from workers.dispatch import PARSE_DEPTH, Lanes, choose, in_turn

LANES = Lanes({"cpu": 16}, reserve=0.25)
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
) -> Waiting:
    route = Route(heat, length, 3, "cpu", f"infer.{heat}.{length}", 0.1) if stage == Stage.INFER else None
    deadline = NOON + timedelta(seconds=number)
    return Waiting(f"job_{number}", stage, tenant, "risk-report", vip, 1.0, window_s, deadline, 100, route)


def test_hot_work_is_released_at_once_however_full_the_lane_is() -> None:
    jobs = [waiting(number, Heat.HOT) for number in range(40)]
    assert len(choose(jobs, {"infer.hot.short": 100}, LANES)) == 40


def test_warm_work_leaves_the_reserve_free() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(40)]
    assert len(choose(jobs, {}, LANES)) == 12


def test_warm_work_in_flight_counts() -> None:
    jobs = [waiting(number, Heat.WARM) for number in range(40)]
    assert len(choose(jobs, {"infer.warm.long": 10}, LANES)) == 2


def test_cold_work_waits_while_anything_hotter_is_in_flight() -> None:
    jobs = [waiting(number) for number in range(4)]
    assert choose(jobs, {"infer.hot.short": 1}, LANES) == []
    assert choose(jobs, {"infer.warm.medium": 1}, LANES) == []
    assert len(choose(jobs, {}, LANES)) == 4


def test_cold_work_waits_for_warm_work_that_is_released_in_the_same_tick() -> None:
    assert [job.job_id for job in choose([waiting(1, Heat.WARM), waiting(2)], {}, LANES)] == ["job_1"]


def test_cold_long_documents_are_read_one_at_a_time() -> None:
    jobs = [waiting(number, length=LengthClass.LONG) for number in range(3)]
    assert len(choose(jobs, {}, LANES)) == 1
    assert choose(jobs, {"infer.cold.long": 1}, LANES) == []


def test_a_lane_with_one_slot_still_takes_cold_work() -> None:
    assert len(choose([waiting(1)], {}, Lanes({"cpu": 1}, reserve=0.25))) == 1


def test_tenants_take_turns_within_a_heat() -> None:
    jobs = [waiting(number, tenant="a") for number in range(3)] + [waiting(9, tenant="b")]
    assert [job.job_id for job in in_turn(jobs)] == ["job_0", "job_9", "job_1", "job_2"]


def test_documents_that_somebody_waits_for_are_parsed_before_cold_ones() -> None:
    jobs = [waiting(1, stage=Stage.PARSE), waiting(2, stage=Stage.PARSE, window_s=0)]
    assert [job.job_id for job in choose(jobs, {}, LANES)] == ["job_2", "job_1"]


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
    assert choose([other], {"infer.warm.short": 99}, Lanes({"cpu": 16, "awq": 4}, 0.25)) == [other]
