"""Queue, lane and priority follow from length and need, on every boundary."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Heat, LengthClass
from inference.lanes import load_lanes
from inference.profile import load_profiles
from inference.route import (
    QUEUES_IN_ORDER,
    Need,
    better_lane,
    heat_of,
    hot_score,
    length_class,
    priority_of,
    queues_of,
    recency,
    route,
)

LANES = load_lanes()
PROFILES = load_profiles()
CPU = {"cpu": LANES["cpu"]}
AT_ONCE = Need(0, 0)


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [(0, "short"), (511, "short"), (512, "medium"), (2048, "medium"), (2049, "long"), (10**6, "long")],
)
def test_length_has_its_bounds_at_512_and_2048(tokens: int, expected: str) -> None:
    assert length_class(tokens) == expected


@pytest.mark.parametrize(
    ("score", "expected"),
    [(1.0, "hot"), (0.800000001, "hot"), (0.8, "warm"), (0.5, "warm"), (0.499999999, "cold"), (0.0, "cold")],
)
def test_hot_is_above_eight_tenths_and_cold_below_a_half(score: float, expected: str) -> None:
    assert heat_of(score) == expected


@pytest.mark.parametrize(
    ("need", "expected"),
    [
        (Need(0, 0), 1.0),
        (Need(300, 0), 0.5),
        (Need(600, 0), 0.0),
        (Need(9999, 0), 0.0),
        (Need(0, 86400), 0.0),
        (Need(86400 - 600, 86400), 0.0),
        (Need(86400 - 300, 86400), 0.5),
        (Need(86400, 86400), 1.0),
        (Need(99999, 86400), 1.0),
        (Need(0, 240), 0.6),
        (Need(0, 86400, waited_for=True), 1.0),
        (Need(86400, 86400, waited_for=True), 1.0),
    ],
)
def test_recency_falls_from_arrival_and_rises_to_a_deadline(need: Need, expected: float) -> None:
    assert recency(need) == pytest.approx(expected)


def test_the_score_is_seven_tenths_recency_and_three_tenths_brevity() -> None:
    assert hot_score(0, 4096, AT_ONCE) == 1.0
    assert hot_score(4096, 4096, AT_ONCE) == 0.7
    assert hot_score(2048, 4096, Need(300, 0)) == 0.5
    assert hot_score(9999, 4096, AT_ONCE) == 0.7


@pytest.mark.parametrize("heat", Heat)
@pytest.mark.parametrize("length", LengthClass)
def test_priority_is_the_table_of_the_design(heat: Heat, length: LengthClass) -> None:
    expected = {"hot": 1 if length is LengthClass.LONG else 0, "warm": 2, "cold": 3}[heat]
    assert priority_of(heat, length) == expected


def test_the_queues_are_listed_hottest_and_shortest_first() -> None:
    assert QUEUES_IN_ORDER == (
        "infer.hot.short", "infer.hot.medium", "infer.hot.long",
        "infer.warm.short", "infer.warm.medium", "infer.warm.long",
        "infer.cold.short", "infer.cold.medium", "infer.cold.long",
    )  # fmt: skip


@pytest.mark.parametrize("name", sorted(PROFILES))
@pytest.mark.parametrize("tokens", [100, 700, 3000])
def test_a_vip_is_always_hot(name: str, tokens: int) -> None:
    decided = route(tokens, 4096, Need(0, 86400), True, PROFILES[name], LANES)
    assert decided.heat is Heat.HOT
    assert decided.priority == (1 if tokens > 2048 else 0)


def test_what_somebody_waits_for_is_hot_and_a_backfill_is_cold() -> None:
    profile = PROFILES["transaction-monitoring"]
    assert route(300, 2048, AT_ONCE, False, profile, CPU).queue == "infer.hot.short"
    assert route(300, 2048, Need(0, 86400), False, profile, CPU).queue == "infer.cold.short"


@pytest.mark.parametrize(
    ("profile", "lane", "queue"),
    [
        ("risk-report", "fp16", "infer.hot.short"),
        ("transaction-monitoring", "awq", "infer.hot.short@awq"),
        ("customer-screening", "fp8", "infer.hot.short@fp8"),
    ],
)
def test_the_preferred_lane_is_taken_and_named_unless_it_is_the_default(profile: str, lane: str, queue: str) -> None:
    decided = route(300, 4096, AT_ONCE, False, PROFILES[profile], LANES)
    assert (decided.lane, decided.queue) == (lane, queue)


def test_a_prompt_too_long_for_the_preferred_lane_goes_to_the_next_that_takes_it() -> None:
    assert route(1500, 4096, AT_ONCE, False, PROFILES["transaction-monitoring"], LANES).lane == "fp8"


def test_a_prompt_that_fits_no_lane_still_goes_to_one_that_drains_its_queue() -> None:
    decided = route(50_000, 4096, AT_ONCE, False, PROFILES["transaction-monitoring"], LANES)
    assert decided.queue in queues_of(LANES[decided.lane], LANES)


def test_a_profile_whose_lanes_do_not_run_here_takes_the_default() -> None:
    profile = replace(PROFILES["risk-report"], lanes=("elsewhere",))
    assert route(300, 2048, AT_ONCE, False, profile, CPU).lane == "cpu"


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.floats(0, 1e6), st.sampled_from([0, 240, 86400]), st.booleans())
def test_every_route_leads_to_a_queue_that_its_lane_drains(
    tokens: int, context: int, age: float, window: int, vip: bool
) -> None:
    for profile in PROFILES.values():
        decided = route(tokens, context, Need(age, window), vip, profile, LANES)
        assert decided.queue in queues_of(LANES[decided.lane], LANES)
        assert 0 <= decided.hot_score <= 1


# ---------------------------------------------------------------- a second reading


@pytest.mark.parametrize(("present", "better"), [("awq", "fp16"), ("fp8", "fp16"), ("cpu", "fp16"), ("fp16", "fp16")])
def test_a_second_reading_is_on_the_best_lane_above_the_first_or_on_the_same(present: str, better: str) -> None:
    lane = better_lane(present, Heat.HOT, LengthClass.SHORT, PROFILES["transaction-monitoring"], LANES)
    assert lane.name == better


def test_a_better_lane_must_take_such_work() -> None:
    lanes = {**LANES, "fp16": replace(LANES["fp16"], heats=(Heat.COLD,))}
    assert better_lane("awq", Heat.HOT, LengthClass.SHORT, PROFILES["risk-report"], lanes).name == "fp8"


def test_of_equally_good_lanes_the_profiles_order_decides() -> None:
    lanes = {"x": replace(LANES["cpu"], name="x", quality=3), **LANES}
    assert better_lane("cpu", Heat.HOT, LengthClass.SHORT, PROFILES["risk-report"], lanes).name == "fp16"


def test_without_another_lane_the_second_reading_is_on_the_same() -> None:
    assert better_lane("cpu", Heat.HOT, LengthClass.SHORT, PROFILES["risk-report"], CPU).name == "cpu"
    assert better_lane("gone", Heat.HOT, LengthClass.SHORT, PROFILES["risk-report"], CPU).name == "cpu"
