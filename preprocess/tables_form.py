"""A prepared document as plain JSON values: its tables in the form that table benchmarks share, and its text."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from docmill.spelling import search_copy
from docmill.types import BBox, Block, Cell, Page, PreparedDocument, Region, Table


def tables_form(prepared: PreparedDocument) -> dict[str, Any]:
    """`{"pages": [{"page", "tables": [{"bbox", "cells": [{"row", "col", "rowspan", "colspan", "text"}]}]}]}` and more.

    A table that runs over pages is given on each page with the rows that stand there, its header first; `table_id` ties
    the parts together.
    """
    tables = _tables_by_page(prepared)
    pages = [_page(page, tables[page.number]) for page in prepared.pages]
    return {
        "document_id": prepared.document_id,
        "parser": prepared.parser,
        "tokens": prepared.tokens,
        "partial": prepared.partial,
        "missing": [{"page": one.page, "code": one.code, "reason": one.reason} for one in prepared.missing],
        "warnings": list(prepared.warnings),
        "pages": pages,
    }


def _tables_by_page(prepared: PreparedDocument) -> dict[int, list[dict[str, Any]]]:
    by_page: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for table in prepared.tables:
        for index, region in enumerate(table.regions):
            by_page[region.page].append(_table(table, region, first=index == 0))
    return by_page


def _page(page: Page, tables: list[dict[str, Any]]) -> dict[str, Any]:
    blocks = [_block(block) for block in page.blocks if block.table is None]
    size = {"width": round(page.width, 2), "height": round(page.height, 2)}
    hidden = {"hidden": [_block(block) for block in page.hidden]} if page.hidden else {}
    return {"page": page.number, **size, "source": page.source, "tables": tables, "blocks": blocks, **hidden}


def _block(block: Block) -> dict[str, Any]:
    """A block without a table; what not every block has is left out where it is not."""
    base = {"kind": block.kind.value, "bbox": _rounded(block.bbox), "text": block.printed.text, "source": block.source}
    odd = {"confidence": block.confidence, "continues": block.continues, "label": block.label}
    searched = search_copy(block.printed.text)
    odd["search"] = "" if searched == block.printed.text else searched
    return base | {name: value for name, value in odd.items() if value}


def _table(table: Table, region: Region, *, first: bool) -> dict[str, Any]:
    """The part of a table that stands on one page."""
    rows = sorted({cell.row for cell in table.cells if cell.page == region.page})
    repeated = [] if first else _repeated_header(table, region)
    number = {row: place for place, row in enumerate([*repeated, *rows])}
    cells = [_cell(cell, number[cell.row]) for cell in table.cells if cell.row in number and cell.text]
    return {
        "table_id": table.table_id,
        "bbox": _rounded(region.bbox),
        "reader": table.reader,
        "confidence": table.confidence,
        "caption": table.caption,
        "unit": table.unit,
        "scale": None if table.scale is None else str(table.scale),
        "header_rows": table.header_rows if first else len(repeated),
        "cells": cells,
    }


def _repeated_header(table: Table, region: Region) -> list[int]:
    """The header's rows that are printed again on this page: those with room above the table's first own row."""
    tops = [cell.bbox for cell in table.cells if cell.page == region.page and cell.bbox is not None]
    tops += [rest.bbox for cell in table.cells for rest in cell.also if rest.page == region.page]
    header = [cell for cell in table.cells if cell.row < table.header_rows and cell.bbox is not None]
    if not tops or not header:
        return []
    first = min(tops, key=lambda box: box.y0)
    room = first.y0 - region.bbox.y0
    if room <= (first.y1 - first.y0) / 2:
        return []
    return [row for row in range(table.header_rows) if _depth(header, row) <= room + (first.y1 - first.y0) / 2]


def _depth(header: list[Cell], row: int) -> float:
    """How far below the header's top a row of it ends."""
    boxes = [(cell.row + cell.rowspan - 1, cell.bbox) for cell in header if cell.bbox is not None]
    ends = [box.y1 for at, box in boxes if at == row]
    return max(ends, default=0.0) - min(box.y0 for _, box in boxes)


def _cell(cell: Cell, row: int) -> dict[str, Any]:
    return {
        "row": row,
        "col": cell.col,
        "rowspan": cell.rowspan,
        "colspan": cell.colspan,
        "text": cell.text,
        "header": cell.header,
        "page": cell.page,
        "bbox": _rounded(cell.bbox),
        "also": [{"page": region.page, "bbox": _rounded(region.bbox)} for region in cell.also],
    }


def _rounded(box: BBox | None) -> list[float] | None:
    return None if box is None else [round(edge, 2) for edge in box]
