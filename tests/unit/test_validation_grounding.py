"""A number of a result against the printed one: another style is the same number, another size, sign or unit is not."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.types import PreparedDocument
from validation.examples import extracted, typed
from validation.facts import facts_of, measure
from validation.fields import Leaf
from validation.grid import Frame, Grid, stated
from validation.grounding import Ground, Grounding, ground
from validation.rules import load_rulesets
from validation.validate import validate

few = settings(max_examples=15, database=None, deadline=None)

TABLE = "项目 | 2024年 | 毛利率（%）\n营业收入 | 12,345.60 | 23.4\n净亏损 | (2,468.50) | 5.1"


def in_scale(scale: int, unit: str = "CNY", text: str = TABLE) -> PreparedDocument:
    document = typed(text)
    block = document.pages[0].blocks[0]
    assert block.table is not None
    table = replace(block.table, scale=Decimal(scale), unit=unit)
    return replace(document, pages=(replace(document.pages[0], blocks=(replace(block, table=table),)),))


def standing(value: Any, document: PreparedDocument, source: str = "number") -> Grounding:
    return ground(Leaf("/x", value, source), facts_of(document))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("12,345.60", Ground.FOUND),
        ("12345.6", Ground.FOUND),
        (12345.6, Ground.FOUND),
        ("12,345.60万元", Ground.FOUND),
        ("123,456,000元", Ground.FOUND),
        ("123456000", Ground.FOUND),
        ("人民币1.23456亿元", Ground.FOUND),
        ("约1.23456亿元", Ground.FOUND),
        ("12,345.60元", Ground.SCALE),
        ("12,345.60亿元", Ground.SCALE),
        ("1,234.56", Ground.SCALE),
        ("-12,345.60", Ground.SIGN),
        ("€12,345.60", Ground.UNIT),
        ("12,345.60%", Ground.UNIT),
        ("12,345.61", Ground.ABSENT),
        ("-2,468.50", Ground.FOUND),
        ("2,468.50-", Ground.FOUND),
        ("负2,468.50万元", Ground.FOUND),
        ("2,468.50", Ground.SIGN),
        ("23.4%", Ground.FOUND),
        ("0.234", Ground.FOUND),
        ("234‰", Ground.FOUND),
        ("23.4万元", Ground.SCALE),
        ("2.34", Ground.SCALE),
        ("viel", Ground.UNREADABLE),
    ],
)
def test_a_value_against_a_cell_in_ten_thousands(value: Any, expected: Ground) -> None:
    assert standing(value, in_scale(10_000)).ground == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("4,400.00万元", Ground.FOUND),
        ("44,000,000", Ground.FOUND),
        ("肆仟肆佰万元整", Ground.FOUND),
        ("four thousand four hundred", Ground.SCALE),
        ("4,400.00", Ground.BARE),
        ("440,000.00", Ground.SCALE),
        ("4.35%", Ground.FOUND),
        ("435bps", Ground.FOUND),
        ("0.435", Ground.SCALE),
        ("3%-5%", Ground.FOUND),
        ("3至5%", Ground.FOUND),
        ("3%-6%", Ground.ABSENT),
    ],
)
def test_a_value_against_running_text(value: str, expected: Ground) -> None:
    document = typed("授信余额为 4,400.00 万元，利率4.35%，浮动区间3%至5%。")
    assert standing(value, document).ground == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1.234,56", Ground.FOUND), ("1,234.56", Ground.FOUND), ("27.80", Ground.FOUND), ("2780", Ground.SCALE),
     ("5.000", Ground.FOUND), ("5000", Ground.FOUND), ("5", Ground.SCALE)],
)  # fmt: skip
def test_a_document_that_parts_decimals_with_a_comma_is_read_so(value: str, expected: Ground) -> None:
    assert standing(value, typed("Rechnungsbetrag 1.234,56 EUR\nVersand 27,80 EUR\nMenge 5.000")).ground == expected


@pytest.mark.parametrize(
    ("label", "frame"),
    [
        ("金额(万元)", Frame(Decimal(10_000), "CNY")),
        ("Revenue (in millions)", Frame(Decimal(10**6), None)),
        ("RMB'000", Frame(Decimal(1000), None)),
        ("占比(%)", Frame(None, "%")),
        ("户数(户)", Frame(None, "户")),
        ("营业收入", None),
        ("净利润(亏损以“-”号填列)", None),
    ],
)
def test_a_label_states_its_scale_and_unit(label: str, frame: Frame | None) -> None:
    assert stated(label) == frame


def test_a_column_that_states_a_scale_has_that_one_and_a_count_has_none() -> None:
    (table,) = in_scale(1000, text="Item | Amount (in millions) | Number of loans\nLoans | 5.2 | 17").tables
    assert (Grid(table).frame(1, 1).scale, Grid(table).frame(1, 2).scale) == (10**6, None)


def test_where_a_value_stands_in_several_places_all_are_known() -> None:
    grounding = standing("5,280", typed("Overdue 5,280 of 91,000\nDue | 5,280"))
    assert len(grounding.places) == 2


def test_an_order_of_magnitude_that_was_left_out_is_put_on_the_stored_value() -> None:
    schema = {"properties": {"amount": {"x-source": "number"}}}
    document = typed("余额4,400.00万元")
    verdict = validate(
        extracted({"amount": "4,400.00"}, ()), document, schema=schema, ruleset=load_rulesets()["common"]
    )
    assert [finding.rule for finding in verdict.findings] == ["number-scale-left-out"]
    assert verdict.fields[0].value == 44_000_000


@few
@given(
    st.decimals(min_value=Decimal("100.01"), max_value=Decimal("9999.99"), places=2),
    st.sampled_from([1000, 10**4, 10**6, 10**8]),
    st.sampled_from(["{:,.2f}", "{:.2f}", "({:,.2f})"]),
)
def test_a_table_gives_its_scale_to_a_value_once_however_it_is_written(number: Decimal, scale: int, style: str) -> None:
    printed = style.format(number)
    signed = -number if printed.startswith("(") else number
    document = in_scale(scale, text=f"Item | Amount\nLoans | {printed}")
    schema = {"properties": {"amount": {"x-source": "number"}}}
    for written in (printed, f"{signed:f}", f"{signed * scale:,.2f}"):
        verdict = validate(
            extracted({"amount": written}, ()), document, schema=schema, ruleset=load_rulesets()["common"]
        )
        assert (verdict.findings, verdict.fields[0].value) == ((), signed * scale)


def test_the_facts_of_a_document_are_measured_once() -> None:
    document = typed("x 1,234")
    assert facts_of(document) is facts_of(document)
    assert measure(document) is not facts_of(document)
