"""The ladder on a clock of its own: steps, holds, hysteresis, and the way back."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.degrade import (
    Action,
    BrokenLadder,
    Reading,
    Rung,
    State,
    Trigger,
    actions,
    load_ladder,
    names,
    step,
)

QPS = Trigger(Reading.REQUESTS_PER_SECOND, above=800, back_at=640)
LADDER = (
    Rung("cheaper", Action.CHEAPER_LANE, hold_s=60, back_s=120, when=(QPS,)),
    Rung("hold", Action.HOLD_COLD, hold_s=30, back_s=120, when=(QPS,)),
)


FOOT = State()


def climb(seconds: Iterable[int], qps: float | None, state: State = FOOT) -> tuple[State, list[tuple[int, str]]]:
    """Let the seconds pass at this rate; the state at the end, and every change with its second."""
    readings = {} if qps is None else {Reading.REQUESTS_PER_SECOND: qps}
    changes = []
    for now in seconds:
        state, change = step(LADDER, state, readings, now)
        if change is not None:
            changes.append((now, f"{'+' if change.taken else '-'}{change.rung.name}"))
    return state, changes


def test_a_step_is_taken_after_a_minute_over_the_limit_and_the_next_after_its_own_time() -> None:
    state, changes = climb(range(300), 900)
    assert changes == [(60, "+cheaper"), (91, "+hold")]
    assert state.taken == 2


def test_a_dip_below_the_limit_starts_the_minute_again() -> None:
    state, _ = climb(range(59), 900)
    state, _ = climb([59], 700, state)
    state, changes = climb(range(60, 121), 900, state)
    assert changes == [(120, "+cheaper")]


def test_exactly_the_limit_takes_no_step() -> None:
    assert climb(range(300), 800)[1] == []


def test_between_the_limit_and_the_way_back_nothing_changes() -> None:
    state, changes = climb(range(100, 10_000), 700, State(taken=1))
    assert (state.taken, changes) == (1, [])


def test_steps_are_taken_back_last_first_each_after_its_calm() -> None:
    state, changes = climb(range(500), 640, State(taken=2))
    assert changes == [(120, "-hold"), (241, "-cheaper")]
    assert state.taken == 0


def test_a_busy_moment_breaks_the_calm() -> None:
    state, _ = climb(range(119), 100, State(taken=1))
    state, _ = climb([119], 700, state)
    assert climb(range(120, 240), 100, state)[1] == []
    assert climb(range(120, 241), 100, state)[1] == [(240, "-cheaper")]


def test_a_reading_that_is_missing_changes_nothing() -> None:
    assert climb(range(10_000), None, State(taken=1))[1] == []
    assert climb(range(10_000), None)[1] == []


def test_a_clock_that_goes_back_takes_no_step_early() -> None:
    state, _ = climb([1000], 900)
    assert climb(range(100, 160), 900, state)[1] == []


def test_what_is_in_force_is_told_by_action_and_by_name() -> None:
    assert actions(LADDER, State(taken=1)) == {Action.CHEAPER_LANE}
    assert names(LADDER, State(taken=2)) == ("cheaper", "hold")
    assert names(LADDER, State()) == ()


def test_a_state_of_a_longer_ladder_is_cut() -> None:
    assert step(LADDER[:1], State(taken=2), {Reading.REQUESTS_PER_SECOND: 700}, 0)[0].taken == 1


@given(st.lists(st.floats(0, 2000), max_size=300))
def test_the_ladder_never_moves_by_more_than_a_step_and_never_off_its_ends(rates: list[float]) -> None:
    state = State()
    for now, rate in enumerate(rates):
        before = state.taken
        state, change = step(LADDER, state, {Reading.REQUESTS_PER_SECOND: rate}, now)
        assert abs(state.taken - before) == (change is not None)
        assert 0 <= state.taken <= len(LADDER)


def test_the_built_in_ladder_is_the_documented_order() -> None:
    ladder = load_ladder()
    assert [rung.action for rung in ladder] == list(Action)
    assert all(rung.when[0] == QPS and rung.hold_s == 60 for rung in ladder)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("- {name: a, action: fly, hold_s: 1, back_s: 1, when: []}", "action"),
        ("- {name: a, action: stream, hold_s: 1, back_s: 1, when: []}", "at least one trigger"),
        (
            "- {name: a, action: stream, hold_s: 1, back_s: 1, when: [{reading: waiting, above: 1, back_at: 2}]}",
            "choose it below",
        ),
        ("- [", "parsing"),
    ],
)
def test_a_broken_ladder_names_file_and_reason(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "ladder.yaml"
    file.write_text(text)
    with pytest.raises(BrokenLadder, match=reason) as caught:
        load_ladder(file)
    assert str(file) in str(caught.value)
