"""Whether a value that claims to come from the document is in it, and if not, what it was made from."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from validation.dates import parse_date
from validation.facts import Facts, NumberAt, Place, significand
from validation.fields import Leaf
from validation.numbers import Number, readings
from validation.text import fold

#: Units that print does not tell apart: $ is the dollar of many countries, ¥ is yuan or yen.
_VAGUE_UNITS = frozenset({"$", "¥"})


class Ground(StrEnum):
    """How a value stands to the document."""

    FOUND = "found"
    ABSENT = "absent"
    #: The same digits stand there, times a power of ten.
    SCALE = "scale"
    #: The same number stands there with the other sign.
    SIGN = "sign"
    #: The same number stands there in another currency or as a percentage.
    UNIT = "unit"
    #: Not a number (or date) at all.
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Grounding:
    """`places` is where the value stands, or the twin that it may have been made from; `twin` is that one's text.

    `number` is the reading that the document bears out; `doubtful` says that it bears out another as well.
    """

    leaf: Leaf
    ground: Ground
    places: tuple[Place, ...] = ()
    twin: str = ""
    number: Number | None = None
    doubtful: bool = False


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


def _ground_number(leaf: Leaf, facts: Facts) -> Grounding:
    possible = readings(leaf.text)
    if not possible:
        return Grounding(leaf, Ground.UNREADABLE)
    likely, aside = possible[0], possible[1] if len(possible) > 1 else None
    here = _like(likely, facts)
    sure = aside is None or any(found.sure for found in here)
    # Brackets that are printed in running text are an aside if the document states the bare number elsewhere.
    outside = [found for found in _like(aside, facts) if found.sure] if aside and here and not sure else []
    if here:
        number, printed = (aside, outside) if outside else (likely, here)
        place = _reads_alike(leaf, [found.place for found in (*here, *printed)])
        return Grounding(leaf, Ground.FOUND, (place,), number=number, doubtful=not sure and not outside)
    same = facts.numbers.get(likely.value)
    return _twin(leaf, Ground.UNIT, same[0]) if same else _explain(leaf, likely.value, facts)


def _like(number: Number, facts: Facts) -> list[NumberAt]:
    return [found for found in facts.numbers.get(number.value, ()) if agree(number, found.number)]


def _reads_alike(leaf: Leaf, places: list[Place]) -> Place:
    """The same value may stand in words beside the figures: the place that reads like the result comes first."""
    return next((place for place in places if fold(leaf.text) in fold(_printed(place))), places[0])


def _explain(leaf: Leaf, value: Decimal, facts: Facts) -> Grounding:
    if opposite := facts.numbers.get(-value):
        return _twin(leaf, Ground.SIGN, opposite[0])
    if value and (shifted := facts.significands.get(significand(value))):
        return _twin(leaf, Ground.SCALE, shifted[0])
    nearest = next(
        (found for digits, found in facts.significands.items() if _one_slip(digits, significand(value))), None
    )
    return _twin(leaf, Ground.ABSENT, nearest[0]) if nearest else Grounding(leaf, Ground.ABSENT)


def agree(mine: Number, printed: Number) -> bool:
    """A unit that one of the two leaves out is no contradiction, save that a share (%) is never a plain number."""
    if mine.relative != printed.relative:
        return mine.unit is None
    if mine.relative:
        return mine.unit == printed.unit
    vague = {mine.unit, printed.unit} & (_VAGUE_UNITS | {None})
    return bool(vague) or mine.unit == printed.unit


def _ground_date(leaf: Leaf, facts: Facts) -> Grounding:
    places = facts.find(leaf.text)
    if places:
        return Grounding(leaf, Ground.FOUND, places)
    dated = parse_date(leaf.text)
    if dated is None:
        return Grounding(leaf, Ground.UNREADABLE)
    found = next((facts.days[day] for day in dated.readings if day in facts.days), None)
    if found is None:
        return Grounding(leaf, Ground.ABSENT)
    return Grounding(leaf, Ground.FOUND, (found.place,))


def _twin(leaf: Leaf, how: Ground, found: NumberAt) -> Grounding:
    return Grounding(leaf, how, (found.place,), _printed(found.place))


def _printed(place: Place) -> str:
    return place.piece.printed.text[place.start : place.stop]


def _one_slip(printed: str, mine: str) -> bool:
    """One digit changed, or two neighbours swapped."""
    if len(printed) != len(mine) or len(mine) < 3:
        return False
    apart = [index for index, (left, right) in enumerate(zip(printed, mine, strict=True)) if left != right]
    if len(apart) == 2 and apart[1] == apart[0] + 1:
        first, second = apart
        return printed[first] == mine[second] and printed[second] == mine[first]
    return len(apart) == 1
