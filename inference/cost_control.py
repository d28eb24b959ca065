"""What may be spent on a call, decided before it is made: a cheaper lane, a shorter prompt, or a refusal with a reason.

A call is one request to an engine: one part of a document. What it will cost is estimated from its tokens (`cost.
estimate`). `cost_control` picks the lane by the document's length, how urgent it is, what kind it is (its profile's
order of lanes) and the price; `room` says how long a prompt may be. Pure: nothing is read, nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from docmill.errors import NoFittingLane, OverCostCap
from docmill.types import Heat, LengthClass
from inference.cost import affordable_prompt, estimate
from inference.lanes import Lane
from inference.profile import Profile

#: Quantised weights are not trusted with the digits of a longer document, unless its profile says so.
QUANTIZED_UP_TO: Final = 3072
#: A prompt of fewer tokens than this says too little to be worth its instructions.
SHORTEST_PART: Final = 256


@dataclass(frozen=True, slots=True)
class Cap:
    """Dollars that one call may cost, and what one of each length class should cost."""

    usd: Decimal = Decimal("0.003")
    targets: Mapping[LengthClass, Decimal] = field(
        default_factory=lambda: MappingProxyType(
            {
                LengthClass.SHORT: Decimal("0.0015"),
                LengthClass.MEDIUM: Decimal("0.0022"),
                LengthClass.LONG: Decimal("0.0028"),
            }
        )
    )

    def __post_init__(self) -> None:
        if self.usd <= 0 or min(self.targets.values(), default=self.usd) <= 0:
            raise ValueError(f"a call may cost {self.usd} dollars: give a cap and targets above zero")

    def target(self, length: LengthClass) -> Decimal:
        """Never above the cap."""
        return min(self.usd, self.targets.get(length, self.usd))


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be read: `tokens` of the document, `output_tokens` that the answer may take."""

    tokens: int
    output_tokens: int
    heat: Heat
    length: LengthClass


def cost_control(work: Work, lanes: Sequence[Lane], cap: Cap) -> Lane | None:
    """Of lanes in order of preference the first whose call is within what the work should cost, else the cheapest.

    None if there is no lane.
    """
    limit = limit_of(work, cap)
    within = (lane for lane in lanes if call_estimate(work, lane) <= limit)
    return next(within, None) or min(lanes, key=lambda lane: call_estimate(work, lane), default=None)


def passed_over(lane: Lane, work: Work, profile: Profile, lanes: Mapping[str, Lane], cap: Cap) -> str | None:
    """The lane that the profile would rather have, if this one was taken because a call there costs too much."""
    before = profile.lanes[: profile.lanes.index(lane.name)] if lane.name in profile.lanes else profile.lanes
    limit = limit_of(work, cap)
    wanted = (lanes[name] for name in before if name in lanes and may_read(lanes[name], work.tokens, profile))
    cheaper = call_estimate(work, lane)
    return next((one.name for one in wanted if call_estimate(work, one) > max(limit, cheaper)), None)


def limit_of(work: Work, cap: Cap) -> Decimal:
    """What somebody waits for may cost up to the cap before a weaker lane is taken for it."""
    return cap.usd if work.heat is Heat.HOT else cap.target(work.length)


def call_estimate(work: Work, lane: Lane) -> Decimal:
    """The longest call that the work makes on this lane."""
    return estimate(min(work.tokens, lane.context_tokens), work.output_tokens, lane.prices)


def may_read(lane: Lane, tokens: int, profile: Profile) -> bool:
    """No quantised lane above 3,072 tokens unless the profile allows it."""
    return tokens <= QUANTIZED_UP_TO or profile.quantized_long or not lane.quantized


def insist_on_lane(lane: Lane, tokens: int, profile: Profile) -> None:
    """Raise NoFittingLane if the lane may not read a document of this length."""
    if not may_read(lane, tokens, profile):
        raise NoFittingLane(
            f"{tokens} tokens are over the {QUANTIZED_UP_TO} that lane {lane.name} ({lane.precision}) may read for"
            f" {profile.name}, and no lane of full precision takes them: add one, or set quantized_long in the profile"
        )


def room(free: int, beside: int, tokens: int, profile: Profile, lane: Lane, cap: Cap) -> int:
    """Tokens of the document that a prompt may hold: what is `free` in the lane's context, less if that is too dear.

    `beside` are the prompt's other tokens, `tokens` the document's. Raises OverCostCap if hardly any would be left.
    """
    longest = affordable_prompt(cap.usd, profile.max_output_tokens, lane.prices)
    if longest is None:
        return free
    affordable = longest - beside
    if affordable < min(SHORTEST_PART, tokens, free):
        prompt = beside + min(tokens, free)
        dear = estimate(prompt, profile.max_output_tokens, lane.prices)
        raise OverCostCap(
            f"a call of {prompt} tokens on lane {lane.name} may cost {dear:f} dollars, over the cap of {cap.usd:f}, and"
            f" one below it would hold fewer than {SHORTEST_PART} tokens of the document: raise the cap, use a cheaper"
            " lane, or lower the profile's max_output_tokens"
        )
    return min(free, affordable)
