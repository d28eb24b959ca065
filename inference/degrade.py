"""The degradation ladder: what is given up under load, in which order, and when it is given back.

`step` is pure: ladder, state, readings and time in, state and at most one change out. The controller calls it once a
tick and keeps the state in the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

import msgspec
import yaml

LADDER = Path(__file__).parent / "ladder.yaml"


class Action(StrEnum):
    """What a step does while it is taken."""

    CHEAPER_LANE = "cheaper_lane"
    NO_LOGPROBS = "no_logprobs"
    STREAM = "stream"
    HOLD_COLD = "hold_cold"


class Reading(StrEnum):
    """What a trigger can look at."""

    REQUESTS_PER_SECOND = "requests_per_second"
    KV_CACHE_USAGE = "kv_cache_usage"
    WAITING = "waiting"
    HOT_P99_S = "hot_p99_s"


Readings = Mapping[Reading, float]


class BrokenLadder(ValueError):
    """The ladder file is not of its form; the message names the file, the place and the reason."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """A reading above its limit; calm again at or below `back_at`. Between the two nothing changes."""

    reading: Reading
    above: float
    back_at: float

    def __post_init__(self) -> None:
        if self.back_at > self.above:
            raise ValueError(f"{self.reading}: back_at {self.back_at} is above the limit {self.above}; choose it below")


@dataclass(frozen=True, slots=True)
class Rung:
    """One step: any of its triggers takes it after `hold_s`; all of them calm for `back_s` take it back."""

    name: str
    action: Action
    hold_s: float
    back_s: float
    when: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        if not self.when or min(self.hold_s, self.back_s) < 0:
            raise ValueError(f"{self.name}: give at least one trigger, and times of at least 0 seconds")

    def is_triggered(self, readings: Readings) -> bool:
        return any(readings.get(trigger.reading, trigger.above) > trigger.above for trigger in self.when)

    def is_calm(self, readings: Readings) -> bool:
        """Every reading is known and low."""
        return all(
            trigger.reading in readings and readings[trigger.reading] <= trigger.back_at for trigger in self.when
        )


Ladder = Sequence[Rung]


@dataclass(frozen=True, slots=True)
class State:
    """How many steps are taken, since when the next one is triggered, since when the last one is calm."""

    taken: int = 0
    triggered_since: float | None = None
    calm_since: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A step taken (`taken` true) or taken back."""

    rung: Rung
    taken: bool


def step(ladder: Ladder, state: State, readings: Readings, now: float) -> tuple[State, Change | None]:
    """One tick: take the next step, take the last one back, or only note since when there is reason to."""
    state = _noted(ladder, state, readings, now)
    if state.triggered_since is not None and now - state.triggered_since >= ladder[state.taken].hold_s:
        # The next step waits its own time from here: one minute over the limit must not take all steps at once.
        return State(taken=state.taken + 1), Change(ladder[state.taken], taken=True)
    if state.calm_since is not None and now - state.calm_since >= ladder[state.taken - 1].back_s:
        return State(taken=state.taken - 1), Change(ladder[state.taken - 1], taken=False)
    return state, None


def _noted(ladder: Ladder, state: State, readings: Readings, now: float) -> State:
    """The state with both clocks started, kept or stopped by the present readings."""
    state = _within(ladder, state)
    triggered = state.taken < len(ladder) and ladder[state.taken].is_triggered(readings)
    calm = state.taken > 0 and not triggered and ladder[state.taken - 1].is_calm(readings)
    return replace(
        state,
        triggered_since=_since(state.triggered_since, now) if triggered else None,
        calm_since=_since(state.calm_since, now) if calm else None,
    )


def _since(before: float | None, now: float) -> float:
    """When it began; a clock that went back begins anew."""
    return now if before is None or before > now else before


def _within(ladder: Ladder, state: State) -> State:
    """A state of a longer ladder is cut to this one's length."""
    return state if state.taken <= len(ladder) else State(taken=len(ladder))


def actions(ladder: Ladder, state: State) -> frozenset[Action]:
    """What is in force."""
    return frozenset(rung.action for rung in ladder[: state.taken])


def names(ladder: Ladder, state: State) -> tuple[str, ...]:
    """The steps in force by name: the mark on the results that they touch."""
    return tuple(rung.name for rung in ladder[: state.taken])


def load_ladder(file: Path = LADDER) -> Ladder:
    """The ladder of a file. Raises BrokenLadder."""
    try:
        return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), tuple[Rung, ...], strict=False)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise BrokenLadder(f"{file}: {error}") from error
