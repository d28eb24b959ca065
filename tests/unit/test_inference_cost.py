"""What a call may cost, which lane is taken for it, and how an engine's time is shared between requests."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.errors import DeadlineExceeded, EngineUnavailable, NoFittingLane, OverCostCap
from docmill.types import Heat, LengthClass, Usage
from inference.cost import Prices, affordable_prompt, cost, estimate, gpu_time
from inference.cost_control import (
    QUANTIZED_UP_TO,
    SHORTEST_PART,
    Cap,
    Work,
    call_estimate,
    cost_control,
    insist_on_lane,
    passed_over,
    room,
)
from inference.engine import Request
from inference.engines.stub import StubEngine, StubScript
from inference.lanes import Lane, load_lanes
from inference.meter import Bill, Meter
from inference.profile import load_profiles
from inference.route import better_lane, choose_lane, length_class

LANES = load_lanes()
REPORT = load_profiles()["risk-report"]
CAP = Cap()
PRICES = Prices(input=Decimal(1), cached=Decimal("0.1"), output=Decimal(4))
SECOND = 1_000_000_000


def lane(name: str, price: str, *, quality: int = 0, context: int = 4096, precision: str = "fp16") -> Lane:
    prices = Prices(input=Decimal(price), output=Decimal(price))
    return Lane(name, "m", "stub", precision, context, prices=prices, quality=quality)


def work(tokens: int, heat: Heat = Heat.COLD) -> Work:
    return Work(tokens, 320, heat, length_class(tokens))


DEAR, MIDDLE, CHEAP = lane("dear", "1"), lane("middle", "0.8"), lane("cheap", "0.1")

# ---------------------------------------------------------------- caps


def test_the_targets_of_a_call_are_below_its_cap() -> None:
    assert [str(CAP.target(length)) for length in LengthClass] == ["0.0015", "0.0022", "0.0028"]
    assert str(CAP.usd) == "0.003"


def test_a_target_above_the_cap_is_the_cap() -> None:
    assert Cap(Decimal("0.001")).target(LengthClass.LONG) == Decimal("0.001")


def test_a_cap_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above zero"):
        Cap(Decimal(0))


# ---------------------------------------------------------------- the lane


def test_the_preferred_lane_is_taken_while_its_call_costs_what_it_should() -> None:
    assert cost_control(work(2000), [DEAR, CHEAP], Cap(Decimal("0.01"), {})) == DEAR


def test_cold_work_takes_a_cheaper_lane_above_its_target_and_hot_work_only_above_the_cap() -> None:
    cap = Cap(Decimal("0.003"), {LengthClass.MEDIUM: Decimal("0.002")})
    assert cost_control(work(2000, Heat.COLD), [DEAR, MIDDLE], cap) == MIDDLE
    assert cost_control(work(2000, Heat.HOT), [DEAR, MIDDLE], cap) == DEAR
    assert cost_control(work(2000, Heat.HOT), [DEAR, MIDDLE], replace(cap, usd=Decimal("0.002"))) == MIDDLE


def test_the_cheapest_lane_is_taken_where_all_cost_too_much() -> None:
    assert cost_control(work(4000), [DEAR, CHEAP, MIDDLE], Cap(Decimal("0.0001"))) == CHEAP
    assert cost_control(work(4000), [], CAP) is None


def test_the_lane_that_was_passed_over_for_its_price_is_named() -> None:
    lanes = {one.name: one for one in (DEAR, CHEAP)}
    profile = replace(REPORT, lanes=("dear", "cheap"))
    assert passed_over(CHEAP, work(4000), profile, lanes, CAP) == "dear"
    assert passed_over(DEAR, work(4000), profile, lanes, CAP) is None
    assert passed_over(CHEAP, work(100), profile, lanes, CAP) is None


@given(
    tokens=st.integers(0, 100_000),
    heat=st.sampled_from(Heat),
    prices=st.lists(st.integers(0, 10_000), min_size=1, max_size=6),
    cap=st.integers(1, 10_000),
)
def test_no_lane_is_taken_above_the_cap_while_another_is_below(
    tokens: int, heat: Heat, prices: list[int], cap: int
) -> None:
    lanes = [lane(f"lane-{number}", str(price)) for number, price in enumerate(prices)]
    limit = Cap(Decimal(cap) / 1_000_000)
    chosen = cost_control(work(tokens, heat), lanes, limit)
    assert chosen is not None
    below = [one for one in lanes if call_estimate(work(tokens, heat), one) <= limit.usd]
    assert chosen in below or not below


# ---------------------------------------------------------------- precision


@pytest.mark.parametrize(
    ("name", "quantized"), [("fp16", False), ("awq", True), ("fp8", True), ("cpu", False)], ids=lambda one: str(one)
)
def test_a_lane_knows_whether_its_weights_are_quantised(name: str, quantized: bool) -> None:
    assert LANES[name].quantized is quantized


QUANTIZED = lane("small", "0.01", precision="fp8", context=8192)
WHOLE = lane("whole", "1", quality=1)
BOTH = {one.name: one for one in (QUANTIZED, WHOLE)}
LIKES_SMALL = replace(REPORT, lanes=("small", "whole"))


@pytest.mark.parametrize(
    ("tokens", "allowed", "expected"),
    [(QUANTIZED_UP_TO, False, "small"), (QUANTIZED_UP_TO + 1, False, "whole"), (QUANTIZED_UP_TO + 1, True, "small")],
)
def test_no_quantised_lane_reads_above_3072_tokens_unless_the_profile_allows_it(
    tokens: int, allowed: bool, expected: str
) -> None:
    profile = replace(LIKES_SMALL, quantized_long=allowed)
    assert choose_lane(tokens, Heat.COLD, profile, BOTH).name == expected


def test_where_only_quantised_lanes_run_a_long_document_is_refused_with_what_to_do() -> None:
    only = {"small": QUANTIZED}
    chosen = choose_lane(5000, Heat.COLD, LIKES_SMALL, only)
    with pytest.raises(NoFittingLane, match=r"5000 tokens .* 3072 .* small \(fp8\) .* quantized_long"):
        insist_on_lane(chosen, 5000, LIKES_SMALL)
    insist_on_lane(chosen, 5000, replace(LIKES_SMALL, quantized_long=True))


def test_a_second_reading_of_a_long_document_is_not_on_a_quantised_lane() -> None:
    best = replace(QUANTIZED, quality=9)
    lanes = {"small": best, "whole": WHOLE, "own": lane("own", "1")}
    chosen = [better_lane("own", Heat.COLD, LengthClass.LONG, REPORT, lanes, tokens=tokens) for tokens in (3000, 5000)]
    assert chosen == [best, WHOLE]


# ---------------------------------------------------------------- the length of a prompt


def test_a_prompt_has_all_the_room_that_the_cap_leaves() -> None:
    assert room(3000, 500, 9999, REPORT, LANES["fp16"], CAP) == 3000


def test_a_prompt_is_shorter_where_a_long_one_costs_too_much() -> None:
    cap = Cap(Decimal("0.002"))
    allowed = room(3000, 300, 9999, REPORT, DEAR, cap)
    assert allowed == 2000 - 300 - REPORT.max_output_tokens
    assert estimate(300 + allowed, REPORT.max_output_tokens, DEAR.prices) <= cap.usd


def test_a_call_that_cannot_be_made_cheap_enough_is_refused_with_its_price_and_the_cap() -> None:
    with pytest.raises(OverCostCap, match=r"lane dear may cost 0\.00\d+ dollars, over the cap of 0\.0006"):
        room(3000, 300, 9999, REPORT, DEAR, Cap(Decimal("0.0006")))


def test_a_short_document_is_not_refused_for_what_a_long_one_would_cost() -> None:
    cap = Cap(Decimal("0.000") + estimate(300 + 50, REPORT.max_output_tokens, DEAR.prices))
    assert room(3000, 300, 50, REPORT, DEAR, cap) == 50


@given(
    free=st.integers(1, 10_000),
    beside=st.integers(0, 2000),
    tokens=st.integers(0, 100_000),
    price=st.integers(0, 1000),
    cap=st.integers(1, 10_000),
)
def test_no_prompt_of_the_allowed_length_costs_more_than_the_cap(
    free: int, beside: int, tokens: int, price: int, cap: int
) -> None:
    one, limit = lane("x", str(Decimal(price) / 100)), Cap(Decimal(cap) / 1_000_000)
    try:
        allowed = room(free, beside, tokens, REPORT, one, limit)
    except OverCostCap:
        shortest = min(SHORTEST_PART, tokens, free)
        assert estimate(beside + shortest, REPORT.max_output_tokens, one.prices) > limit.usd
    else:
        assert 0 <= allowed <= free
        assert estimate(beside + allowed, REPORT.max_output_tokens, one.prices) <= limit.usd


def test_what_is_free_may_be_as_long_as_one_likes() -> None:
    free = Prices(output=Decimal(1))
    assert affordable_prompt(Decimal("0.001"), 1000, free) is None
    assert affordable_prompt(Decimal("0.001"), 1001, free) == -1


# ---------------------------------------------------------------- the price of time


def test_an_hour_of_two_gpus_costs_twice_the_hour() -> None:
    assert gpu_time(Decimal(3600), 2, Prices(Decimal(1), Decimal(0), Decimal(1), Decimal("2.5"))) == 5


def test_an_hour_has_no_price_where_a_token_has_none() -> None:
    with pytest.raises(ValueError, match="give input and output prices too"):
        Prices(gpu_hour=Decimal(2))


class Clock:
    """Nanoseconds, moved by hand."""

    def __init__(self) -> None:
        self.now = 7 * SECOND

    def __call__(self) -> int:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += int(seconds * SECOND)


def test_requests_that_are_in_the_engine_together_share_its_time() -> None:
    clock = Clock()
    meter = Meter(clock)
    first = meter.begin()
    clock.wait(2)
    second = meter.begin()
    clock.wait(2)
    assert meter.end(first) == Decimal(3)
    clock.wait(1)
    assert meter.end(second) == Decimal(2)
    clock.wait(10)
    alone = meter.begin()
    clock.wait(1)
    assert meter.end(alone) == 1
    assert meter.busy_ns == 6 * SECOND


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 1000)), max_size=60))
def test_all_shares_add_up_to_the_time_in_which_the_engine_was_busy(steps: list[tuple[bool, int]]) -> None:
    clock = Clock()
    meter, inside, shares = Meter(clock), [], Decimal(0)
    for comes, milliseconds in steps:
        if comes or not inside:
            inside.append(meter.begin())
        else:
            shares += meter.end(inside.pop(0))
        clock.wait(milliseconds / 1000)
    for begun in inside:
        shares += meter.end(begun)
    assert abs(shares - Decimal(meter.busy_ns) / SECOND) < Decimal("0.001")


# ---------------------------------------------------------------- the bill


def request(number: int = 0) -> Request:
    return Request(f"job.1.{number}", "system", "user " * 20, 50)


def billed(bill: Bill, engine: StubEngine, requests: int = 1) -> None:
    async def run() -> None:
        await asyncio.gather(*(bill.over(engine).submit(request(number)) for number in range(requests)))

    asyncio.run(run())


def test_a_bill_adds_up_what_every_request_used() -> None:
    bill = Bill(Meter(), PRICES)
    billed(bill, StubEngine(StubScript(answers=["one two", "three"])), 2)
    used = bill.usage()
    assert used.prompt_tokens == 2 * 27
    assert used.cost_usd == cost(used.prompt_tokens, used.cached_tokens, used.output_tokens, PRICES) > 0
    assert bill.is_used


def test_where_an_hour_has_a_price_the_time_is_paid_for_and_not_the_tokens() -> None:
    prices = replace(PRICES, gpu_hour=Decimal(36))
    bill = Bill(Meter(), prices, gpus=2)
    billed(bill, StubEngine(StubScript(delay_s=0.02)))
    used = bill.usage()
    assert used.gpu_seconds >= Decimal("0.02")
    assert used.cost_usd == gpu_time(used.gpu_seconds, 2, prices)


def test_a_request_that_fails_in_the_engine_is_on_the_bill_with_its_prompt() -> None:
    bill = Bill(Meter(), PRICES, prompt_tokens=100)
    with pytest.raises(DeadlineExceeded):
        billed(bill, StubEngine(StubScript(failures={0: DeadlineExceeded("late")})))
    assert bill.usage().cost_usd == cost(100, 0, 0, PRICES)


def test_a_request_that_the_engine_did_not_take_costs_nothing() -> None:
    bill = Bill(Meter(), PRICES, prompt_tokens=100)
    with pytest.raises(EngineUnavailable):
        billed(bill, StubEngine(StubScript(failures={0: EngineUnavailable("no")})))
    assert bill.usage() == Usage()
    assert not bill.is_used


def test_a_request_that_is_cancelled_is_on_the_bill() -> None:
    bill = Bill(Meter(), PRICES, prompt_tokens=100)

    async def cancelled() -> None:
        task = asyncio.ensure_future(bill.over(StubEngine(StubScript(delay_s=60))).submit(request()))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert bill.usage().prompt_tokens == 100
    assert bill.usage().gpu_seconds > 0
