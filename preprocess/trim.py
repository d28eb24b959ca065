"""Grids that are no tables by themselves: frames with a caption or notes in them, charts, parts of one stack."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import BBox
from preprocess.cells import Filled, SlotFinder
from preprocess.glyphs import Line
from preprocess.grids import SAME_EDGE, Grid, Slot
from preprocess.join import cell_printed, rows_of
from preprocess.words import words_of

#: Words that a grid's edges cut in two: this share of them, and this many, make it the grid of a chart.
_CUT_SHARE: Final = 0.1
_CUT_WORDS: Final = 2
#: So many drawn lines that are neither level nor upright nor a cell's frame make it a chart.
_CURVES: Final = 3
#: Points between two tables of one stack, and between their columns' edges.
_STACK_GAP: Final = 3.0

_CAPTION: Final = re.compile(
    r"^(table|exhibit|figure|chart|box|annex|schedule|tableau|tabelle|表|图|附表|续表)\s*[\dA-Z一二三四五六七八九十]",
    re.IGNORECASE,
)
#: How a note under a table starts.
NOTE: Final = re.compile(
    r"^\W{0,2}(sources?|notes?|注释?|附注|备注|说明|资料来源|数据来源|来源)\s*\d?\s*[:：.、]", re.IGNORECASE
)


def is_chart(grid: Grid, lines: Sequence[Line], curves: Sequence[BBox]) -> bool:
    """Whether a ruled grid is that of a chart: its edges cut words, or lines are drawn across its cells."""
    beside = [box for box in curves if _is_level_with(box, grid.bbox)]
    inside = [box for box in beside if grid.bbox.x0 < box.x0 and box.x1 < grid.bbox.x1]
    xs = sorted({round(edge) for slot in grid.slots for edge in (slot.bbox.x0, slot.bbox.x1)})
    ys = sorted({round(edge) for slot in grid.slots for edge in (slot.bbox.y0, slot.bbox.y1)})
    if sum(1 for box in inside if not _is_frame(box, xs, ys)) >= _CURVES:
        return True
    words = [word for line in lines if line.upright and _is_level_with(line.bbox, grid.bbox) for word in words_of(line)]
    finder = SlotFinder(grid)
    parted = [{finder.find([glyph]) for glyph in word if glyph.char != " "} for word in words]
    owned = [slots for slots in parted if slots and None not in slots]
    cut = sum(1 for slots in owned if len(slots) > 1)
    return cut >= _CUT_WORDS and cut >= _CUT_SHARE * len(owned)


def _is_level_with(box: BBox, other: BBox) -> bool:
    return box.y0 > other.y0 - SAME_EDGE and box.y1 < other.y1 + SAME_EDGE


def _is_frame(box: BBox, xs: Sequence[int], ys: Sequence[int]) -> bool:
    """Whether a drawn box lies on edges of the grid's cells."""
    return all(_near(edge, xs) for edge in (box.x0, box.x1)) and all(_near(edge, ys) for edge in (box.y0, box.y1))


def _near(edge: float, edges: Sequence[int]) -> bool:
    """Whether one of the sorted edges is where this one is, to the point."""
    place = bisect_left(edges, edge)
    return any(abs(edge - other) <= SAME_EDGE + 0.5 for other in edges[max(0, place - 1) : place + 1])


def without_frame(filled: Filled) -> Filled:
    """A caption in the table's first row, and notes in its last ones, back among the lines of the page."""
    while (last := _whole_row(filled, filled.grid.rows - 1)) is not None and NOTE.match(_text(filled, last)):
        filled = _without(filled, last)
    first = _whole_row(filled, 0)
    if first is not None and _CAPTION.match(_text(filled, first)):
        filled = _without(filled, first)
    return filled


def _whole_row(filled: Filled, row: int) -> int | None:
    """The index of the one cell that fills a row from side to side, if there is one."""
    grid = filled.grid
    inside = [index for index, slot in enumerate(grid.slots) if slot.row == row]
    if grid.rows < 3 or len(inside) != 1 or grid.slots[inside[0]].colspan < max(2, grid.cols):
        return None
    return inside[0]


def _text(filled: Filled, index: int) -> str:
    return cell_printed(rows_of(filled.lines.get(index, ()))).text


def _without(filled: Filled, index: int) -> Filled:
    """The grid without a row that one cell fills; the lines in it are left over."""
    grid, gone = filled.grid, filled.grid.slots[index]
    kept = [slot for place, slot in enumerate(grid.slots) if place != index]
    slots = tuple(replace(slot, row=slot.row - 1) if slot.row > gone.row else slot for slot in kept)
    top, bottom = min(slot.bbox.y0 for slot in slots), max(slot.bbox.y1 for slot in slots)
    smaller = replace(grid, slots=slots, rows=grid.rows - 1, bbox=BBox(grid.bbox.x0, top, grid.bbox.x1, bottom))
    if gone.row < grid.header_rows:
        smaller = replace(smaller, header_rows=grid.header_rows - 1)
    rest = [*filled.rest, *filled.lines.get(index, ())]
    lines = {place - (place > index): own for place, own in filled.lines.items() if place != index}
    return Filled(smaller, lines, rest)


def stacked(grids: Sequence[Grid]) -> list[Grid]:
    """Grids that stand on each other with the same columns as one; the model parts a table at each title inside it."""
    joined: list[Grid] = []
    for grid in sorted(grids, key=lambda one: (one.bbox.y0, one.bbox.x0)):
        above = next((place for place, other in enumerate(joined) if _stands_under(grid, other)), None)
        if above is None:
            joined.append(grid)
        else:
            joined[above] = _stack(joined[above], grid)
    return joined


def _stands_under(grid: Grid, above: Grid) -> bool:
    if grid.cols != above.cols or abs(grid.bbox.y0 - above.bbox.y1) > _STACK_GAP:
        return False
    one, other = _starts(above), _starts(grid)
    return all(abs(one[col] - other[col]) <= _STACK_GAP for col in one if col in other)


def _starts(grid: Grid) -> dict[int, float]:
    return {slot.col: slot.bbox.x0 for slot in grid.slots}


def _stack(above: Grid, below: Grid) -> Grid:
    moved = [Slot(slot.row + above.rows, slot.col, slot.rowspan, slot.colspan, slot.bbox) for slot in below.slots]
    return replace(above, slots=(*above.slots, *moved), rows=above.rows + below.rows, bbox=above.bbox.union(below.bbox))
