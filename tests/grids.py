"""Grids and lines for tests of the table readers, written as they would be drawn, without a PDF.

lines = text_lines((60, 100, "Cash"), (200, 100, "1,234"))     each character 5 points wide, 10 points high
grid = lattice((60, 180, 300), (90, 110, 130))                 edges of columns and rows
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from docmill.types import BBox, Table
from preprocess.cells import fill, table_of
from preprocess.glyphs import Line, line_of
from preprocess.grids import Grid, Slot
from preprocess.packed import Glyph, Glyphs

WIDTH = 5.0
SIZE = 10.0


def text_line(x: float, y: float, text: str) -> Line:
    """One line that starts at x, its middle at y; letters are wider than other signs: it is no typewriter's."""
    glyphs, at = [], x
    for char in text:
        wide = 2.0 if char == " " else WIDTH + (0.7 if char.isalpha() else 0.0)
        glyphs.append(Glyph(char, at, y - SIZE / 2, at + wide, y + SIZE / 2, SIZE))
        at += wide
    return line_of(Glyphs.of(glyphs))


def text_lines(*placed: tuple[float, float, str]) -> list[Line]:
    return [text_line(*one) for one in placed]


def centred(left: float, right: float, y: float, text: str) -> Line:
    """One line in the middle between left and right."""
    line = text_line(0.0, y, text)
    return text_line((left + right - line.bbox.x1) / 2, y, text)


def flush_right(right: float, y: float, text: str) -> Line:
    """One line that ends at `right`."""
    return text_line(right - text_line(0.0, y, text).bbox.x1, y, text)


def lattice(xs: Sequence[float], ys: Sequence[float], *, header_rows: int = 0) -> Grid:
    """A layout model's grid with a cell between each pair of edges."""
    slots = [
        Slot(row, col, 1, 1, BBox(left, top, right, bottom))
        for row, (top, bottom) in enumerate(pairwise(ys))
        for col, (left, right) in enumerate(pairwise(xs))
    ]
    box = BBox(xs[0], ys[0], xs[-1], ys[-1])
    return Grid(tuple(slots), len(ys) - 1, len(xs) - 1, box, "layout", header_rows, whole_words=True)


def filled(grid: Grid, lines: Sequence[Line]) -> Table:
    """The table that the lines make in the grid."""
    table = table_of(fill(grid, lines), 1, "t1")
    assert table is not None
    return table


def texts(table: Table) -> list[list[str]]:
    """The cells' texts by row; what a spanning cell covers beside its own place is `<`."""
    grid = [[""] * table.cols for _ in range(table.rows)]
    for cell in table.cells:
        for row, col in _covered(cell.row, cell.col, cell.rowspan, cell.colspan):
            grid[row][col] = cell.text if (row, col) == (cell.row, cell.col) else "<"
    return grid


def _covered(row: int, col: int, rowspan: int, colspan: int) -> Iterable[tuple[int, int]]:
    return ((row + down, col + right) for down in range(rowspan) for right in range(colspan))
