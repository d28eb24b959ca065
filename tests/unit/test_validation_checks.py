"""Cells, identifiers, statutes, twins, repetition, the prompt: each check finds its fault and leaves what is right."""

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from stdnum.cn import ric, uscc

from docmill.errors import BrokenRule
from validation.examples import extracted, typed
from validation.rules import load_ruleset, load_rulesets
from validation.statutes import known_statutes, statutes_in
from validation.validate import validate

COMMON = load_rulesets()["common"]
NUMBER, TEXT, ID = {"x-source": "number"}, {"type": "string"}, {"x-source": "id"}


def rules(document: str, result: dict[str, Any], schema: dict[str, Any], **told: Any) -> set[str]:
    properties = {"properties": schema}
    verdict = validate(extracted(result, ()), typed(document), schema=properties, ruleset=COMMON, **told)
    return {finding.rule for finding in verdict.findings}


# ---------------------------------------------------------------- the right cell

YEARS = "Item | 2024 | 2023\nNet profit | 8,100 | 9,300\nCost of sales | 9,300 | 7,000"
ITEM = {"items": {"items": {"properties": {"label": {"x-source": "verbatim"}, "period": TEXT, "amount": NUMBER}}}}


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("net_profit_2024", "8,100", set()),
        ("net_profit_2024", "9,300", {"number-period"}),
        ("net_profit_2023", "9,300", set()),
        ("cost_2024", "9,300", set()),
        ("cost_2023", "9,300", {"number-period"}),
        ("net_profit", "7,000", {"number-row"}),
        ("something_else", "7,000", set()),
    ],
)
def test_a_fields_name_says_which_cell_is_meant(field: str, value: str, expected: set[str]) -> None:
    assert rules(YEARS, {field: value}, {field: NUMBER}) == expected


@pytest.mark.parametrize(
    ("period", "amount", "expected"),
    [("2024", "8,100", set()), ("2023", "9,300", set()), ("2024", "9,300", {"number-period"}),
     ("2022", "9,300", {"number-in-prose"}), ("", "9,300", set())],
)  # fmt: skip
def test_a_period_beside_the_amount_says_which_column_is_meant(period: str, amount: str, expected: set[str]) -> None:
    result = {"items": [{"label": "Net profit", "period": period, "amount": amount}]}
    assert rules(YEARS, result, ITEM) == expected


def test_figures_typed_under_years_have_columns_too() -> None:
    lines = "项目        2024年      2023年\n净利润      8,100.00    9,300.00"
    assert rules(lines, {"net_profit_2024": "8,100.00"}, {"net_profit_2024": NUMBER}) == set()
    assert rules(lines, {"net_profit_2024": "9,300.00"}, {"net_profit_2024": NUMBER}) == {"number-period"}


# ---------------------------------------------------------------- identifiers


def with_check_digit(kind: Any, body: str) -> str:
    return body + kind.calc_check_digit(body + "0")


CARD, CODE = with_check_digit(ric, "11010519491231002"), "91110000600037341L"


def wrong(number: str) -> str:
    return number[:-1] + ("1" if number[-1] != "1" else "2")


@pytest.mark.parametrize(
    ("label", "number"),
    [("身份证号码", CARD), ("统一社会信用代码", CODE), ("IBAN", "GB82WEST12345698765432"),
     ("LEI", "213800KUD8LAJWSQ9D15"), ("卡号", "4111111111111111")],
)  # fmt: skip
def test_a_check_digit_is_asked_for_beside_the_label_of_its_kind(label: str, number: str) -> None:
    assert uscc.is_valid(CODE)
    assert rules(f"{label}：{number}", {"x": number}, {"x": ID}) == set()
    assert rules(f"{label}：{wrong(number)}", {"x": wrong(number)}, {"x": ID}) == {"id-check-digit"}


@pytest.mark.parametrize(("label", "number"), [("Order", "4111111111111112"), ("身份证号码", "990102197611052336")])
def test_an_unknown_kind_and_a_specimen_have_no_check_digit(label: str, number: str) -> None:
    assert rules(f"{label}：{number}", {"x": number}, {"x": ID}) == set()


# ---------------------------------------------------------------- statutes


@pytest.mark.parametrize(
    ("text", "day", "doubted"),
    [
        ("《反洗钱法》第二十条", None, False),
        ("《中华人民共和国反洗钱法》第六十五条", None, False),
        ("《反洗钱法》第六十六条", None, True),
        ("《反洗钱法》第六十条", date(2020, 1, 1), True),
        ("《反洗钱法》第六十条", date(2024, 12, 1), False),
        ("《合同法》第五十二条", date(2019, 1, 1), False),
        ("《合同法》第五十二条", date(2023, 1, 1), True),
        ("《刑法》第一百九十一条之一", None, False),
        ("根据反洗钱法第二十条", None, False),
        ("根据反洗钱法第九十条", None, True),
        ("跨境金融诚信法第十二条", None, True),
        ("依照本办法第三条", None, False),
        ("《2024年年度报告》", None, False),
        ("31 CFR 1020.320", None, False),
        ("31 CFR § 1020.999", None, True),
        ("31 CFR Part 1987", None, True),
        ("77 CFR 1020", None, True),
        ("31 U.S.C. § 5318(g)", None, False),
        ("Article 92 of Regulation (EU) No 575/2013", None, False),
        ("Article 592 of Regulation (EU) No 575/2013", None, True),
        ("Directive (EU) 2015/849, Article 70", None, True),
    ],
)
def test_a_citation_is_held_against_the_table_of_its_day(text: str, day: date | None, doubted: bool) -> None:
    reasons = [known_statutes().doubt(citation, day) for citation in statutes_in(text)]
    assert any(reasons) == doubted


