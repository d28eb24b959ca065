"""The degradation ladder as the processes see it: moved by dispatch, kept in the database, looked at by all."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from docmill.log import logger, say
from inference.degrade import Action, Ladder, Reading, State, actions, names, step
from inference.lanes import Lane
from storage.control import ControlStore

log = logger("ladder")
T = TypeVar("T")

#: A process looks at the database no more often than this.
GLANCE_S = 1.0


def climb(control: ControlStore, ladder: Ladder, readings: Mapping[Reading, float]) -> State:
    """Move the ladder by these readings; a step is an event and a log line."""

    def move(kept: dict[str, Any], now: float) -> tuple[dict[str, Any], dict[str, Any] | None]:
        state, change = step(ladder, state_of(kept), readings, now)
        if change is None:
            return kept_of(state, ladder), None
        say(log, "ladder", level=logging.WARNING, step=change.rung.name, taken=change.taken)
        detail = {"step": change.rung.name, "action": change.rung.action.value, "taken": change.taken}
        return kept_of(state, ladder), {**detail, "readings": {name.value: one for name, one in readings.items()}}

    return state_of(control.climb(move))


def state_of(kept: Mapping[str, Any]) -> State:
    """The state that the database keeps; an empty one is the foot of the ladder."""
    return State(kept.get("taken", 0), kept.get("triggered_since"), kept.get("calm_since"))


def kept_of(state: State, ladder: Ladder) -> dict[str, Any]:
    """The state as JSON, with the names of the steps for whoever reads the table."""
    return {
        "taken": state.taken,
        "triggered_since": state.triggered_since,
        "calm_since": state.calm_since,
        "steps": list(names(ladder, state)),
    }


class Fresh(Generic[T]):
    """A value that is asked for again once it is older than `for_s`, and than `rest` times what it took to ask."""

    def __init__(self, ask: Callable[[], T], for_s: float, *, rest: float = 0.0) -> None:
        self._ask, self._for_s, self._rest = ask, for_s, rest
        self._held: tuple[float, T] | None = None

    def value(self) -> T:
        now = time.monotonic()
        if self._held is None or now > self._held[0]:
            found = self._ask()
            ended = time.monotonic()
            self._held = (ended + max(self._for_s, self._rest * (ended - now)), found)
        return self._held[1]


class Glance:
    """The ladder's state, at most a second old."""

    def __init__(self, control: ControlStore, ladder: Ladder) -> None:
        self._ladder = ladder
        self._state = Fresh(lambda: state_of(control.ladder()), GLANCE_S)

    def state(self) -> State:
        return self._state.value()

    def steps(self) -> tuple[str, ...]:
        """The names of the steps that are taken now."""
        return names(self._ladder, self.state())

    def lanes(self, preferred: tuple[str, ...], lanes: Mapping[str, Lane]) -> tuple[str, ...]:
        """A profile's lanes in the order in which they are to be tried: the cheapest first while a step says so."""
        if Action.CHEAPER_LANE not in actions(self._ladder, self.state()):
            return preferred
        return cheapest_first(preferred, lanes)


def cheapest_first(preferred: tuple[str, ...], lanes: Mapping[str, Lane]) -> tuple[str, ...]:
    """The lanes of lower quality, then of lower price first; those that do not run here fall away."""
    here = [lanes[name] for name in preferred if name in lanes]
    return tuple(lane.name for lane in sorted(here, key=lambda lane: (lane.quality, lane.prices.output)))
