"""The judge of bench.grounding: what it calls printed, invented and boxed, from the characters of a page alone."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from bench.grounding_check import Sheet, Value, is_printed, judged, sheet_of
from bench.grounding_corpus import Planted, documents
from docmill.types import BBox, Citation

PAGE = "Loan amount  USD 5,280,000.00 and\n5.5% to Harbour Trading\nLimited 人民币1,234.50元 LN-2024-1234 on 3 May 2024"


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("5,280,000.00", True),
        ("280,000.00", False),
        ("5,280,000", False),
        ("5.5%", True),
        ("Harbour Trading Limited", True),
        ("Harbour Trad", False),
        ("1,234.50", True),
        ("234.50", False),
        ("人民币", True),
        ("人民", True),
        ("", False),
    ],
)
def test_a_piece_of_a_number_or_word_is_not_printed_a_piece_of_chinese_text_is(value: str, printed: bool) -> None:
    assert is_printed(value, PAGE) is printed


@pytest.fixture(scope="module")
def planted() -> Planted:
    return next(one for one in documents(4) if one.profile == "loan-parties" and one.language == "en")


@pytest.fixture(scope="module")
def sheet(planted: Planted) -> Sheet:
    return sheet_of(planted.data)


def test_every_document_prints_what_it_is_said_to() -> None:
    for one in documents(8):
        page = sheet_of(one.data).text
        assert [name for name, truth in one.truth.items() if truth is not None and not is_printed(truth, page)] == []


def test_the_corpus_is_half_chinese_and_the_same_each_time() -> None:
    first, again = list(documents(8)), list(documents(8))
    assert first == again
    assert [one.language for one in first] == ["en", "zh"] * 4


def judge(planted: Planted, sheet: Sheet, *citations: Citation, **result: str | None) -> dict[str, Value]:
    kinds = {"company": "verbatim", "contract": "id", "rate": "number", "item": "enum-of-table-column"}
    schema: dict[str, Any] = {"properties": {name: {"x-source": kind} for name, kind in kinds.items()}}
    extraction = SimpleNamespace(result={**dict.fromkeys(kinds), **result}, citations=citations)
    return {value.kind: value for value in judged(extraction, schema, planted, sheet)}  # type: ignore[arg-type]  # only these two are looked at


def test_the_right_value_is_right_and_a_look_alike_is_invented(planted: Planted, sheet: Sheet) -> None:
    right = judge(planted, sheet, **planted.truth)
    assert all(value.right and not value.invented and not value.unprinted for value in right.values())
    wrong = judge(planted, sheet, contract="LN-2024-0001", rate="99.99%", company="Harbour Bank")
    assert all(wrong[kind].invented and not wrong[kind].right for kind in ("id", "number", "verbatim"))


def test_another_spelling_of_what_is_printed_is_not_invented(planted: Planted, sheet: Sheet) -> None:
    number = judge(planted, sheet, rate=f" {(planted.truth['rate'] or '').removesuffix('%')}0 %")["number"]
    assert (number.unprinted, number.invented) == (True, False)


def test_a_box_must_hold_the_value_and_nothing_else(planted: Planted, sheet: Sheet) -> None:
    contract = planted.truth["contract"] or ""
    text = "".join(character for _, character, _ in sheet.characters)
    boxes = [box for _, _, box in sheet.characters][text.index(contract) :][: len(contract)]
    whole = Citation("/contract", contract, 1, BBox(boxes[0].x0, boxes[0].y0, boxes[-1].x1, boxes[-1].y1))
    short = replace(whole, bbox=whole.bbox._replace(x1=boxes[-2].x1))
    assert judge(planted, sheet, whole, contract=contract)["id"].boxed
    assert not judge(planted, sheet, short, contract=contract)["id"].boxed
    assert not judge(planted, sheet, contract=contract)["id"].boxed
