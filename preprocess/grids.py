"""Table grids of a page by several readers: where the cells are. What they say is taken from the characters later.

`ruled` is PyMuPDF's line strategy (fast, for closed grids), `layout` its layout and grid models (borderless tables),
`plumber` pdfplumber's line strategy (pages with /Rotate).
"""

from __future__ import annotations

import importlib
import io
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import pymupdf

from docmill.types import BBox
from preprocess.drawn import Stroke
from preprocess.glyphs import Line, line_of
from preprocess.packed import Glyph
from preprocess.pdf import MUPDF_ERRORS, raise_if_out_of_memory

#: Points. Edges closer than this are one edge.
SAME_EDGE: Final = 2.5


@dataclass(frozen=True, slots=True)
class Slot:
    """A cell of a grid before its text is known."""

    row: int
    col: int
    rowspan: int
    colspan: int
    bbox: BBox


@dataclass(frozen=True, slots=True)
class Grid:
    """The cells of one table on one page. `whole_words`: a word that straddles two cells goes to one of them."""

    slots: tuple[Slot, ...]
    rows: int
    cols: int
    bbox: BBox
    reader: str
    header_rows: int = 0
    whole_words: bool = False


def ruled_grids(page: pymupdf.Page, closing: Sequence[Stroke] = (), paths: Any = None) -> list[Grid]:
    """Closed grids of drawn lines; `closing` adds lines, `paths` are the drawings to look at if not all."""
    found = _find(page, strategy="lines_strict", use_layout=False, add_lines=closing or None, paths=paths)
    return [grid for table in found if (grid := grid_of(map(_box, table.cells), "ruled")) is not None]


def layout_grids(page: pymupdf.Page) -> list[Grid] | None:
    """Tables that the layout model sees, ruled or not; None if the model failed on this page."""
    importlib.import_module("pymupdf.layout")  # switches the models on, if the child has left them for later
    found = _find(page, union=True, refine=True)
    return None if found is None else [_placed(table) for table in found if table.placements]


def _find(page: pymupdf.Page, **options: Any) -> Any:
    try:
        found = page.find_tables(**options)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        found = None
    if found is None:
        return None if "union" in options else []
    return found.tables


def _box(raw: Sequence[float]) -> BBox:
    return BBox(*(float(edge) for edge in raw))


def _placed(table: Any) -> Grid:
    """The model's rows of cells, laid out as HTML lays them out."""
    slots, taken, width = [], set(), 0
    for row, cells in enumerate(table.placements):
        col = 0
        for cell in cells:
            while (row, col) in taken:
                col += 1
            if cell.bbox is not None:
                slots.append(Slot(row, col, cell.rowspan, cell.colspan, _box(cell.bbox)))
            taken |= {(row + down, col + right) for down in range(cell.rowspan) for right in range(cell.colspan)}
            col += cell.colspan
        width = max(width, col)
    rows, whole = len(table.placements), tuple(_whole_spans(slots))
    return Grid(whole, rows, width, _hull(slot.bbox for slot in whole), "layout", table.header_rows, True)


def _whole_spans(slots: Sequence[Slot]) -> Iterator[Slot]:
    """The slots, those whose boxes reach over later columns that the model has left without a cell spanning them."""
    starts: dict[int, list[float]] = defaultdict(list)
    for slot in slots:
        starts[slot.col].append(slot.bbox.x0)
    edges = {col: median(found) for col, found in starts.items()}
    taken = {(slot.row, slot.col) for slot in slots}
    for slot in slots:
        col = slot.col + slot.colspan
        while (slot.row, col) not in taken and edges.get(col, slot.bbox.x1) < slot.bbox.x1 - SAME_EDGE:
            col += 1
        yield replace(slot, colspan=col - slot.col)


def _hull(boxes: Iterable[BBox]) -> BBox:
    first, *rest = boxes
    for box in rest:
        first = first.union(box)
    return first


def grid_of(boxes: Iterable[BBox], reader: str) -> Grid | None:
    """Rows, columns and spans from the cells' edges; None for what is no table (one row or one column)."""
    cells = sorted(set(boxes), key=lambda box: (box.y0, box.x0))
    if len(cells) < 2:
        return None
    xs = _edges(edge for box in cells for edge in (box.x0, box.x1))
    ys = _edges(edge for box in cells for edge in (box.y0, box.y1))
    slots = []
    for box in cells:
        col, row = _nearest(xs, box.x0), _nearest(ys, box.y0)
        colspan, rowspan = _nearest(xs, box.x1) - col, _nearest(ys, box.y1) - row
        if colspan > 0 and rowspan > 0:
            slots.append(Slot(row, col, rowspan, colspan, box))
    if len(xs) < 3 or len(ys) < 3 or not slots:
        return None
    return Grid(tuple(slots), len(ys) - 1, len(xs) - 1, _hull(slot.bbox for slot in slots), reader)


def _edges(values: Iterable[float]) -> list[float]:
    """Edges from left to right, those that are one line to the eye taken together."""
    edges: list[float] = []
    for value in sorted(values):
        if not edges or value - edges[-1] > SAME_EDGE:
            edges.append(value)
    return edges


def _nearest(edges: Sequence[float], value: float) -> int:
    right = bisect_left(edges, value)
    if right == 0:
        return 0
    if right == len(edges) or value - edges[right - 1] <= edges[right] - value:
        return right - 1
    return right


# ---------------------------------------------------------------- pdfplumber, for rotated pages


class Plumber:
    """pdfplumber on the same bytes, opened when a rotated page first asks for it; pages are closed after use."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._pdf: Any = None

    def read(self, number: int, page: pymupdf.Page) -> tuple[list[Grid], list[Line]]:
        """The grids of page `number`, and its text beyond the page's edge, which MuPDF does not return."""
        try:
            if self._pdf is None:
                import pdfplumber  # costly to load, and seldom needed

                self._pdf = pdfplumber.open(io.BytesIO(self._data))
            other = self._pdf.pages[number - 1]
            tables = [grid_of(map(_box, table.cells), "plumber") for table in other.find_tables()]
            words = other.extract_words(return_chars=True)
            other.close()
        except (*MUPDF_ERRORS, RecursionError, *_pdfminer_errors()):
            return [], []
        return [grid for grid in tables if grid is not None], _beyond(words, page)


def _pdfminer_errors() -> tuple[type[Exception], ...]:
    from pdfminer.psexceptions import PSException
    from pdfplumber.utils.exceptions import PdfminerException

    return (PSException, PdfminerException)


def _beyond(words: Iterable[dict[str, Any]], page: pymupdf.Page) -> list[Line]:
    lines = []
    for word in words:
        middle = (word["x0"] + word["x1"]) / 2, (word["top"] + word["bottom"]) / 2
        if not page.rect.contains(pymupdf.Point(middle)):
            glyphs = tuple(
                Glyph(char["text"], char["x0"], char["top"], char["x1"], char["bottom"], char["size"])
                for char in word["chars"]
            )
            lines.append(line_of(glyphs))
    return lines
