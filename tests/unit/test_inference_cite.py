"""A value is cited where it stands; of several places, at the one that its neighbours point to."""

from typing import Any

import pytest

from docmill.types import Citation, Part, Piece, Printed
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
