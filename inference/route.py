"""Where a job is read and how soon: a pure function of its length, its need and the lanes that there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from docmill.types import Heat, LengthClass, Route
from inference.cost_control import Cap, Work, cost_control, may_read
from inference.lanes import Lane, default_lane
from inference.profile import Profile

SHORT_BELOW = 512
MEDIUM_UP_TO = 2048
HOT_ABOVE = 0.8
COLD_BELOW = 0.5
RECENCY_WEIGHT = 0.7
BREVITY_WEIGHT = 0.3
#: Recency falls, or rises towards a deadline, within ten minutes.
RECENCY_S = 600.0
#: Where no cap is given, no lane is too dear.
ANY_PRICE = Cap(Decimal("Infinity"), {})
#: The score is rounded so that a document on a threshold does not fall to either side by float noise.
_PLACES = 9

QUEUES_IN_ORDER = tuple(f"infer.{heat}.{length}" for heat in Heat for length in LengthClass)
"""Hottest first, within a heat the shortest first."""


@dataclass(frozen=True, slots=True)
class Need:
    """How soon a result is needed: the job's age, and the window it may take (0: at once).

    `waited_for` says that somebody waits although the profile has a window.
    """

    age_s: float
    window_s: float
    waited_for: bool = False


def route(
    tokens: int,
    context_tokens: int,
    need: Need,
    vip: bool,
    profile: Profile,
    lanes: Mapping[str, Lane],
    *,
    cap: Cap = ANY_PRICE,
) -> Route:
    """The queue, lane and priority of a prompt of `tokens`, against a context of `context_tokens`."""
    score = hot_score(tokens, context_tokens, need)
    heat = Heat.HOT if vip else heat_of(score)
    length = length_class(tokens)
    lane = choose_lane(tokens, heat, profile, lanes, cap)
    return Route(
        heat=heat,
        length_class=length,
        priority=priority_of(heat, length),
        lane=lane.name,
        queue=queue_name(heat, length, lane, lanes),
        hot_score=score,
    )


def hot_score(tokens: int, context_tokens: int, need: Need) -> float:
    """0.7 recency + 0.3 brevity."""
    brevity = max(0.0, 1 - tokens / context_tokens)
    return round(RECENCY_WEIGHT * recency(need) + BREVITY_WEIGHT * brevity, _PLACES)


def recency(need: Need) -> float:
    """From 0 to 1: falling over ten minutes where somebody waits, rising over the last ten where there is a window."""
    applying = []
    if need.waited_for or need.window_s <= 0:
        applying.append(1 - need.age_s / RECENCY_S)
    if need.window_s > 0:
        applying.append(1 - (need.window_s - need.age_s) / RECENCY_S)
    return min(1.0, max(0.0, *applying))


def heat_of(score: float) -> Heat:
    if score > HOT_ABOVE:
        return Heat.HOT
    return Heat.COLD if score < COLD_BELOW else Heat.WARM


def length_class(tokens: int) -> LengthClass:
    if tokens < SHORT_BELOW:
        return LengthClass.SHORT
    return LengthClass.MEDIUM if tokens <= MEDIUM_UP_TO else LengthClass.LONG


def priority_of(heat: Heat, length: LengthClass) -> int:
    """P0 hot, P1 hot and long, P2 warm, P3 cold."""
    if heat is Heat.HOT:
        return 1 if length is LengthClass.LONG else 0
    return 2 if heat is Heat.WARM else 3


def choose_lane(tokens: int, heat: Heat, profile: Profile, lanes: Mapping[str, Lane], cap: Cap = ANY_PRICE) -> Lane:
    """The profile's first lane that takes this work in one piece, else its first that takes such work at all.

    A lane that would cost too much, or whose weights are quantised too much for the length, is passed over. A prompt
    that fits no lane is split by the caller and read in parts. Only a lane that drains the queue is chosen, so where
    the profile names none, any other that does is better than waiting for ever.
    """
    preferred = [lanes[name] for name in profile.lanes if name in lanes]
    length = length_class(tokens)
    draining = [lane for lane in [*preferred, *lanes.values()] if heat in lane.heats and length in lane.lengths]
    allowed = [lane for lane in draining if may_read(lane, tokens, profile)]
    fitting = [lane for lane in allowed if lane in preferred and tokens <= lane.context_tokens]
    work = Work(tokens, profile.max_output_tokens, heat, length)
    candidates = next(filter(None, (fitting, allowed, draining, preferred)), [])
    return cost_control(work, candidates, cap) or default_lane(lanes)


def better_lane(
    present: str, heat: Heat, length: LengthClass, profile: Profile, lanes: Mapping[str, Lane], *, tokens: int = 0
) -> Lane:
    """The lane for a second reading: the best that reads better than the present one and takes such work.

    Of equals the one that the profile names first. Where no lane is better, it is the present one again: the model is
    told what was wrong, which a second reading on the same lane can use too.
    """
    own = lanes.get(present) or default_lane(lanes)
    known = [lanes[name] for name in dict.fromkeys([*profile.lanes, *lanes]) if name in lanes]
    ranked = [lane for lane in known if may_read(lane, tokens, profile)]
    better = [lane for lane in ranked if lane.quality > own.quality and heat in lane.heats and length in lane.lengths]
    return max(better, key=lambda lane: lane.quality, default=own)


def queue_name(heat: Heat, length: LengthClass, lane: Lane, lanes: Mapping[str, Lane]) -> str:
    name = f"infer.{heat}.{length}"
    return name if lane.name == default_lane(lanes).name else f"{name}@{lane.name}"


def queues_of(lane: Lane, lanes: Mapping[str, Lane]) -> tuple[str, ...]:
    """The queues that a lane drains, in the order in which its worker must list them."""
    return tuple(
        queue_name(heat, length, lane, lanes)
        for heat in Heat
        for length in LengthClass
        if heat in lane.heats and length in lane.lengths
    )
