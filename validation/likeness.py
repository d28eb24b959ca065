"""Whether a number of a result is a printed number said another way: in other style or unit, with its table's scale.

A cell that prints 12,345.60 under 单位：万元 is 12,345.60 as printed, 12,345.60万元 and 123,456,000元; it is not
12,345.60元. A printed 4.35% is 4.35% and 0.0435, and 4.35 where the result leaves the sign out.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

from validation.grid import Frame
from validation.numbers import Number, in_table
from validation.places import NumberAt
from validation.text import half

#: Units that print does not tell apart: $ is the dollar of many countries, ¥ is yuan or yen.
_VAGUE_UNITS = frozenset({"$", "¥"})
#: A result that ends so says that it counts in single units of money.
_IN_UNITS = re.compile(r"[0-9]\s?(?:元|圆|yuan|renminbi|dollars|euros|pounds)(?:人民币|整)?$", re.IGNORECASE)


class Like(StrEnum):
    SAME = "same"
    UNIT = "unit"
    SIGN = "sign"
    SCALE = "scale"
    #: The digits as printed, without the 万 or million that is printed with them.
    BARE = "bare"


class Likeness(NamedTuple):
    """`meant` is the printed number with its table's scale and unit."""

    like: Like
    meant: Number


def like(text: str, mine: Number, printed: NumberAt, frame: Frame) -> Likeness:
    """How a value (`text`, read as `mine`) stands to a printed number with the same significant digits."""
    meant = in_table(printed.number, frame.scale, frame.unit)
    values = _values(text, mine, printed.number, meant)
    if mine.value in values:
        return Likeness(Like.SAME if agree(mine, meant) else Like.UNIT, meant)
    if mine.scale is None and mine.unit is None and mine.value * (printed.number.scale or 1) == printed.number.value:
        return Likeness(Like.BARE, meant)
    return Likeness(Like.SIGN if -mine.value in values else Like.SCALE, meant)


def agree(mine: Number, printed: Number) -> bool:
    """A unit that one of the two leaves out is no contradiction, save that a share (%) is never a plain number."""
    if mine.relative != printed.relative:
        return mine.unit is None
    if mine.relative:
        return mine.unit == printed.unit or "倍" not in (mine.unit, printed.unit)
    vague = {mine.unit, printed.unit} & (_VAGUE_UNITS | {None})
    return bool(vague) or mine.unit == printed.unit


def _values(text: str, mine: Number, printed: Number, meant: Number) -> set[object]:
    """The values that a result may give for this number."""
    if meant.relative and mine.unit is None:
        return {meant.value, meant.fraction}
    if meant.relative and mine.relative:
        signs = {meant.fraction: mine.value, -meant.fraction: -mine.value}
        return {signs.get(mine.fraction)}
    scaled = meant.scale not in (None, 1) and printed.unit is None
    if mine.scale is not None or (scaled and _IN_UNITS.search(half(text))):
        return {meant.value}
    return {meant.value, printed.value}
