"""Which cells of a table its scale applies to.

"In millions, except per share data" and 单位：万元 hold for amounts. A rate, earnings per share or a count of people in
the same table is printed in full.
"""

from __future__ import annotations

import re
from decimal import Decimal

from docmill.types import Table

#: Labels of rows and columns that are printed in full, in a table of thousands too. "Interest rate swaps" are amounts,
#: "effective interest rate" is none: so a rate counts only at the end of its label.
_IN_FULL = re.compile(
    r"per (?:\w+ )?(?:share|unit|ads)\b|\b(?:ratio|rate|margin|yield)\s*(?:\(.*\))?$|\bpercent|%|\bheadcount\b"
    r"|每股|(?:率|比例|比重|占比|人数|户数|序号|编号)\s*(?:[（(].*[)）])?$",
    re.IGNORECASE,
)


def scale_of(table: Table, row: int | None, col: int | None) -> Decimal | None:
    """The table's scale for this cell; None where the table has none, or the cell is printed in full."""
    if table.scale is None or any(_IN_FULL.search(label.strip()) for label in _labels(table, row, col)):
        return None
    return table.scale


def _labels(table: Table, row: int | None, col: int | None) -> list[str]:
    """The row's first cell and the column's headers."""
    return [
        cell.text
        for cell in table.cells
        if (cell.row == row and cell.col == 0 and col != 0)
        or (cell.row < table.header_rows and col is not None and cell.col <= col < cell.col + cell.colspan)
    ]
