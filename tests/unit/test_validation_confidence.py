"""Confidence: each kind of evidence moves it the way that it should, and calibration is what it says."""

from __future__ import annotations

import re
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Citation, PreparedDocument
from validation.confidence import WEIGHTS, Evidence, calibrate, confidence, confirmed, with_confidence
from validation.examples import cite, extracted, typed
from validation.facts import facts_of
from validation.rules import load_rulesets
from validation.validate import validate

WORDS = {"type": "string", "x-source": "verbatim"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "balance": {"type": ["string", "null"], "x-source": "number", "x-labels": ["balance"]},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"label": WORDS, "amount": {**WORDS, "x-source": "number"}}},
        },
        "words": {"type": "string"},
    },
}
DOCUMENT = typed(
    "Balance: 7,654.00\nLimit: 9,000.00\nFee 15.00 and once more 15.00",
    "Item | 2024 | 2023\nCash | 1,204.50 | 900.00\nLoans | 2,311.25 | 1,900.00\nOther | 400.00 | 77.00"
    "\nTotal | 3,915.75 | 2,000.00",
)


def sure(
    result: dict[str, Any], document: PreparedDocument = DOCUMENT, cited: dict[str, str] | None = None, **more: Any
) -> dict[str, float | None]:
    citations: tuple[Citation, ...] = tuple(cite(result, SCHEMA, facts_of(document), cited or {}))
    read = extracted(result, citations)
    verdict = validate(read, document, schema=SCHEMA, ruleset=load_rulesets()["common"])
    return {value.path: value.confidence for value in with_confidence(verdict, read, document, SCHEMA, **more).fields}


def of(amount: str, label: str) -> float:
    found = sure({"rows": [{"label": label, "amount": amount}]})["/rows/0/amount"]
    assert found is not None
    return found


def test_a_value_beside_its_label_is_surer_than_one_beside_another() -> None:
    right, wrong = (sure({"balance": value})["/balance"] or 0 for value in ("7,654.00", "9,000.00"))
    assert right > 0.9
    assert wrong < 0.5


def test_a_cell_in_the_row_of_its_label_is_surer_than_one_of_another_row() -> None:
    assert of("1,204.50", "Cash") > 0.8 > 0.5 > of("2,311.25", "Cash")


def test_a_value_that_is_not_in_the_document_is_hardly_right() -> None:
    assert (sure({"balance": "7,654.01"})["/balance"] or 0) < 0.05


def test_what_is_not_copied_from_the_document_has_no_confidence() -> None:
    assert sure({"balance": None, "words": "all is well"}) == {"/balance": None, "/words": None}


def test_a_doubtful_reading_of_the_place_makes_a_value_less_sure() -> None:
    page = DOCUMENT.pages[0]
    blurred = replace(page, blocks=tuple(replace(block, confidence=0.6) for block in page.blocks))
    document = replace(DOCUMENT, pages=(blurred, DOCUMENT.pages[1]))
    clear, doubtful = (sure({"balance": "7,654.00"}, one)["/balance"] or 0 for one in (DOCUMENT, document))
    assert doubtful < clear


def test_unlikely_tokens_make_a_value_less_sure() -> None:
    likely = sure({"balance": "7,654.00"}, logprobs={"/balance": -0.01})["/balance"] or 0
    assert (sure({"balance": "7,654.00"}, logprobs={"/balance": -2.5})["/balance"] or 0) < likely


def test_cells_that_make_a_printed_sum_are_confirmed_and_no_others() -> None:
    (grid,) = facts_of(DOCUMENT).grids.values()
    assert set(confirmed(grid)) == {(row, 1) for row in range(1, 5)}


@pytest.mark.parametrize("name", [one.name for one in fields(Evidence)])
def test_every_kind_of_evidence_has_a_weight_and_moves_confidence_the_way_of_its_sign(name: str) -> None:
    weight = getattr(WEIGHTS, name)
    with_it, without = confidence(Evidence(**{name: 1.0})), confidence(Evidence())
    assert (with_it > without) == (weight > 0)
    assert (with_it < without) == (weight < 0)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1))
def test_bins_hold_every_value_once_and_the_error_is_a_share(scored: list[tuple[float, bool]]) -> None:
    found = calibrate(scored)
    assert sum(one.count for one in found.bins) == len(scored)
    assert 0 <= found.error <= 1
    assert all(one.low <= one.confidence <= one.high + 1e-9 for one in found.bins)


def test_confidence_that_is_as_often_right_as_it_says_has_no_error() -> None:
    assert calibrate([(0.75, True)] * 3 + [(0.75, False)]).error == 0
    assert calibrate([(1.0, False)]).error == 1
    with pytest.raises(ValueError, match="no values"):
        calibrate([])


def test_the_weights_in_the_documentation_are_those_in_the_code() -> None:
    text = (Path(__file__).parents[2] / "docs" / "confidence.md").read_text("utf-8")
    told = re.findall(r"^\| `(\w+)` \|.*\| (−?[\d.]+)(?: \(set\))? \|$", text, re.MULTILINE)
    assert {name: float(weight.replace("−", "-")) for name, weight in told} == asdict(WEIGHTS)
