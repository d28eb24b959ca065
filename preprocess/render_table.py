"""A table as the model reads it: pipe rows where they say it all, HTML where a figure or a title spans cells.

Rows are self-contained, as a long table is split between them: a label beside several rows is repeated in each, and
rows that a figure ties together are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from docmill.types import Block, Cell, Piece, Table
from preprocess.cells import is_value
from preprocess.drafts import Draft, text_draft
from preprocess.markup import html_cell, markdown_cell
from preprocess.units import unit_of

#: Rows that a spanning figure ties together are kept in one piece up to here.
MOST_TIED: Final = 12

Slots = list[list[Cell | None]]


def table_draft(captions: Sequence[Block], table: Table, page: int) -> Draft:
    """The table under its captions, with a head that can be repeated, and its rows."""
    titles = [text_draft(caption) for caption in captions]
    title = "".join(draft.text for draft in titles)
    header, body, foot = _html(table, page) if spans_matter(table) else _markdown(table, page)
    opening = title + _unit_line(table, title) + header.text
    head_pieces = tuple(piece for draft in (*titles, header) for piece in draft.pieces)
    pieces = (*head_pieces, *dict.fromkeys(piece for row in body for piece in row.pieces))
    text = opening + "".join(row.text for row in body) + foot
    return Draft(text, page, pieces, opening, head_pieces, tuple(body), foot)


def spans_matter(table: Table) -> bool:
    """Whether a body cell spans columns that it is not the label of, or is a figure for several rows."""
    return any(
        cell.row >= table.header_rows
        and cell.text
        and (
            (cell.col > 0 and 1 < cell.colspan < table.cols)
            or ((cell.rowspan > 1 or cell.colspan > 1) and is_value(cell.text))
        )
        for cell in table.cells
    )


def _unit_line(table: Table, title: str) -> str:
    """The unit and scale if nothing in the head states them: they hold for every part of the table."""
    if table.unit is None and table.scale is None:
        return ""
    head = (cell.text for cell in table.cells if cell.row < max(1, table.header_rows))
    if any(unit_of(text) for text in (*title.splitlines(), *head)):
        return ""
    stated = [f"unit: {table.unit}"] if table.unit else []
    return f"({', '.join([*stated, f'scale: {table.scale:f}'] if table.scale else stated)})\n"


def _pieces(table: Table, cells: Sequence[Cell | None]) -> tuple[Piece, ...]:
    own = dict.fromkeys(cell for cell in cells if cell is not None and cell.text)
    return tuple(Piece(cell.printed, cell.page, table.table_id, cell.row, cell.col) for cell in own)


def _page_of(row: int, cells: Sequence[Cell | None], page: int) -> int:
    return next((cell.page for cell in cells if cell is not None and cell.text and cell.row == row), page)


def _slots(table: Table) -> Slots:
    """For each place of the table the cell that covers it."""
    slots: Slots = [[None] * table.cols for _ in range(table.rows)]
    for cell in table.cells:
        for row in range(cell.row, min(table.rows, cell.row + cell.rowspan)):
            for col in range(cell.col, min(table.cols, cell.col + cell.colspan)):
                slots[row][col] = slots[row][col] or cell
    return slots


# ---------------------------------------------------------------- Markdown


def _markdown(table: Table, page: int) -> tuple[Draft, list[Draft], str]:
    """(header, rows, foot). The first row of the header, or an empty one, stands over the ruler."""
    rows = [_pipe_row(table, row, _shown(table, cells), page) for row, cells in enumerate(_slots(table))]
    ruler = "|" + "---|" * table.cols + "\n"
    first = rows[0].text if table.header_rows else "|" * (table.cols + 1) + "\n"
    header = rows[: table.header_rows]
    text = first + ruler + "".join(row.text for row in header[1:])
    return Draft(text, page, tuple(piece for row in header for piece in row.pieces)), rows[table.header_rows :], ""


def _shown(table: Table, cells: Sequence[Cell | None]) -> list[Cell | None]:
    """A header over several columns stands for each; a title over the whole width, or a wide label, is shown once."""
    shown = list(cells)
    for col in range(1, table.cols):
        cell = cells[col]
        if cell is not None and cell is cells[col - 1]:
            heads = cell.row < table.header_rows and cell.colspan < table.cols
            shown[col] = cell if heads else None
    return shown


def _pipe_row(table: Table, row: int, cells: Sequence[Cell | None], page: int) -> Draft:
    texts = ["" if cell is None else markdown_cell(cell.text) for cell in cells]
    return Draft("|" + "|".join(texts) + "|\n", _page_of(row, cells, page), _pieces(table, cells))


# ---------------------------------------------------------------- HTML


def _html(table: Table, page: int) -> tuple[Draft, list[Draft], str]:
    """(header, rows, foot) with the end tags left out that HTML does without."""
    slots = _slots(table)
    groups = list(_groups(slots, table.header_rows))
    drafts = [_html_rows(table, slots, start, stop, page) for start, stop in groups]
    header = drafts.pop(0) if table.header_rows else Draft("", page, ())
    return Draft("<table>\n" + header.text, page, header.pieces), drafts, "</table>\n"


def _groups(slots: Slots, header_rows: int) -> Iterator[tuple[int, int]]:
    """Rows that must stay together: the header, and those that a figure spans."""
    start = header_rows
    if header_rows:
        yield 0, header_rows
    for row in range(header_rows + 1, len(slots) + 1):
        tied = row < len(slots) and any(
            cell is not None and cell is above and is_value(cell.text)
            for cell, above in zip(slots[row], slots[row - 1], strict=True)
        )
        if not tied or row - start >= MOST_TIED:
            yield start, row
            start = row


def _html_rows(table: Table, slots: Slots, start: int, stop: int, page: int) -> Draft:
    tag = "th" if stop <= table.header_rows else "td"
    done: set[tuple[int, int]] = set()
    lines = []
    for row in range(start, stop):
        cells = [_html_cell(slots, row, col, stop, tag, done) for col in range(table.cols) if (row, col) not in done]
        lines.append("<tr>" + "".join(cells) + "\n")
    inside = [cell for row in range(start, stop) for cell in slots[row]]
    return Draft("".join(lines), _page_of(start, slots[start], page), _pieces(table, inside))


def _html_cell(slots: Slots, row: int, col: int, stop: int, tag: str, done: set[tuple[int, int]]) -> str:
    """A cell with the rectangle of places that it covers, as far as the group of rows goes."""
    if (row, col) in done:
        return ""
    cell = slots[row][col]
    width = height = 1
    if cell is not None:
        while col + width < len(slots[row]) and slots[row][col + width] is cell and (row, col + width) not in done:
            width += 1
        while row + height < stop and all(slots[row + height][place] is cell for place in range(col, col + width)):
            height += 1
    done.update((down, across) for down in range(row, row + height) for across in range(col, col + width))
    spans = (f" colspan={width}" if width > 1 else "") + (f" rowspan={height}" if height > 1 else "")
    return f"<{tag}{spans}>" + ("" if cell is None else html_cell(cell.text))
