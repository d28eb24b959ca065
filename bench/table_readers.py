"""Readers of tables to compare: docmill as `docmill parse --json` shows it, and named peers, all in one form.

Each takes a PDF's path and gives `{"pages": [{"page", "tables": [{"bbox", "cells": [...]}]}]}`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final

Form = dict[str, Any]


def docmill(path: Path) -> Form:
    """The product, through the same function as its command."""
    from workers.cli import parse_json
    from workers.commands import parse_file

    read: Form = json.loads(parse_json(parse_file(path)))
    return read


def pymupdf_html(path: Path) -> Form:
    """PyMuPDF 2.0's layout and grid models, by the HTML of its tables: the best single peer known."""
    import pymupdf

    with pymupdf.open(path) as document:
        return {"pages": [_page(page.number + 1, _html_tables(page)) for page in document]}


def pdfplumber_lines(path: Path) -> Form:
    """pdfplumber's `extract_tables` as its users call it."""
    import pdfplumber

    with pdfplumber.open(path) as document:
        return {"pages": [_page(page.page_number, map(_cells, page.extract_tables())) for page in document.pages]}


READERS: Final[dict[str, Callable[[Path], Form]]] = {
    "docmill": docmill,
    "pymupdf-html": pymupdf_html,
    "pdfplumber-lines": pdfplumber_lines,
}


def _page(number: int, tables: Iterable[list[Form]]) -> Form:
    return {"page": number, "tables": [{"bbox": None, "cells": cells} for cells in tables]}


def _cells(rows: list[list[str | None]]) -> list[Form]:
    return [{"row": row, "col": col, "text": text} for row, texts in enumerate(rows) for col, text in enumerate(texts)]


def _html_tables(page: Any) -> Iterator[list[Form]]:
    found = page.find_tables(union=True, refine=True)
    for table in found.tables if found else ():
        parser = _TableHtml()
        parser.feed(table.to_html())
        yield parser.cells


class _TableHtml(HTMLParser):
    """The cells of one HTML table with their rows, columns and spans."""

    def __init__(self) -> None:
        super().__init__()
        self.cells: list[Form] = []
        self._row, self._taken = -1, set[tuple[int, int]]()
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self._row += 1
        elif tag in ("td", "th"):
            self._open = True
            given = dict(attrs)
            self._place(int(given.get("rowspan") or 1), int(given.get("colspan") or 1))
        elif tag == "br" and self._open:
            self.handle_data(" ")

    def _place(self, rowspan: int, colspan: int) -> None:
        col = 0
        while (self._row, col) in self._taken:
            col += 1
        self._taken |= {(self._row + down, col + right) for down in range(rowspan) for right in range(colspan)}
        self.cells.append({"row": self._row, "col": col, "rowspan": rowspan, "colspan": colspan, "text": ""})

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._open = False

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1]["text"] += data
