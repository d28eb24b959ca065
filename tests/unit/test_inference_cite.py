"""A value is cited where it stands; of several places, at the one that its neighbours point to."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.types import BBox, Citation, Part, Piece, Printed
from inference.cite import locate
from inference.grounding import ground
from tests.reading import part_of, printed, table_part

AMOUNT = {"type": ["string", "null"], "x-source": "number"}
QUOTE = {"type": ["string", "null"], "x-source": "quote"}
NAME = {"type": ["string", "null"], "x-source": "verbatim"}


def cited(part: Part, result: dict[str, Any], **fields: Any) -> dict[str, Citation]:
    schema = {"type": "object", "properties": fields}
    return {citation.path: citation for citation in locate(ground(schema, part), schema, result)}


def test_the_box_is_that_of_the_characters_alone() -> None:
    citation = cited(part_of("total 42.50 yuan"), {"amount": "42.50"}, amount=AMOUNT)["/amount"]
    assert citation.bbox == (50 + 6 * 6, 100, 50 + 6 * 11, 112)


def test_a_value_in_a_table_is_cited_with_its_cell() -> None:
    part = table_part([["Item", "2024"], ["Revenue", "5,280.00"], ["Cost", "1,000.00"]], page=3)
    citation = cited(part, {"amount": "5,280.00"}, amount=AMOUNT)["/amount"]
    assert (citation.page, citation.table_id, citation.row, citation.col) == (3, "t1", 1, 1)


def test_of_two_places_the_one_beside_the_label_is_cited() -> None:
    lines = ("Fee: 100.00", "Amount of the transaction: 100.00")
    fields = {"amount": {**AMOUNT, "x-labels": ["amount of the transaction"]}, "fee": AMOUNT}
    found = cited(part_of(*lines), {"amount": "100.00", "fee": "100.00"}, **fields)
    assert found["/amount"].bbox.y0 == 120
    assert found["/fee"].bbox.y0 == 100


def test_a_label_before_a_value_counts_more_than_one_after_it() -> None:
    lines = ("Balance 100.00 fee 100.00",)
    assert cited(part_of(*lines), {"fee": "100.00"}, fee=AMOUNT)["/fee"].bbox.x0 == 50 + 6 * 19


def test_of_two_places_the_one_inside_the_evidence_is_cited() -> None:
    lines = ("The amount is 100.00 in total.", "Later, 100.00 was paid back.")
    result = {"amount": "100.00", "evidence": "Later, 100.00 was paid"}
    found = cited(part_of(*lines), result, amount=AMOUNT, evidence=QUOTE)
    assert found["/amount"].bbox.y0 == found["/evidence"].bbox.y0 == 120


def test_in_a_list_item_a_value_is_cited_beside_its_label() -> None:
    part = table_part([["Revenue", "7.00"], ["Cost", "7.00"]])
    item = {"type": "object", "properties": {"label": NAME, "amount": AMOUNT}}
    rows = {"type": "array", "maxItems": 3, "items": item}
    result = {"rows": [{"label": "Cost", "amount": "7.00"}, {"label": "Revenue", "amount": "7.00"}]}
    found = cited(part, result, rows=rows)
    assert (found["/rows/0/amount"].row, found["/rows/1/amount"].row) == (1, 0)


def test_a_chinese_label_leads_to_its_value() -> None:
    part = part_of("手续费：100.00元", "交易金额：100.00元")
    amount = {**AMOUNT, "x-labels": ["交易金额"]}
    assert cited(part, {"amount": "100.00"}, amount=amount)["/amount"].bbox.y0 == 120


def test_a_name_that_runs_over_a_line_break_is_cited_as_printed() -> None:
    part = Part("", 0, (Piece(printed("Harbour\nTrading Ltd"), 1),))
    citation = cited(part, {"name": "Harbour Trading"}, name=NAME)["/name"]
    assert citation.text == "Harbour\nTrading"
    assert citation.bbox.x1 == 50 + 6 * 15


@pytest.mark.parametrize("invented", ["Harbou", "bour Trading", "Trading Limited"])
def test_a_part_of_a_word_and_what_is_not_printed_have_no_citation(invented: str) -> None:
    assert cited(part_of("Harbour Trading Ltd"), {"name": invented}, name=NAME) == {}


def test_null_and_free_text_have_no_citation() -> None:
    free = {"type": "string", "maxLength": 20}
    assert cited(part_of("free"), {"name": None, "why": "free"}, name=NAME, why=free) == {}


def test_text_that_stands_on_no_page_is_cited_with_an_empty_box() -> None:
    part = Part("", 0, (Piece(Printed("total 5"), 2),))
    assert cited(part, {"amount": "5"}, amount=AMOUNT)["/amount"].bbox == (0, 0, 0, 0)


def test_property_names_are_escaped_in_paths() -> None:
    assert set(cited(part_of("total 5"), {"a/b~": "5"}, **{"a/b~": AMOUNT})) == {"/a~1b~0"}


def test_the_evidence_of_the_whole_answer_leads_the_items_of_a_list_too() -> None:
    lines = ("Revenue 7.00 and cost 7.00 last year.", "This year the revenue was 7.00 again.")
    rows = {"type": "array", "maxItems": 2, "items": {"type": "object", "properties": {"amount": AMOUNT}}}
    result = {"evidence": "This year the revenue was 7.00", "rows": [{"amount": "7.00"}]}
    assert cited(part_of(*lines), result, evidence=QUOTE, rows=rows)["/rows/0/amount"].bbox.y0 == 120


def test_a_quotation_that_runs_over_line_breaks_is_cited_over_both_lines() -> None:
    first, second = "the loan amount of", "USD 5.00 is due"
    signs = [(c, BBox(6.0 * i, 100, 6.0 * i + 6, 112)) for i, c in enumerate(first)]
    signs += [(c, BBox(6.0 * i, 120, 6.0 * i + 6, 132)) for i, c in enumerate(second)]
    piece = Piece(Printed.of([*signs[: len(first)], ("\n", None), *signs[len(first) :]]), 1)
    citation = cited(Part("", 0, (piece,)), {"quote": "amount of USD 5.00"}, quote=QUOTE)["/quote"]
    assert citation.text == "amount of\nUSD 5.00"
    assert (citation.bbox.y0, citation.bbox.y1) == (100, 132)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 9), st.integers(0, 9))
def test_a_value_inside_its_evidence_is_cited_there_wherever_else_it_stands(wanted: int, other: int) -> None:
    lines = [f"line {chr(97 + i)} has 42.00 in it" for i in range(10)]
    quote = f"line {chr(97 + wanted)} has 42.00"
    lines[other] += " and 42.00 once more"
    found = cited(part_of(*lines), {"amount": "42.00", "evidence": quote}, amount=AMOUNT, evidence=QUOTE)
    assert found["/amount"].bbox.y0 == 100 + 20 * wanted
