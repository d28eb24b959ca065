"""Columns without a table: figures typed under the years of a line above them.

A parser that finds no rules leaves such a list as lines of text; what heads a figure is told by where it stands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial

from docmill.types import BBox
from validation.columns import Heading, heading_of
from validation.facts import Facts
from validation.places import Place

_HEAD = re.compile(r"(?:FY ?)?(?<![0-9.,])(?:19|20)[0-9]{2}(?![0-9.,])(?:\s?年度?)?", re.IGNORECASE)
#: Lines of points below its head in which a figure is still taken to be of its column.
_DEEPEST = 500.0
#: Share of a line's height by which two words of a line may be apart.
_LEVEL = 0.5


@dataclass(frozen=True, slots=True)
class Head:
    text: str
    heading: Heading
    box: BBox


def heads_above(place: Place, facts: Facts) -> tuple[Head, list[Head]] | None:
    """The year that a figure in text stands under, and all years of that line; None where there is no such line."""
    box = place.bbox
    if box is None or place.piece.table_id is not None:
        return None
    heads = facts.once(("heads", place.page), partial(_heads, place.page, facts))
    above = [head for head in heads if 0 < box.y0 - head.box.y0 < _DEEPEST]
    lines = [[head for head in above if _level(head.box, one.box)] for one in sorted(above, key=lambda h: -h.box.y0)]
    line = next((line for line in lines if len(line) > 1), None)
    if line is None:
        return None
    nearest = min(line, key=lambda head: _aside(head.box, box))
    others = [head for head in line if head is not nearest]
    clear = all(_aside(head.box, box) > 2 * _aside(nearest.box, box) + 1 for head in others)
    return (nearest, line) if clear else None


def _heads(page: int, facts: Facts) -> list[Head]:
    found = []
    for number in facts.on_page(page):
        in_text = facts.pieces.standing[number][2] is None
        for match in _HEAD.finditer(facts.index.plain_of(number)) if in_text else ():
            heading, box = heading_of(match.group()), facts.index.place(number, *match.span()).bbox
            if heading and box:
                found.append(Head(match.group(), heading, box))
    return found


def _level(one: BBox, other: BBox) -> bool:
    return abs(one.y0 - other.y0) < (one.y1 - one.y0) * _LEVEL


def _aside(head: BBox, box: BBox) -> float:
    """How far apart two boxes are across, by the nearest of their left, right and middle edges."""
    middles = (head.x0 + head.x1) / 2 - (box.x0 + box.x1) / 2
    return min(abs(head.x0 - box.x0), abs(head.x1 - box.x1), abs(middles))
