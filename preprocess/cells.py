"""What the cells of a grid say: characters go to the cell that holds their middle, each exactly once."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from docmill.types import BBox, Cell, Printed, Region, Table
from preprocess.glyphs import Line
from preprocess.grids import Grid, Slot
from preprocess.join import cell_printed, row_printed, rows_of
from preprocess.packed import Glyph
from preprocess.words import words_of

#: Points around a grid within which a character still belongs to its outer cells.
MARGIN: Final = 1.0

_VALUE: Final = re.compile(r"^[-–—+(（$¥€£]*\s*[$¥€£]?\d[\d,.\s]*[)）%]?$|^[-–—*]{1,3}$")
_YEAR: Final = re.compile(r"^(19|20)\d\d(年(度|末)?)?$")
_MOST_HEADER_ROWS: Final = 4
#: Figures under each other in one cell: the rules part the columns only.
_CRAMMED: Final = 3


@dataclass(slots=True)
class Filled:
    """A grid with the lines that fell into each slot, and the lines that fell into none."""

    grid: Grid
    lines: dict[int, list[Line]] = field(default_factory=lambda: defaultdict(list))
    rest: list[Line] = field(default_factory=list)


def fill(grid: Grid, lines: Sequence[Line]) -> Filled:
    """Share the lines of a page out among the slots of a grid."""
    filled, finder = Filled(grid), SlotFinder(grid)
    for line in lines:
        if not _touches(line.bbox, grid.bbox):
            filled.rest.append(line)
            continue
        for slot, glyphs in _runs(line, grid, finder):
            part = line.part(glyphs)
            (filled.rest if slot is None else filled.lines[slot]).append(part)
    return filled


def _touches(box: BBox, other: BBox) -> bool:
    beside = box.x1 < other.x0 - MARGIN or box.x0 > other.x1 + MARGIN
    return not beside and box.y1 >= other.y0 - MARGIN and box.y0 <= other.y1 + MARGIN


def _runs(line: Line, grid: Grid, finder: SlotFinder) -> Iterator[tuple[int | None, list[Glyph]]]:
    """The line's words (or characters) by the slot that holds them, neighbours in one slot together."""
    run: list[Glyph] = []
    owner: int | None = None
    for unit in words_of(line) if grid.whole_words else ([glyph] for glyph in line.glyphs):
        slot = finder.find(unit) if unit[0].char != " " else owner
        if run and slot != owner:
            if any(glyph.char != " " for glyph in run):
                yield owner, run
            run = []
        owner = slot
        run.extend(unit)
    if any(glyph.char != " " for glyph in run):
        yield owner, run


class SlotFinder:
    """Which slot of a grid holds a point. Slots are looked up by row bands, as a table may have thousands."""

    _BAND = 8.0

    def __init__(self, grid: Grid) -> None:
        self._bands: dict[int, list[tuple[int, Slot]]] = defaultdict(list)
        for index, slot in enumerate(grid.slots):
            for band in range(self._band(slot.bbox.y0 - MARGIN), self._band(slot.bbox.y1 + MARGIN) + 1):
                self._bands[band].append((index, slot))

    def _band(self, y: float) -> int:
        return int(y // self._BAND)

    def find(self, glyphs: Sequence[Glyph]) -> int | None:
        """The slot around the middle of the glyphs, or the nearest within the margin."""
        x = (glyphs[0].x0 + glyphs[-1].x1) / 2
        y = (glyphs[0].y0 + glyphs[0].y1) / 2
        near: int | None = None
        for index, slot in self._bands.get(self._band(y), ()):
            box = slot.bbox
            if box.x0 <= x < box.x1 and box.y0 <= y < box.y1:
                return index
            if box.x0 - MARGIN <= x < box.x1 + MARGIN and box.y0 - MARGIN <= y < box.y1 + MARGIN:
                near = index
        return near


# ---------------------------------------------------------------- a table of what was shared out


def table_of(filled: Filled, page: int, table_id: str) -> Table | None:
    """The table without its empty rows and columns; None if fewer than two of either are left."""
    grid = filled.grid
    printed = {index: cell_printed(rows_of(lines)) for index, lines in filled.lines.items()}
    rows = sorted({grid.slots[index].row for index in printed})
    cols = sorted({grid.slots[index].col for index in printed})
    if len(rows) < 2 or len(cols) < 2:
        return None
    cells = []
    for index, slot in enumerate(grid.slots):
        row, rowspan = _kept(rows, slot.row, slot.rowspan)
        col, colspan = _kept(cols, slot.col, slot.colspan)
        if rowspan and colspan:
            text = printed.get(index, Printed(""))
            cells.append(Cell(row, col, text, page, slot.bbox, rowspan=rowspan, colspan=colspan))
    header = bisect_left(rows, grid.header_rows) if grid.header_rows else _header_rows(cells, filled, len(rows))
    cells.sort(key=lambda cell: (cell.row, cell.col))
    marked = tuple(replace(cell, header=True) if cell.row < header else cell for cell in cells)
    return Table(table_id, marked, len(rows), len(cols), (Region(page, grid.bbox),), grid.reader, header)


def _kept(kept: Sequence[int], start: int, span: int) -> tuple[int, int]:
    """Where a span of rows (or columns) lies, and how long it is, when only some of them are kept."""
    first = bisect_left(kept, start)
    return first, bisect_left(kept, start + span) - first


def _header_rows(cells: Sequence[Cell], filled: Filled, rows: int) -> int:
    """Leading rows without a value, above rows with values; else a first row in bold above rows that are not."""
    values = {cell.row for cell in cells if is_value(cell.text)}
    first = min(values, default=0)
    if 0 < first <= _MOST_HEADER_ROWS:
        return first
    if values:
        return 0
    bold = {filled.grid.slots[index].row: all(line.bold for line in lines) for index, lines in filled.lines.items()}
    styles = [style for _, style in sorted(bold.items())]
    return 1 if rows > 1 and styles[:1] == [True] and not all(styles) else 0


def is_value(text: str) -> bool:
    """Whether a cell holds a figure; a year on its own heads a column."""
    return bool(_VALUE.match(text)) and not _YEAR.match(text)


# ---------------------------------------------------------------- is the grid a good one?


def is_sound(filled: Filled) -> bool:
    """Whether a ruled grid parts its figures: no cell with several rows of figures, or with figures side by side."""
    return not any(_is_crammed(lines) for lines in filled.lines.values())


def _is_crammed(lines: Sequence[Line]) -> bool:
    rows = rows_of(lines)
    figures = 0
    for row in rows:
        texts = row_printed(row, segment="\t").text.split("\t")
        if sum(1 for text in texts if is_value(text.strip())) > 1:
            return True
        figures += any(is_value(text.strip()) for text in texts)
    return figures >= _CRAMMED
