"""A fragment that a document says twice is shown once; tables and fragments with other facts are always shown."""

from __future__ import annotations

from collections.abc import Sequence

from docmill.types import BBox, Block, BlockKind, Cell, Page, Printed, Region, Table
from preprocess.render import render

BOX = BBox(0, 0, 10, 10)
CLAUSE = (
    "The borrower keeps the collateral insured against fire and theft at its own cost, lets the lender inspect it at "
    "any reasonable time, and tells the lender without delay of any loss, damage or claim that affects its value."
)
CLAUSE_ZH = "借款人应当自行承担费用为抵押物投保火灾险和盗窃险，允许贷款人随时检查抵押物的保管状况，并及时告知损失。"


def shown(*pages: Sequence[Block]) -> str:
    built = [Page(number, 595, 842, tuple(blocks)) for number, blocks in enumerate(pages, start=1)]
    return "".join(chunk.text for chunk in render(built, lambda texts: [len(text) for text in texts]))


def said(text: str, kind: BlockKind = BlockKind.PARAGRAPH) -> Block:
    return Block(kind, 1, BOX, Printed(text))


def on_page(page: int, text: str) -> Block:
    return Block(BlockKind.PARAGRAPH, page, BOX, Printed(text))


def table(text: str) -> Block:
    cells = (Cell(0, 0, Printed(text), 1, BOX), Cell(0, 1, Printed("1"), 1, BOX))
    whole = Table("t1", cells, rows=1, cols=2, regions=(Region(1, BOX),), reader="lines")
    return Block(BlockKind.TABLE, 1, BOX, Printed(""), whole)


def test_a_repeated_paragraph_is_shown_once() -> None:
    for clause in (CLAUSE, CLAUSE_ZH):
        assert shown([said(clause), said("Between."), said(clause)]) == f"[p1]\n{clause}\nBetween.\n"


def test_a_nearly_repeated_paragraph_is_shown_once() -> None:
    assert shown([said(CLAUSE), said(CLAUSE.replace("tells", "informs"))]).count("collateral") == 1


def test_a_paragraph_that_shares_less_is_shown() -> None:
    other = CLAUSE[:100] + " and pays what it owes on the first day of each month in the currency of the debt."
    assert shown([said(CLAUSE), said(other)]).count("collateral") == 2


def test_a_paragraph_with_another_number_name_or_negation_is_shown() -> None:
    said_of = CLAUSE + " It insures {} for {} and does {}pledge it again."
    first = said_of.format("Acme", "1,200.00", "")
    for facts in (("Acme", "1,300.00", ""), ("Apex", "1,200.00", ""), ("Acme", "1,200.00", "not ")):
        assert shown([said(first), said(said_of.format(*facts))]).count("collateral") == 2


def test_a_repeat_of_the_later_of_two_alike_is_found() -> None:
    one, other = CLAUSE + " The sum is 1,200.00.", CLAUSE + " The sum is 1,300.00."
    assert shown([said(one), said(other), said(other), said(one)]).count("collateral") == 2


def test_tables_are_shown_however_often_they_come() -> None:
    assert shown([table(CLAUSE), table(CLAUSE), said(CLAUSE)]).count("collateral") == 3


def test_a_short_line_means_something_else_in_each_place() -> None:
    assert shown([said("Payable on demand by the bank.")] * 3).count("demand") == 3


def test_headings_and_notes_are_shown() -> None:
    for kind in (BlockKind.HEADING, BlockKind.FOOTNOTE, BlockKind.FORM_FIELD):
        assert shown([said(CLAUSE), said(CLAUSE, kind)]).count("collateral") == 2


def test_the_page_is_named_before_what_is_left_of_it() -> None:
    assert shown([said(CLAUSE)], [on_page(2, CLAUSE), on_page(2, "After it.")]).endswith("\n[p2]\nAfter it.\n")
    assert "[p2]" not in shown([said(CLAUSE)], [on_page(2, CLAUSE)])
