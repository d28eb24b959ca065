"""Money around a reading: the cap before it, the reservation, and the bill, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from docmill.errors import ModelError, StaleAttempt
from docmill.types import LengthClass, Part, Route
from inference.cost import estimate
from inference.cost_control import Cap, Work, insist_on_lane, passed_over, room
from inference.lanes import Lane
from inference.meter import Bill
from inference.profile import Profile
from storage.ports import Claim, Waste
from workers.decoding import HandedBack
from workers.settings import Settings

if TYPE_CHECKING:
    from workers.services import Services


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a document is read: the lane, the tokens of it that a prompt may hold, and beside it.

    `note` says what was done for the cap; None: nothing had to be.
    """

    lane: Lane
    room: int
    beside: int
    output_tokens: int
    note: Mapping[str, Any] | None = None


def cap_of(tenant: str, profile: str, settings: Settings) -> Cap:
    """What one call for this tenant and profile may cost: the lowest of their own caps, else that for all."""
    own = [settings.call_caps_usd[name] for name in (tenant, profile) if name in settings.call_caps_usd]
    targets = {LengthClass(name): usd for name, usd in settings.call_targets_usd.items()}
    return Cap(min(own, default=settings.call_cap_usd), targets)


def agree(tenant: str, chosen: Route, tokens: int, beside: int, profile: Profile, use: Services) -> Terms:
    """The terms for a document of so many tokens. Raises OverCostCap and NoFittingLane."""
    lane, cap = use.lane(chosen.lane), cap_of(tenant, profile.name, use.settings)
    insist_on_lane(lane, tokens, profile)
    free = lane.context_tokens - profile.max_output_tokens - beside
    allowed = room(free, beside, tokens, profile, lane, cap)
    note: dict[str, Any] | None = None
    if allowed < min(free, tokens):
        note = {"action": "shorter_parts", "tokens": allowed, "instead_of": free}
    elif dear := passed_over(lane, _work(chosen, tokens, profile), profile, use.lanes, cap):
        note = {"action": "cheaper_lane", "instead_of": dear}
    if note is not None:
        note |= {"cap_usd": f"{cap.usd:f}", "lane": lane.name}
    return Terms(lane, allowed, beside, profile.max_output_tokens, note)


@contextmanager
def charged(claim: Claim, parts: Sequence[Part], terms: Terms, use: Services) -> Iterator[Bill]:
    """Around a reading and what saves it: reserves before, books what was used if the block fails.

    A block that succeeds has handed the bill's usage to the store. Without parts the engine is not used.
    """
    prompts = [part.tokens + terms.beside for part in parts]
    prices = terms.lane.prices
    if parts:
        calls = (estimate(tokens, terms.output_tokens, prices) for tokens in prompts)
        use.store.reserve(claim, sum(calls, Decimal(0)), note=terms.note)
    bill = Bill(use.meter, prices, terms.lane.gpus, sum(prompts) // max(1, len(prompts)))
    try:
        yield bill
    except BaseException as error:
        if bill.is_used:
            use.store.settle(claim, bill.usage(), waste=waste_of(error))
        raise


def waste_of(error: BaseException) -> Waste:
    """For what the money is gone. A store that knows better (that the attempt was cancelled) says so."""
    match error:
        case ModelError():
            return Waste.UNUSABLE
        case StaleAttempt() | HandedBack():
            return Waste.LOST
        case _:
            return Waste.FAILED


def _work(chosen: Route, tokens: int, profile: Profile) -> Work:
    return Work(tokens, profile.max_output_tokens, chosen.heat, chosen.length_class)
