"""What must add up in a table is found from the table; one slip is reported, a parser's loss or an average is not."""

from decimal import Decimal
from typing import Any

import pytest

from validation.examples import extracted, typed
from validation.rules import load_rulesets
from validation.sums import one_slip
from validation.validate import validate

SUMS = {"total-differs", "roll-differs", "identity-differs", "share-differs"}
SCHEMA = {"properties": {"amount": {"x-source": "number"}}}


def found(document: str, amount: str) -> list[tuple[str, str | None]]:
    verdict = validate(
        extracted({"amount": amount}, ()), typed(document), schema=SCHEMA, ruleset=load_rulesets()["common"]
    )
    return [(finding.rule, finding.path) for finding in verdict.findings if finding.rule in SUMS]


@pytest.mark.parametrize(
    ("document", "amount", "rule"),
    [
        ("Item | Sum\nA | 100.00\nB | 250.00\nTotal | 360.00", "250.00", "total-differs"),
        ("项目 | 金额\n贷款 | 1,000.00\n债券 | 2,500.00\n合计 | 35,000.00", "35,000.00", "total-differs"),
        ("Item | 2024 | 2023\nA | 100 | 310\nB | 250 | 420\nSubtotal | 350 | 740\nC | 5 | 6", "740", "total-differs"),
        ("Item | North | South | Total\nA | 120 | 130 | 250\nB | 210 | 220 | 430\nC | 310 | 300 | 601", "601",
         "total-differs"),
        ("Item | Opening | Additions | Disposals | Closing\nA | 1,200 | 300 | 100 | 1,400\nB | 500 | 50 | 20 | 580",
         "580", "roll-differs"),
        ("项目 | 2024年\n资产总计 | 9,000.00\n负债合计 | 5,000.00\n所有者权益合计 | 3,000.00", "9,000.00",
         "identity-differs"),
        ("项目 | 2024年\n经营活动产生的现金流量净额 | 500\n投资活动产生的现金流量净额 | (200)\n"
         "筹资活动产生的现金流量净额 | (100)\n现金及现金等价物净增加额 | 300", "300", "identity-differs"),
        ("Item | Sum | Share\nA | 250 | 25.0%\nB | 300 | 30.0%\nC | 50 | 5.0%\nD | 400 | 49.0%\nTotal | 1,000 | ",
         "49.0%", "share-differs"),
    ],
)  # fmt: skip
def test_one_slip_is_found_and_names_the_field(document: str, amount: str, rule: str) -> None:
    assert (rule, "/amount") in found(document, amount)


@pytest.mark.parametrize(
    ("document", "amount"),
    [
        ("Item | Sum\nA | 100.00\nB | 250.00\nTotal | 350.00", "350.00"),
        # Rounded addends: half of the last digit for each.
        ("Item | Sum\nA | 33.3\nB | 33.3\nC | 33.3\nTotal | 100.0", "100.0"),
        # A row that the parser lost is no slip.
        ("Item | Sum\nA | 1,100.00\nB | 250.50\nTotal | 9,377.25", "250.50"),
        # The total of a column of rates is an average.
        ("Item | Sum | Rate\nA | 1,000 | 4.0%\nB | 3,000 | 5.0%\nTotal | 4,000 | 4.8%", "4.8%"),
        ("Item | Sum | Price\nA | 1,000 | 12.50\nB | 3,000 | 13.70\nTotal | 4,000 | 13.40", "13.40"),
        # "Of which" is no addend.
        ("Item | Sum\nLoans | 1,000\nof which overdue | 300\nBonds | 500\nTotal | 1,500", "1,500"),
        ("项目 | 期末 | 期初\n资产总计 | 9,000.00 | 8,000.00\n负债合计 | 5,000.00 | 4,500.00\n"
         "所有者权益合计 | 4,000.00 | 3,500.00",
         "9,000.00"),
        ("No table: total 12, of which 5 and 8.", "12"),
    ],
)  # fmt: skip
def test_what_adds_up_and_what_need_not_is_silent(document: str, amount: str) -> None:
    assert found(document, amount) == []


def test_a_table_that_the_result_takes_nothing_from_is_not_judged() -> None:
    document = "Item | Sum\nA | 100.00\nB | 250.00\nTotal | 360.00\n\nThe fee was 77.25."
    assert found(document, "77.25") == []


@pytest.mark.parametrize(
    ("printed", "expected", "slip"),
    [("100", "-100", True), ("1,000", "100", True), ("1,234", "1,243", True), ("1,234", "1,334", True),
     ("1,234", "2,345", False), ("12", "120.5", False), ("0", "5", False), ("1.5", "1.50", True)],
)  # fmt: skip
def test_a_slip_is_a_sign_a_power_of_ten_a_digit_or_two_neighbours(printed: str, expected: str, slip: bool) -> None:
    assert one_slip(Decimal(printed.replace(",", "")), Decimal(expected.replace(",", ""))) == slip


RULES = """
name: mine
version: "1"
rules:
  - id: sum
    severity: review
    check: arithmetic.sums
    with: {total: /total, plus: ["/rows/*/amount"], minus: [/rebate]}
    message: {en: "{text} is not {detail}", zh: "{text}不等于{detail}"}
"""


@pytest.mark.parametrize(("total", "finds"), [("345.00", 0), ("350.00", 1), (None, 0)])
def test_a_rule_may_ask_for_a_sum_of_fields(total: Any, finds: int, tmp_path: Any) -> None:
    (tmp_path / "mine.yaml").write_text(RULES, "utf-8")
    result = {"total": total, "rows": [{"amount": "100.00"}, {"amount": "250.00"}], "rebate": "5.00"}
    verdict = validate(extracted(result, ()), typed("x"), schema={}, ruleset=load_rulesets(tmp_path)["mine"])
    assert len(verdict.findings) == finds
