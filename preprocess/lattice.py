"""A grid as columns and rows: the edges that its cells share, so that both can be split, merged and left out."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Final

from docmill.types import BBox
from preprocess.grids import Grid, Slot
from preprocess.words import Word

#: Points by which the cells of one column (or row) may start apart.
_SAME_EDGE: Final = 3.0

Place = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Lattice:
    """`xs` and `ys` are the edges of columns and rows; `spans` has (rowspan, colspan) of cells larger than one."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    header_rows: int = 0
    spans: Mapping[Place, Place] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return len(self.ys) - 1

    @property
    def cols(self) -> int:
        return len(self.xs) - 1

    @property
    def bbox(self) -> BBox:
        return BBox(self.xs[0], self.ys[0], self.xs[-1], self.ys[-1])

    def row_at(self, y: float) -> int:
        """The row that holds y; what is above or below belongs to the first or last."""
        return min(max(bisect_right(self.ys, y) - 1, 0), self.rows - 1)

    def col_at(self, x: float) -> int:
        """The column that holds x."""
        return min(max(bisect_right(self.xs, x) - 1, 0), self.cols - 1)

    def cells(self, words: Iterable[Word]) -> dict[Place, list[Word]]:
        """The words by row and column, in their order from left to right."""
        out: dict[Place, list[Word]] = defaultdict(list)
        for word in sorted(words, key=lambda one: one.x0):
            out[self.row_at(word.y), self.col_at(word.x)].append(word)
        return out


def lattice_of(grid: Grid) -> Lattice | None:
    """The lattice that a grid's cells lie on; None if their edges do not agree."""
    xs = _edges([(slot.col, slot.bbox.x0) for slot in grid.slots], grid.cols, grid.bbox.x1)
    ys = _edges([(slot.row, slot.bbox.y0) for slot in grid.slots], grid.rows, grid.bbox.y1)
    if xs is None or ys is None:
        return None
    spans = {(s.row, s.col): (s.rowspan, s.colspan) for s in grid.slots if s.rowspan > 1 or s.colspan > 1}
    return Lattice(xs, ys, grid.header_rows, spans)


def _edges(starts: Iterable[tuple[int, float]], count: int, end: float) -> tuple[float, ...] | None:
    """Where each of `count` columns (or rows) starts, and the last one ends."""
    by_index: dict[int, list[float]] = defaultdict(list)
    for index, edge in starts:
        by_index[index].append(edge)
    if len(by_index) != count:
        return None
    edges = [*(median(by_index[index]) for index in range(count)), end]
    far = any(abs(edge - edges[index]) > _SAME_EDGE for index, found in by_index.items() for edge in found)
    return None if far or any(after <= before for before, after in pairwise(edges)) else tuple(edges)


def split_column(lattice: Lattice, col: int, edges: Sequence[float]) -> Lattice:
    """Column `col` in parts, at new edges inside it; a cell that spans it spans the parts."""
    more = len(edges)
    xs = (*lattice.xs[: col + 1], *edges, *lattice.xs[col + 1 :])
    spans = {}
    for (row, start), (down, right) in lattice.spans.items():
        over = start <= col < start + right
        spans[row, start + more if start > col else start] = (down, right + more if over and right > 1 else right)
    return Lattice(xs, lattice.ys, lattice.header_rows, spans)


def split_row(lattice: Lattice, row: int, edges: Sequence[float]) -> Lattice:
    """Row `row` in parts, at new edges inside it."""
    more = len(edges)
    ys = (*lattice.ys[: row + 1], *edges, *lattice.ys[row + 1 :])
    spans = {}
    for (start, col), (down, right) in lattice.spans.items():
        over = start <= row < start + down
        spans[start + more if start > row else start, col] = (down + more if over else down, right)
    header = lattice.header_rows + (more if row < lattice.header_rows else 0)
    return Lattice(lattice.xs, ys, header, spans)


def merge_rows(lattice: Lattice, row: int) -> Lattice:
    """Row `row` and the one below it as one."""
    ys = (*lattice.ys[: row + 1], *lattice.ys[row + 2 :])
    spans = {}
    for (start, col), (down, right) in lattice.spans.items():
        over = start <= row < start + down - 1
        spans[start - 1 if start > row else start, col] = (down - 1 if over else down, right)
    return Lattice(lattice.xs, ys, lattice.header_rows, {at: span for at, span in spans.items() if span != (1, 1)})


def merge_columns(lattice: Lattice, col: int) -> Lattice:
    """Column `col` and the one to its right as one."""
    xs = (*lattice.xs[: col + 1], *lattice.xs[col + 2 :])
    spans = {}
    for (row, start), (down, right) in lattice.spans.items():
        over = start <= col < start + right - 1
        spans[row, start - 1 if start > col else start] = (down, right - 1 if over else right)
    return Lattice(xs, lattice.ys, lattice.header_rows, {at: span for at, span in spans.items() if span != (1, 1)})


def without_last_row(lattice: Lattice) -> Lattice:
    """The lattice up to its last but one row."""
    last = lattice.rows - 1
    spans = {at: (min(down, last - at[0]), right) for at, (down, right) in lattice.spans.items() if at[0] < last}
    return Lattice(lattice.xs, lattice.ys[:-1], min(lattice.header_rows, last), spans)


def without_first_row(lattice: Lattice) -> Lattice:
    """The lattice from its second row on."""
    spans = {(row - 1, col): span for (row, col), span in lattice.spans.items() if row > 0}
    return Lattice(lattice.xs, lattice.ys[1:], max(0, lattice.header_rows - 1), spans)


def slots_of(lattice: Lattice, first_row: int, wide: Mapping[int, float]) -> list[Slot]:
    """The cells from `first_row` on. `wide` has rows whose first cell alone runs on to the x given."""
    slots, covered = [], set[Place]()
    for row in range(first_row, lattice.rows):
        for col in range(lattice.cols):
            if (row, col) in covered:
                continue
            down, right = lattice.spans.get((row, col), (1, 1))
            covered |= {(row + i, col + j) for i in range(down) for j in range(right)}
            box = BBox(lattice.xs[col], lattice.ys[row], lattice.xs[col + right], lattice.ys[row + down])
            end = wide.get(row, 0.0)
            if col == 0 and end:
                box = BBox(box.x0, box.y0, max(box.x1, end), box.y1)
            elif box.x0 < end:
                continue
            slots.append(Slot(row, col, down, right, box))
    return slots
