"""Every number of a result is printed in the document: with its digits, its sign, its scale and its unit."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from validation.case import Case, Hit, hit_at
from validation.dates import scan_dates
from validation.facts import Facts
from validation.fields import Leaf
from validation.grounding import Ground
from validation.index import significand
from validation.numbers import Number, in_table, scan_numbers
from validation.statutes import statutes_in
from validation.text import half

_YEAR = re.compile("(?:19|20)[0-9]{2}")


def readable(case: Case) -> Iterator[Hit]:
    """A number field holds a number."""
    return _with(case, Ground.UNREADABLE)


def grounded(case: Case) -> Iterator[Hit]:
    """A number that stands nowhere, in no disguise; the detail is a printed number that is one slip away."""
    return (replace(hit, detail=hit.detail or "–") for hit in _with(case, Ground.ABSENT))


def scale(case: Case) -> Iterator[Hit]:
    """A number that is printed ten, a hundred, ten thousand times larger or smaller."""
    return _with(case, Ground.SCALE)


def bare(case: Case) -> Iterator[Hit]:
    """A number whose order of magnitude is printed with it, and left out of the value: 528 for 528万元."""
    return _with(case, Ground.BARE)


def sign(case: Case) -> Iterator[Hit]:
    """A number that is printed with the other sign."""
    return _with(case, Ground.SIGN)


def unit(case: Case) -> Iterator[Hit]:
    """A number that is printed in another currency, or as a percentage."""
    return _with(case, Ground.UNIT)


def bracketed(case: Case) -> Iterator[Hit]:
    """A number in brackets in running text: a negative, or an aside? Nothing else in the document tells."""
    return (
        hit_at(grounding, str((number := grounding.number_at(None)) and number.value))
        for grounding in case.grounded
        if grounding.doubtful
    )


def prose(case: Case, *, digits: int = 3) -> Iterator[Hit]:
    """A number in the model's own sentences that is not in the document; few digits may be counting (12 accounts)."""
    for leaf in case.prose:
        yield from _prose_of(leaf, case.facts, digits)


def _with(case: Case, how: Ground) -> Iterator[Hit]:
    return (hit_at(grounding) for grounding in case.standing("number") if grounding.ground == how)


def _prose_of(leaf: Leaf, facts: Facts, digits: int) -> Iterator[Hit]:
    days = list(scan_dates(leaf.text))
    statutes = [citation.span() for citation in statutes_in(half(leaf.text))]
    for dated in days:
        if dated.readings and not any(day in facts.days for day in dated.readings):
            yield Hit(path=leaf.path, text=dated.text)
    for found in scan_numbers(leaf.text):
        # The parts of dates and of statute citations have checks of their own.
        spans = [*statutes, *((dated.start, dated.stop) for dated in days)]
        elsewhere = any(start <= found.start and found.stop <= stop for start, stop in spans)
        readings = [reading for reading in (found.number, found.other) if reading]
        if not elsewhere and _telling(found.number, digits) and not any(_printed(n, facts) for n in readings):
            yield Hit(path=leaf.path, text=leaf.text[found.start : found.stop])


def _telling(number: Number, digits: int) -> bool:
    return number.relative or len(significand(number.value)) >= digits or number.scale is not None


def _printed(number: Number, facts: Facts) -> bool:
    """In prose a loss of -5.2 may be called a loss of 5.2, and a table's scale may be put into words."""
    if _YEAR.fullmatch(f"{number.value:f}") and f"{number.value:f}" in facts.plain:
        return True  # in a date
    wanted = {abs(number.value), abs(number.value) / (number.scale or Decimal(1)), abs(number.fraction)}
    for found in facts.index.like(number.value):
        frame = facts.frame(found.place)
        meant = in_table(found.number, frame.scale, frame.unit)
        if wanted & {abs(found.number.value), abs(meant.value), abs(meant.fraction)}:
            return True
    return False
