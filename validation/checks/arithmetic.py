"""A cited table's total row is the sum of its rows.

Only plain tables are judged: where subtotals or "of which" rows nest, what must add up to what is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from docmill.types import Cell, Table
from validation.case import Case, Hit
from validation.numbers import parse_number

_TOTAL = re.compile(r"^\W*(合\s*计|总\s*计|共\s*计|grand\s+total|total|sum)\W*$", re.IGNORECASE)
_NESTED = re.compile(r"小\s*计|其\s*中|减：|加：|sub-?\s?total|of which|less:|net |total", re.IGNORECASE)
_FEWEST_ROWS = 2


def totals(case: Case) -> Iterator[Hit]:
    """A column of a cited table whose total row is not the sum of the rows above it."""
    cited = {citation.table_id for citation in case.extraction.citations}
    for table in case.facts.tables.values():
        if table.table_id in cited:
            yield from _totals_of(table)


def _totals_of(table: Table) -> Iterator[Hit]:
    rows = [_row(table, number) for number in range(table.header_rows, table.rows)]
    labels = [row[0].text.strip() if row and row[0] else "" for row in rows]
    last = next((index for index, label in enumerate(labels) if _TOTAL.match(label)), None)
    if last is None or last < _FEWEST_ROWS or any(_NESTED.search(label) for label in labels[:last]):
        return
    for column in range(1, table.cols):
        yield from _column(rows[:last], rows[last][column], column)


def _column(rows: Sequence[Sequence[Cell | None]], total: Cell | None, column: int) -> Iterator[Hit]:
    printed = _values([total])
    parts = _values([row[column] for row in rows])
    if total is None or not printed or parts is None or len(parts) < _FEWEST_ROWS:
        return
    # Each addend was rounded to its last printed digit, the total too: half a digit for each.
    slack = Decimal(1).scaleb(max(_exponent(value) for value in (*parts, *printed))) * (len(parts) + 1) / 2
    if abs(sum(parts) - printed[0]) > slack:
        yield Hit(text=total.text, detail=f"{sum(parts):,f}", page=total.page, bbox=total.bbox)


def _row(table: Table, number: int) -> list[Cell | None]:
    row: list[Cell | None] = [None] * table.cols
    for cell in table.cells:
        if cell.row == number and cell.col < table.cols:
            row[cell.col] = cell
    return row


def _values(cells: Sequence[Cell | None]) -> list[Decimal] | None:
    """The numbers of the cells; a blank or a dash is nothing. None if a cell holds something else, or a share."""
    values = []
    for cell in cells:
        text = cell.text.strip() if cell else ""
        if not text.strip("-–—−/ "):
            continue
        number = parse_number(text)
        if number is None or number.relative:
            return None
        values.append(number.value)
    return values


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0