OWN = """
name: mine
version: "1"
extends: [common]
rules:
  - id: statute-invented
    severity: review
    check: terms.statutes
    with: {table: own.yaml}
    message: {en: "{text} {detail}", zh: "{text} {detail}"}
"""


def test_a_table_of_ones_own_adds_to_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("laws:\n  某行授信管理办法: [{articles: 40, from: 2020-01-01}]\n", "utf-8")
    (tmp_path / "mine.yaml").write_text(OWN, "utf-8")
    mine = load_ruleset(tmp_path / "mine.yaml")
    for said, finds in (
        ("见《某行授信管理办法》第四十条。", 0),
        ("见《某行授信管理办法》第四十一条。", 1),
        ("见《反洗钱法》第一条。", 0),
    ):
        verdict = validate(extracted({"note": said}, ()), typed("x"), schema={}, ruleset=mine)
        assert len(verdict.findings) == finds


@pytest.mark.parametrize(
    ("table", "reason"),
    [("laws: {某法: [{articles: many, from: 2020-01-01}]}", "'many' is not of type 'integer'"),
     ("laws: [", "while parsing"), (None, "No such file")],
)  # fmt: skip
def test_a_broken_table_is_a_broken_rule_with_file_line_and_reason(
    tmp_path: Path, table: str | None, reason: str
) -> None:
    if table is not None:
        (tmp_path / "own.yaml").write_text(table, "utf-8")
    (tmp_path / "mine.yaml").write_text(OWN, "utf-8")
    with pytest.raises(BrokenRule, match=f"mine.yaml, line 6, rule statute-invented: with: table: own.yaml.*{reason}"):
        load_ruleset(tmp_path / "mine.yaml")


# ---------------------------------------------------------------- said twice


@pytest.mark.parametrize(
    ("figures", "words", "differ"),
    [
        ("200,000,000.00", "贰亿元整", False),
        ("1,503,000.00", "壹佰零伍万叁仟元整", True),
        ("12.50", "壹拾贰元伍角整", False),
    ],
)
def test_an_amount_and_its_capitals_say_the_same(figures: str, words: str, differ: bool) -> None:
    schema = {"amount": NUMBER, "amount_cn": NUMBER}
    apart = f"金额 {figures} 元\n大写金额：{words}"
    assert rules(apart, {"amount": figures, "amount_cn": words}, schema) == ({"twins-differ"} if differ else set())
    beside = f"金额 {figures} 元（大写：{words}）"
    assert rules(beside, {"amount": figures}, {"amount": NUMBER}) == ({"words-differ"} if differ else set())


@pytest.mark.parametrize(
    ("chinese", "english", "differ"),
    [
        ("逾期528万元，到期日2024年3月1日。", "5.28 million yuan fell due on 1 March 2024.", False),
        ("逾期528万元。", "5.82 million yuan are overdue.", True),
        ("共三笔。", "There were 3.", False),
    ],
)
def test_two_languages_state_the_same_figures(chinese: str, english: str, differ: bool) -> None:
    document = "逾期528万元，余额582万元，到期日2024年3月1日"
    schema = {"summary_zh": TEXT, "summary_en": TEXT}
    found = rules(document, {"summary_zh": chinese, "summary_en": english}, schema)
    assert found == ({"twins-differ"} if differ else set())


@pytest.mark.parametrize(
    ("text", "doubled"),
    [("high or high", True), ("The risk is low/low.", True), ("较高或较高", True), ("现金或现金等价物", False),
     ("high or higher", False), ("more and more", False), ("and/or", False), ("3/3 passed", False)],
)  # fmt: skip
def test_two_alternatives_that_are_one_are_found(text: str, doubled: bool) -> None:
    assert rules("x", {"note": text}, {"note": TEXT}) == ({"repetition-alternatives"} if doubled else set())


# ---------------------------------------------------------------- the prompt, the end of the answer


def test_a_value_of_the_prompts_example_is_named_as_such() -> None:
    schema = {"company": {"x-source": "verbatim"}}
    prompt = ['{"company": "示例科技有限公司"}']
    assert rules("甲公司", {"company": "示例科技有限公司"}, schema, prompt=prompt) == {
        "text-ungrounded",
        "example-leaked",
    }
    assert rules("甲公司", {"company": "乙公司"}, schema, prompt=prompt) == {"text-ungrounded"}
    assert rules("示例科技有限公司", {"company": "示例科技有限公司"}, schema, prompt=prompt) == set()


@pytest.mark.parametrize(
    ("reason", "raw", "cut"),
    [("stop", '{"a": 1}', False), ("length", '{"a": 1}', True), ("stop", '{"a": 12', True), ("stop", "", False)],
)
def test_an_answer_that_was_cut_off_is_rejected(reason: str, raw: str, cut: bool) -> None:
    extraction = replace(extracted({}, (), finish_reason=reason), raw=raw)
    verdict = validate(extraction, typed("x"), schema={}, ruleset=COMMON)
    assert [finding.rule for finding in verdict.findings] == ["result-cut-off"] * cut
