"""Mends the layout model's grids from the words in them: what it merged, split, or took in by mistake."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import BBox
from preprocess.columns import join_header_columns, split_columns
from preprocess.glyphs import Line
from preprocess.grids import Grid
from preprocess.header import header_slots
from preprocess.lattice import Lattice, lattice_of, slots_of, without_first_row, without_last_row
from preprocess.rows import count_header_rows, merge_wrapped, split_rows
from preprocess.trim import NOTE
from preprocess.units import unit_of
from preprocess.words import Word, baselines, chunks, words_in

#: A line that runs over this share of the table and over two column edges is a note.
_NOTE_SHARE: Final = 0.5
_BRACKETED: Final = re.compile(r"^[\[(（【].*[\])）】]$")


def mend(grid: Grid, lines: Sequence[Line], rules: Sequence[BBox]) -> Grid:
    """The grid as the words in it say it is; the same grid where its cells do not lie on a lattice."""
    lattice = lattice_of(grid)
    words = words_in([line for line in lines if line.upright and not line.rtl], grid.bbox) if lattice else []
    if lattice is None or not words:
        return grid
    lattice = _without_notes(_without_unit_line(lattice, words), words)
    lattice = replace(lattice, header_rows=count_header_rows(lattice, words, rules))
    lattice = split_rows(split_columns(lattice, words), words)
    lattice = join_header_columns(merge_wrapped(lattice, words), words)
    return _with_cells(grid, lattice, words, rules)


def _with_cells(grid: Grid, lattice: Lattice, words: Sequence[Word], rules: Sequence[BBox]) -> Grid:
    """The grid with the cells of a mended lattice: the header's, laid out anew, above the others."""
    header, wide = header_slots(lattice, words, rules), _label_rows(lattice, words)
    levels = max((slot.row + slot.rowspan for slot in header), default=lattice.header_rows)
    moved = levels - lattice.header_rows
    body = slots_of(lattice, lattice.header_rows if header else 0, wide)
    slots = (*header, *(replace(slot, row=slot.row + moved) for slot in body))
    rows = lattice.rows + moved
    return replace(grid, slots=slots, rows=rows, cols=lattice.cols, bbox=lattice.bbox, header_rows=levels)


# ---------------------------------------------------------------- what is no part of the table


def _without_unit_line(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """A first row that only states the unit, or only stands in brackets, is printed above the table."""
    if lattice.rows < 3:
        return lattice
    rows = baselines(word for word in words if lattice.row_at(word.y) == 0)
    parts = chunks(rows[0]) if len(rows) == 1 else []
    if len(parts) == 1 and (_BRACKETED.match(parts[0].text) or unit_of(parts[0].text) is not None):
        return without_first_row(lattice)
    return lattice


def _without_notes(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """The lattice without the notes below it that the model took in."""
    while lattice.rows > 2 and _is_note(lattice, [word for word in words if word.y >= lattice.ys[-2]]):
        lattice = without_last_row(lattice)
        words = [word for word in words if word.y < lattice.ys[-1]]
    return lattice


def _is_note(lattice: Lattice, words: Sequence[Word]) -> bool:
    rows = [chunks(row) for row in baselines(words)]
    if not rows or any(len(row) > 1 for row in rows):
        return False
    if NOTE.match(rows[0][0].text):
        return True
    longest = max((row[0] for row in rows), key=lambda chunk: chunk.x1 - chunk.x0)
    crossed = sum(1 for edge in lattice.xs[1:-1] if longest.x0 < edge < longest.x1)
    return crossed >= 2 and longest.x1 - longest.x0 > _NOTE_SHARE * (lattice.xs[-1] - lattice.xs[0])


def _label_rows(lattice: Lattice, words: Sequence[Word]) -> dict[int, float]:
    """Rows below the header that hold one run of text over column edges: {row: where the text ends}."""
    by_row: dict[int, list[Word]] = defaultdict(list)
    for word in words:
        by_row[lattice.row_at(word.y)].append(word)
    ends = {}
    for row, inside in by_row.items():
        lines = [chunks(line) for line in baselines(inside)]
        starts_first = all(lattice.col_at(line[0].x0) == 0 for line in lines)
        if row >= lattice.header_rows and starts_first and all(len(line) == 1 for line in lines):
            end = max(line[0].x1 for line in lines)
            if end > lattice.xs[1]:
                ends[row] = end
    return ends
