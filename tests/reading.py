"""Parts of documents, made by hand, with a box for every character."""

from __future__ import annotations

from collections.abc import Sequence

from docmill.types import BBox, Part, Piece, Printed

LINE = 20.0
WIDTH = 6.0


def printed(text: str, *, y: float = 100.0, x: float = 50.0) -> Printed:
    """One line; the i-th character stands at x + 6 i."""
    return Printed.of([(sign, BBox(x + WIDTH * i, y, x + WIDTH * (i + 1), y + 12)) for i, sign in enumerate(text)])


def part_of(*lines: str, page: int = 1, number: int = 1, of: int = 1) -> Part:
    """A part whose pieces are the lines, one under the other."""
    pieces = tuple(Piece(printed(line, y=100 + LINE * i), page) for i, line in enumerate(lines))
    return Part("\n".join(lines), sum(map(len, lines)) // 3, pieces, number, of)


def table_part(rows: Sequence[Sequence[str]], *, page: int = 1) -> Part:
    """A part whose pieces are the cells of one table."""
    pieces = tuple(
        Piece(printed(cell, x=50 + 100 * col, y=100 + LINE * row), page, "t1", row, col)
        for row, cells in enumerate(rows)
        for col, cell in enumerate(cells)
    )
    return Part("\n".join(" | ".join(cells) for cells in rows), 50, pieces)


ENGLISH = (
    "Payment notice PN-2024-0917",
    "Account number: 6222021234567890",
    "Counterparty: Harbour Trading Limited (Cayman)",
    "Transaction date: 31 December 2024",
    "Transaction amount: USD 5,280,000.00",
    "Fee: USD 1,250.00; balance after the transaction: USD 18,734,002.55",
)
CHINESE = (
    "平安置业股份有限公司 2024年度风险报告",
    "报告日期：2024年12月31日",
    "截至报告日，公司逾期贷款余额为人民币5,280.50万元，较上年增长12.3%。",
    "对外担保总额为18,734,002.55元，其中涉诉金额1,250,000.00元。",
    "公司持续经营能力存在重大不确定性。",
)
