"""A table by row and column: what labels a cell, and the scale and unit that its number is printed in.

"In millions, except per share data" and 单位：万元 hold for amounts. A rate, earnings per share or a count of people in
the same table is printed in full, and a column or row that states a scale of its own (金额（万元）) has that one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import NamedTuple

from docmill.types import Cell, Table
from validation.numbers import Number, parse_number
from validation.text import half


class Frame(NamedTuple):
    """What a cell's number is printed in; None for what is not stated."""

    scale: Decimal | None
    unit: str | None


#: Labels of rows and columns that are printed in full, in a table of thousands too. "Interest rate swaps" are amounts,
#: "effective interest rate" is none: so a rate counts only at the end of its label.
_IN_FULL = re.compile(
    r"\b(?:ratio|rate|margin|yield|days|months|years|quantity|count)\s*(?:\(.*\))?$"
    r"|\bpercent|%|\bheadcount\b|\bnumber of\b|\bno\. of\b"
    r"|(?:率|比例|比重|占比|数量|[人户笔家次天件]数|期限|年限|序号|编号)\s*(?:[(].*[)])?$",
    re.IGNORECASE,
)
_PER_SHARE = re.compile(r"每股|/\s*股|per (?:\w+ )?(?:share|unit|ads)\b", re.IGNORECASE)
_ZH_SCALES = {"万亿": 12, "千亿": 11, "百亿": 10, "十亿": 9, "亿": 8, "億": 8, "千万": 7, "百万": 6, "十万": 5,
              "万": 4, "萬": 4, "千": 3}  # fmt: skip
_ZH_UNITS = {"元": "CNY", "圆": "CNY", "美元": "USD", "港元": "HKD", "欧元": "EUR", "日元": "JPY", "英镑": "GBP"}
_ZH = re.compile(
    r"[(\[,/:]\s*(?:单位:?)?\s*(?:人民币|港币)?(万亿|[千百十]?亿|億|[千百十]?万|萬|千)?"
    r"(美元|港元|欧元|日元|英镑|元|圆|股|户|人|‰|倍|次|个|份|天|%)(?:人民币)?\s*(?:[)\]]|$)"
)
_EN_SCALES = {"thousand": 3, "k": 3, "000": 3, "million": 6, "m": 6, "mn": 6, "mln": 6, "billion": 9, "bn": 9}
_EN = re.compile(
    r"\bin (thousand|million|billion)s\b"
    r"|(?:RMB|CNY|USD|US\$|HK\$|EUR|GBP|[$€£¥])\s?'?(000|thousand|million|billion|mn?|bn|k)s?\b"
    r"|\(\s*(thousand|million|billion|mn?|mln|bn|k|'000)s?\s*\)|[(,/]\s*(%)\s*[)]?$|^%$",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Grid:
    table: Table

    @cached_property
    def cells(self) -> dict[tuple[int, int], Cell]:
        """Every cell at each place that it spans."""
        found: dict[tuple[int, int], Cell] = {}
        for cell in self.table.cells:
            if cell.rowspan == cell.colspan == 1:
                found.setdefault((cell.row, cell.col), cell)
                continue
            for row in range(cell.row, cell.row + cell.rowspan):
                for col in range(cell.col, cell.col + cell.colspan):
                    found.setdefault((row, col), cell)
        return found

    @cached_property
    def head_rows(self) -> int:
        """The rows that head columns; where the table does not say, the first, if no amount stands in it."""
        if self.table.header_rows:
            return self.table.header_rows
        first = [cell for cell in self.table.cells if cell.row == 0]
        return 0 if any(_amount(cell.text) for cell in first) else 1

    def text(self, row: int, col: int) -> str:
        """A cell's text in half width."""
        if (row, col) not in self._texts:
            cell = self.cells.get((row, col))
            self._texts[row, col] = half(cell.text).strip() if cell else ""
        return self._texts[row, col]

    def number(self, row: int, col: int) -> Number | None:
        """A cell's number as printed; None for a text."""
        if (row, col) not in self._numbers:
            self._numbers[row, col] = parse_number(self.text(row, col))
        return self._numbers[row, col]

    @cached_property
    def _numbers(self) -> dict[tuple[int, int], Number | None]:
        return {}

    @cached_property
    def _texts(self) -> dict[tuple[int, int], str]:
        return {}

    def labels(self, row: int, col: int) -> list[str]:
        """The words to the left in the row, nearest last; numbers label nothing."""
        seen = {id(cell): cell for left in range(col) if (cell := self.cells.get((row, left)))}
        texts = [half(cell.text).strip() for cell in seen.values()]
        return [text for text in texts if _LETTER.search(text) and parse_number(text) is None]

    def heads(self, row: int, col: int) -> list[str]:
        """The texts at the head of the column, topmost first."""
        rows = range(min(self.head_rows, row))
        seen = {id(cell): cell for above in rows if (cell := self.cells.get((above, col)))}
        return [half(cell.text).strip() for cell in seen.values()]

    def frame(self, row: int | None, col: int | None) -> Frame:
        """The scale and unit of a cell's number."""
        if row is None or col is None:
            return Frame(self.table.scale, self.table.unit)
        if (row, col) not in self._frames:
            self._frames[row, col] = self._frame(row, col)
        return self._frames[row, col]

    @cached_property
    def _frames(self) -> dict[tuple[int, int], Frame]:
        return {}

    def _frame(self, row: int, col: int) -> Frame:
        labels = [*self.labels(row, col)[:1], *self.heads(row, col)]
        if any(_PER_SHARE.search(label) for label in labels):
            return Frame(None, None)
        own = next((frame for frame in map(stated, labels) if frame), None)
        if own is not None:
            return own
        if any(_IN_FULL.search(label) for label in labels):
            return Frame(None, None)
        return Frame(self.table.scale, self.table.unit)


def stated(label: str) -> Frame | None:
    """The scale and unit that a label in half width states, or None: 金额(万元), Revenue ($m), 占比(%)."""
    if found := _ZH.search(label):
        word, unit = found.groups()
        money = unit in _ZH_UNITS or word
        scale = Decimal(10) ** _ZH_SCALES.get(word or "", 0) if money else None
        return Frame(scale, _ZH_UNITS.get(unit, unit))
    if found := _EN.search(label):
        word = next((group for group in found.groups() if group), "%").lower().lstrip("'")
        return Frame(None, "%") if word == "%" else Frame(Decimal(10) ** _EN_SCALES[word], None)
    return None


def _amount(text: str) -> bool:
    """A number that is no year and no ordinal."""
    number = parse_number(text)
    return number is not None and (number.relative or abs(number.value) > 2100 or "." in text or "," in text)
