"""What the pages of a document say, page by page, for full-text search; a table as its rows of texts."""

from __future__ import annotations

from collections import defaultdict

from sqlalchemy import Connection, delete
from sqlalchemy.dialects.postgresql import insert

from docmill.types import PreparedDocument, Table
from storage.text_schema import pages


def save_texts(connection: Connection, prepared: PreparedDocument) -> None:
    """Replace the texts of the document's pages."""
    connection.execute(delete(pages).where(pages.c.document_id == prepared.document_id))
    texts = page_texts(prepared)
    if texts:
        rows = [{"document_id": prepared.document_id, "page": page, "text": text} for page, text in texts.items()]
        connection.execute(insert(pages), rows)


def page_texts(prepared: PreparedDocument) -> dict[int, str]:
    """For each page with text, its blocks and table rows a line each; what a table prints stands on the cell's page."""
    lines: dict[int, list[str]] = defaultdict(list)
    for page in prepared.pages:
        for block in page.blocks:
            said = [(page.number, block.printed.text)] if block.table is None else _table_lines(block.table)
            _add(lines, said)
    return {page: "\n".join(lines[page]) for page in sorted(lines)}


def _add(lines: dict[int, list[str]], said: list[tuple[int, str]]) -> None:
    for page, line in said:
        if line:
            lines[page].append(line)


def _table_lines(table: Table) -> list[tuple[int, str]]:
    rows: dict[tuple[int, int], list[str]] = defaultdict(list)
    for cell in table.cells:
        if cell.text:
            rows[cell.page, cell.row].append(cell.text)
    return [(page, "\t".join(texts)) for (page, _), texts in rows.items()]


def grid_of(table: Table) -> list[list[str | None]]:
    """The table as rows of texts; a spanning cell's text stands where the cell begins."""
    grid: list[list[str | None]] = [[None] * table.cols for _ in range(table.rows)]
    for cell in table.cells:
        grid[cell.row][cell.col] = cell.text
    return grid
