"""Quarters, halves, fiscal years and relative dates, in both languages."""

from datetime import date

import pytest

from validation.columns import heading_of
from validation.dates import parse_date, scan_dates
from validation.examples import typed
from validation.facts import facts_of
from validation.fields import Leaf
from validation.grounding import Ground, ground
from validation.periods import Period, ended, parse_period
from validation.relative import document_date, resolve


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("Q3 2025", (2025, 7, 1), (2025, 9, 30)),
        ("3Q25", (2025, 7, 1), (2025, 9, 30)),
        ("2025 Q3", (2025, 7, 1), (2025, 9, 30)),
        ("third quarter of 2025", (2025, 7, 1), (2025, 9, 30)),
        ("2025年第三季度", (2025, 7, 1), (2025, 9, 30)),
        ("first half of 2024", (2024, 1, 1), (2024, 6, 30)),
        ("H2 2024", (2024, 7, 1), (2024, 12, 31)),
        ("2024年上半年", (2024, 1, 1), (2024, 6, 30)),
        ("FY2024", (2024, 1, 1), (2024, 12, 31)),
        ("fiscal year 2024", (2024, 1, 1), (2024, 12, 31)),
        ("2024年度", (2024, 1, 1), (2024, 12, 31)),
    ],
)
def test_a_period_has_its_first_and_last_day(text: str, first: tuple[int, ...], last: tuple[int, ...]) -> None:
    period = parse_period(text)
    assert period is not None and (period.first, period.last) == (date(*first), date(*last))


def test_a_fiscal_year_says_that_its_months_are_not_known() -> None:
    fiscal, calendar = parse_period("FY2024"), parse_period("2024年度")
    assert fiscal is not None and calendar is not None and (fiscal.fiscal, calendar.fiscal) == (True, False)


@pytest.mark.parametrize(
    ("before", "first"), [("six months ended ", date(2025, 1, 1)), ("year ended ", date(2024, 7, 1)), ("as of ", None)]
)
def test_the_words_before_a_date_make_a_period_of_it(before: str, first: date | None) -> None:
    period = ended(before, date(2025, 6, 30))
    assert (period.first if period else None) == first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yesterday", (date(2025, 3, 14), date(2025, 3, 14))),
        ("昨日", (date(2025, 3, 14), date(2025, 3, 14))),
        ("三日前", (date(2025, 3, 12), date(2025, 3, 12))),
        ("two weeks ago", (date(2025, 3, 1), date(2025, 3, 1))),
        ("one month ago", (date(2025, 2, 15), date(2025, 2, 15))),
        ("上月末", (date(2025, 2, 28), date(2025, 2, 28))),
        ("last quarter", (date(2024, 10, 1), date(2024, 12, 31))),
        ("去年", (date(2024, 1, 1), date(2024, 12, 31))),
        ("some day", None),
    ],
)
def test_a_relative_term_is_seen_from_the_documents_date(text: str, expected: tuple[date, date] | None) -> None:
    period = resolve(text, date(2025, 3, 15))
    assert (None if period is None else (period.first, period.last)) == expected


def test_the_date_that_a_document_gives_itself_goes_before_the_first_that_it_prints() -> None:
    facts = facts_of(typed("Founded on 1 May 1999\nReport date: 2025-03-15"))
    assert document_date(facts) == date(2025, 3, 15)


def test_a_date_that_the_document_says_relatively_is_found() -> None:
    facts = facts_of(typed("报告日期：2025年3月15日\n上月末余额为5,280万元"))
    assert ground(Leaf("/d", "2025-02-28", "date"), facts).ground == Ground.FOUND
    assert ground(Leaf("/d", "2025-02-27", "date"), facts).ground == Ground.ABSENT


@pytest.mark.parametrize(
    ("document", "value", "standing"),
    [
        ("Due 03/04/2024, paid 25/04/2024", "2024-04-03", Ground.FOUND),
        ("Due 03/04/2024, paid 25/04/2024", "2024-03-04", Ground.ABSENT),
        ("Due 03/04/2024, paid 04/25/2024", "2024-03-04", Ground.FOUND),
        ("Due 03/04/2024", "2024-03-04", Ground.FOUND),
        ("Due 03/04/2024", "2024-04-03", Ground.FOUND),
    ],
)
def test_the_other_dates_of_a_document_settle_which_is_the_month(document: str, value: str, standing: Ground) -> None:
    assert ground(Leaf("/d", value, "date"), facts_of(typed(document))).ground == standing


def test_a_quarter_is_found_in_another_language() -> None:
    facts = facts_of(typed("2025年第三季度报告"))
    assert ground(Leaf("/d", "Q3 2025", "date"), facts).ground == Ground.FOUND
    assert ground(Leaf("/d", "Q2 2025", "date"), facts).ground == Ground.ABSENT


@pytest.mark.parametrize(
    ("head", "wanted", "meets"),
    [
        ("2024年", "2024-12-31", True),
        ("2023年12月31日", "2024-12-31", False),
        ("September 30, 2025", "2025-09-30", True),
        ("June 30, 2025", "2025-09-30", False),
        ("Q3 2025", "Q2 2025", False),
        ("本期数", "2025-12-31", True),
        ("上年同期数", "2025-12-31", False),
    ],
)
def test_a_columns_head_is_of_a_period_or_not(head: str, wanted: str, meets: bool) -> None:
    one, other = heading_of(head, lambda: date(2025, 6, 1)), heading_of(wanted)
    assert one is not None and other is not None and one.meets(other) == meets


def test_a_head_without_a_period_is_of_none() -> None:
    assert heading_of("项目") is None


def test_a_month_is_a_period_and_no_day() -> None:
    dated = parse_date("2024年3月")
    assert dated is not None and dated.period == Period(date(2024, 3, 1), date(2024, 3, 31))
    assert [one.period is not None for one in scan_dates("in March 2024")] == [True]
