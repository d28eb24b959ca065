"""Dates in English and Chinese; what print does not settle says so."""

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validation.dates import parse_date, scan_dates

#: Many draws of one style show no more than a few do.
few = settings(max_examples=10, database=None)
DAY = date(2024, 3, 15)


@pytest.mark.parametrize(
    "text",
    [
        "2024-03-15",
        "2024/3/15",
        "2024.03.15",
        "20240315",
        "2024年3月15日",
        "2024 年 3 月 15 日",
        "２０２４年３月１５日",
        "二〇二四年三月十五日",
        "15 March 2024",
        "15th of March, 2024",
        "15-Mar-2024",
        "15-Mar-24",
        "March 15, 2024",
        "Mar. 15 2024",
        "15/03/2024",
        "03/15/2024",
        "15.03.2024",
    ],
)
def test_a_day_is_read_in_every_style(text: str) -> None:
    dated = parse_date(text)
    assert dated is not None and dated.day == DAY and not dated.ambiguous


def test_a_date_that_may_be_two_days_has_both_readings_and_no_day() -> None:
    dated = parse_date("03/04/2024")
    assert dated is not None and dated.ambiguous and dated.day is None
    assert set(dated.readings) == {date(2024, 4, 3), date(2024, 3, 4)}


def test_the_same_number_for_day_and_month_is_not_ambiguous() -> None:
    dated = parse_date("05/05/2024")
    assert dated is not None and dated.day == date(2024, 5, 5)


@pytest.mark.parametrize("text", ["March 2024", "2024年3月", "二〇二四年三月"])
def test_a_month_is_a_period_without_a_day(text: str) -> None:
    dated = parse_date(text)
    assert dated is not None and dated.month == (2024, 3) and dated.day is None and not dated.impossible


@pytest.mark.parametrize("text", ["2024-02-30", "31 April 2024", "2023年2月29日", "2024年13月"])
def test_a_day_that_no_calendar_has_is_impossible(text: str) -> None:
    dated = parse_date(text)
    assert dated is not None and dated.impossible


@pytest.mark.parametrize("text", ["", "may", "1234", "1.2.3", "2024", "15 marches 2024", "10-20"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert parse_date(text) is None


def test_all_dates_of_a_text_are_found_where_they_stand() -> None:
    text = "Signed on 1 May 2024,自2024年6月1日起, until 2025-06-01; page 3/4, version 1.2.3."
    assert [text[dated.start : dated.stop] for dated in scan_dates(text)] == [
        "1 May 2024",
        "2024年6月1日",
        "2025-06-01",
    ]


STYLES = {
    "iso": "{0:%Y-%m-%d}",
    "chinese": "{0.year}年{0.month}月{0.day}日",
    "english": "{0.day} {0:%B} {0.year}",
    "american": "{0:%B} {0.day}, {0.year}",
    "short": "{0.day}-{0:%b}-{0.year}",
    "german": "{0.day}.{0.month}.{0.year}",
}


@pytest.mark.parametrize("style", STYLES)
@few
@given(day=st.dates(min_value=date(1900, 1, 1), max_value=date(2099, 12, 31)))
def test_a_formatted_date_is_read_back(style: str, day: date) -> None:
    dated = parse_date(STYLES[style].format(day))
    assert dated is not None
    assert dated.day == day
