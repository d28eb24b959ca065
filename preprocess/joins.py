"""Tables joined over page breaks: same columns, last on one page and first on the next, repeated header removed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import Cell, Region, Table
from preprocess.cells import is_value
from preprocess.join import cell_seam, joined
from preprocess.text import Item, Row

#: Points by which the edges of a table may differ from page to page.
SAME_EDGE: Final = 6.0
#: The share of a table's rows that are named in the first column, where rows are.
_NAMED: Final = 0.9
_CONTINUED: Final = ("续", "continued", "cont'd", "cont.")


def join_pages(pages: Sequence[Sequence[Item]]) -> list[list[Item]]:
    """The pages' items with every continued table whole, on the page where it starts."""
    joined = [list(items) for items in pages]
    start: int | None = None
    for number, items in enumerate(joined):
        if start is not None and _continue(joined[start], items) and not items:
            continue
        start = number if items and isinstance(items[-1], Table) else None
    return joined


def _continue(before: list[Item], items: list[Item]) -> bool:
    """Move the table that starts a page to the open table of an earlier page, if it goes on with it."""
    first, above = _leading_table(items), before[-1]
    below = None if first is None else items[first]
    if first is None or not isinstance(above, Table) or not isinstance(below, Table) or not _same_columns(above, below):
        return False
    before[-1] = _append(above, below)
    del items[: first + 1]
    return True


def _leading_table(items: Sequence[Item]) -> int | None:
    """The index of a table that starts the page; a line such as （续表） may stand above it."""
    for index, item in enumerate(items[:2]):
        if isinstance(item, Table):
            return index
        if not (isinstance(item, Row) and _says_continued(item.text)):
            return None
    return None


def _says_continued(text: str) -> bool:
    return len(text) < 60 and any(word in text.lower() for word in _CONTINUED)


def _same_columns(above: Table, below: Table) -> bool:
    if above.cols != below.cols:
        return False
    one, other = above.regions[-1].bbox, below.regions[0].bbox
    if abs(one.x0 - other.x0) > SAME_EDGE or abs(one.x1 - other.x1) > SAME_EDGE:
        return False
    return _edges_agree(above, below)


def _edges_agree(above: Table, below: Table) -> bool:
    """Whether single columns start at the same x on both pages (most of those that can be compared)."""
    one, other = _starts(above), _starts(below)
    shared = [col for col in one if col in other]
    close = sum(1 for col in shared if abs(one[col] - other[col]) <= SAME_EDGE)
    return not shared or close * 4 >= len(shared) * 3


def _starts(table: Table) -> dict[int, float]:
    return {cell.col: cell.bbox.x0 for cell in table.cells if cell.bbox is not None and cell.colspan == 1}


def _append(above: Table, below: Table) -> Table:
    """One table of both; rows of `below` that repeat the header are left out, a row that the break parts is one row."""
    skip = _repeated_header(above, below)
    header = above.header_rows
    if skip and not header:
        header = skip
    first = [replace(cell, header=cell.row < header) for cell in above.cells]
    if _is_parted(above, below, skip):
        first = _with_rest(first, above.rows - 1, [cell for cell in below.cells if cell.row == skip])
        skip += 1
    shifted = [_shift(cell, above.rows - skip) for cell in below.cells if cell.row >= skip]
    return replace(
        above,
        cells=(*first, *shifted),
        rows=above.rows + below.rows - skip,
        regions=(*above.regions, *below.regions),
        header_rows=header,
        confidence=min((one for one in (above.confidence, below.confidence) if one is not None), default=None),
    )


def _is_parted(above: Table, below: Table, row: int) -> bool:
    """Whether a row of `below` is the rest of the last row of `above`: text in few cells, none in the first column.

    The cells above are filled, no figure goes on, and the first column is filled in nearly all other rows.
    """
    rest = {cell.col for cell in below.cells if cell.row == row and cell.text.strip()}
    last = {cell.col for cell in above.cells if cell.row == above.rows - 1 and cell.text.strip()}
    if not rest or 0 in rest or 0 not in last or not rest < last:
        return False
    if any(is_value(cell.text) for cell in below.cells if cell.row == row):
        return False
    named = [bool(cell.text.strip()) for table in (above, below) for cell in table.cells if cell.col == 0]
    return sum(named) >= _NAMED * (len(named) - 1)


def _with_rest(cells: Sequence[Cell], row: int, rest: Sequence[Cell]) -> list[Cell]:
    """The cells, those of `row` with what stands of them on the next page."""
    more = {cell.col: cell for cell in rest if cell.text.strip()}
    return [_whole(cell, more[cell.col]) if cell.row == row and cell.col in more else cell for cell in cells]


def _whole(cell: Cell, rest: Cell) -> Cell:
    printed = joined([cell.printed, cell_seam(cell.text, rest.text) + rest.text])
    where = () if rest.bbox is None else (Region(rest.page, rest.bbox),)
    return replace(cell, printed=printed, also=(*cell.also, *where))


def _shift(cell: Cell, rows: int) -> Cell:
    return replace(cell, row=cell.row + rows, header=False)


def _repeated_header(above: Table, below: Table) -> int:
    """How many leading rows of `below` say what the first rows of `above` say."""
    most = min(above.header_rows or 1, below.rows - 1)
    for count in range(most, 0, -1):
        if _texts(above, count) == _texts(below, count):
            return count
    return 0


def _texts(table: Table, rows: int) -> list[tuple[int, int, str]]:
    return [(cell.row, cell.col, "".join(cell.text.split())) for cell in table.cells if cell.row < rows and cell.text]
