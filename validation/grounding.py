"""Whether a value that claims to come from the document is in it, and if not, what it was made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from validation.dates import parse_date
from validation.facts import Facts
from validation.fields import Leaf
from validation.index import significand
from validation.likeness import Like, like
from validation.numbers import Number, readings
from validation.places import NumberAt, Place
from validation.ranges import parse_range
from validation.relative import mentions
from validation.text import fold


class Ground(StrEnum):
    """How a value stands to the document."""

    FOUND = "found"
    ABSENT = "absent"
    #: The same digits stand there, times a power of ten.
    SCALE = "scale"
    #: The same digits stand there, with an order of magnitude (万, million) that the value leaves out.
    BARE = "bare"
    #: The same number stands there with the other sign.
    SIGN = "sign"
    #: The same number stands there in another currency or as a percentage.
    UNIT = "unit"
    #: Not a number (or date) at all.
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Grounding:
    """`places` are all where the value stands, likeliest first, or the twin that it may have been made from; `twin` is
    that one's text.

    `meant` is what the number is at each place, in its table's scale and unit; `doubtful` says that the document bears
    out another reading as well.
    """

    leaf: Leaf
    ground: Ground
    places: tuple[Place, ...] = ()
    twin: str = ""
    meant: Mapping[Place, Number] = field(default_factory=dict)
    doubtful: bool = False

    def number_at(self, place: Place | None) -> Number | None:
        """The number as it is meant at a place, by default at the likeliest."""
        own = self.meant.get(place) if place else None
        return own or next(iter(self.meant.values()), None)


def ground(leaf: Leaf, facts: Facts) -> Grounding:
    """The standing of a grounded leaf."""
    match leaf.source:
        case "number":
            return _ground_number(leaf, facts)
        case "date":
            return _ground_date(leaf, facts)
        case _:
            places = facts.find(leaf.text)
            return Grounding(leaf, Ground.FOUND if places else Ground.ABSENT, places)


# ---------------------------------------------------------------- numbers


def _ground_number(leaf: Leaf, facts: Facts) -> Grounding:
    possible = _possible(leaf, facts)
    if not possible:
        return _ground_range(leaf, facts)
    candidates = facts.index.like(possible[0].value)
    likely, *aside = [(number, _same(leaf, number, candidates, facts)) for number in possible]
    found = _settle(leaf, likely, aside[0] if aside else None)
    if found is None and aside and not likely[1] and aside[0][0].value > 0 and leaf.text.strip()[:1] not in "(（":
        found = _settle(leaf, aside[0], None)
    return found or _explain(leaf, likely[0], candidates, facts)


def _possible(leaf: Leaf, facts: Facts) -> list[Number]:
    """What the value may mean; where the document parts decimals with a comma, as read there first."""
    if not facts.index.comma:
        return [*readings(leaf.text)]
    return [*dict.fromkeys((*readings(leaf.text, comma=True), *readings(leaf.text)))]


_Borne = tuple[Number, list[tuple[Number, NumberAt]]]


def _same(leaf: Leaf, number: Number, candidates: Iterable[NumberAt], facts: Facts) -> list[tuple[Number, NumberAt]]:
    """The printed numbers that are this one, each as it is meant at its place."""
    judged = ((like(leaf.text, number, found, facts.frame(found.place)), found) for found in candidates)
    return [(verdict.meant, found) for verdict, found in judged if verdict.like == Like.SAME]


def _settle(leaf: Leaf, likely: _Borne, aside: _Borne | None) -> Grounding | None:
    """Brackets that are printed in running text are an aside if the document states the bare number elsewhere."""
    _, here = likely
    if not here:
        return None
    sure = aside is None or any(found.sure for _, found in here)
    outside = [one for one in aside[1] if one[1].sure] if aside and not sure else []
    borne = outside or here
    meant = {found.place: number for number, found in (*here, *borne)}
    # The same value may stand in words beside the figures: the places that read like the result come first.
    wanted = fold(leaf.text)
    places = sorted(meant, key=lambda place: wanted not in fold(place.text))
    ordered = {place: meant[place] for place in places}
    return Grounding(leaf, Ground.FOUND, tuple(places), meant=ordered, doubtful=not sure and not outside)


def _explain(leaf: Leaf, number: Number, candidates: Sequence[NumberAt], facts: Facts) -> Grounding:
    """The nearest thing that the document prints: other unit, other sign, other power of ten, one slip."""
    kinds = {
        Like.BARE: Ground.BARE,
        Like.UNIT: Ground.UNIT,
        Like.SIGN: Ground.SIGN,
        Like.SCALE: Ground.SCALE,
    }
    judged = [(like(leaf.text, number, found, facts.frame(found.place)), found) for found in candidates]
    for kind, standing in kinds.items():
        meant, twin = next(((one.meant, found) for one, found in judged if one.like == kind), (None, None))
        if twin is not None and meant is not None and (number.value or kind == Like.UNIT):
            known = {twin.place: meant} if kind == Like.BARE else {}
            return Grounding(leaf, standing, (twin.place,), twin.place.text, known)
    wanted = significand(number.value)
    slip = next((digits for digits in facts.index.digits if _one_slip(digits, wanted)), None)
    near = _with_digits(slip, facts) if slip else None
    return Grounding(leaf, Ground.ABSENT, (near.place,), near.place.text) if near else Grounding(leaf, Ground.ABSENT)


def _with_digits(digits: str, facts: Facts) -> NumberAt | None:
    number = next(iter(readings(digits)), None)
    found = facts.index.like(number.value) if number else ()
    return found[0] if found else None


def _ground_range(leaf: Leaf, facts: Facts) -> Grounding:
    """Both ends of a range are printed; where its pieces hold no number it is none."""
    ends = parse_range(leaf.text)
    if ends is None:
        return Grounding(leaf, Ground.UNREADABLE)
    whole = facts.find(leaf.text)
    borne = [_end(leaf, end, facts) for end in ends]
    if whole or all(borne):
        return Grounding(leaf, Ground.FOUND, whole or tuple(found.place for _, found in borne[0]))
    return Grounding(leaf, Ground.ABSENT)


def _end(leaf: Leaf, end: Number, facts: Facts) -> list[tuple[Number, NumberAt]]:
    """The end of a range as printed: in 3至5亿元 the scale stands at the second only."""
    candidates = facts.index.like(end.value)
    bare = Number(end.value / (end.scale or 1))
    return _same(leaf, end, candidates, facts) or _same(leaf, bare, candidates, facts)


def _one_slip(printed: str, mine: str) -> bool:
    """One digit changed, or two neighbours swapped."""
    if len(printed) != len(mine) or len(mine) < 3:
        return False
    apart = [index for index, (left, right) in enumerate(zip(printed, mine, strict=True)) if left != right]
    if len(apart) == 2 and apart[1] == apart[0] + 1:
        first, second = apart
        return printed[first] == mine[second] and printed[second] == mine[first]
    return len(apart) == 1


# ---------------------------------------------------------------- dates


def _ground_date(leaf: Leaf, facts: Facts) -> Grounding:
    places = facts.find(leaf.text)
    if places:
        return Grounding(leaf, Ground.FOUND, places)
    dated = parse_date(leaf.text)
    if dated is None:
        return Grounding(leaf, Ground.UNREADABLE)
    found = facts.day(dated.days(facts.day_first) if dated.ambiguous else dated.readings)
    if found is not None:
        return Grounding(leaf, Ground.FOUND, (found,))
    wanted = dated.period
    period = next((one for one in facts.periods if one.dated.period == wanted), None) if wanted else None
    place = period.place if period else next(iter(mentions(dated, facts)), None)
    return Grounding(leaf, Ground.FOUND, (place,)) if place else Grounding(leaf, Ground.ABSENT)
