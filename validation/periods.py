"""Periods as they are printed: quarters, halves, fiscal and calendar years, "six months ended 30 June 2025".

A fiscal year (FY2024, 2024财年) is named by the year that it ends in; which months it covers only its company can say,
so without a stated year end it is taken for the calendar year and marked `fiscal`.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date
from typing import NamedTuple


class Period(NamedTuple):
    """First and last day."""

    first: date
    last: date
    fiscal: bool = False


_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4,
             "一": 1, "二": 2, "三": 3, "四": 4, "上": 1, "下": 2}  # fmt: skip
_COUNTS = {"three": 3, "six": 6, "nine": 9, "twelve": 12}
_ORDINAL = "first|second|third|fourth|1st|2nd|3rd|4th"
_Y = r"'?(?P<y{0}>(?:19|20)[0-9]{{2}}|[0-9]{{2}}(?![0-9]))"
_PERIOD = re.compile(
    rf"(?<![A-Za-z0-9])(?P<quarter>Q(?P<n1>[1-4])[\s,/-]*(?:FY|of)?\s*{_Y.format(1)}"
    rf"|(?P<n2>[1-4])Q\s?(?:FY)?{_Y.format(2)}|(?P<y3>(?:19|20)[0-9]{{2}})[\s/-]*Q(?P<n3>[1-4])(?![0-9])"
    rf"|(?P<n4>{_ORDINAL})[\s-]quarter(?:\s+of)?(?:\s+(?:fiscal|the))?(?:\s+year)?\s+(?P<y4>(?:19|20)[0-9]{{2}})"
    r"|(?P<y5>(?:19|20)[0-9]{2})\s?年度?第?(?P<n5>[一二三四1-4])季度?)"
    rf"|(?<![A-Za-z0-9])(?P<half>(?P<m1>{_ORDINAL})[\s-]half(?:\s+of)?\s+(?P<z1>(?:19|20)[0-9]{{2}})|H(?P<m2>[12])[\s-]*'?(?P<z2>(?:19|20)?[0-9]{{2}})(?![0-9])"
    r"|(?P<m3>[12])H\s?'?(?P<z3>(?:19|20)?[0-9]{2})(?![0-9])|(?P<z4>(?:19|20)[0-9]{2})\s?年(?P<m4>[上下])半年度?)"
    r"|(?<![A-Za-z0-9])(?P<fiscal>(?:FY\s?'?(?P<f1>(?:19|20)?[0-9]{2})|fiscal(?:\s+year)?\s+(?P<f2>(?:19|20)[0-9]{2})|(?P<f3>(?:19|20)[0-9]{2})\s?(?:年?财年|财政年度))(?![0-9]))"
    r"|(?<![0-9])(?P<annual>(?P<a1>(?:19|20)[0-9]{2})\s?年度?(?!\s?[0-9一二三四五六七八九十]+\s?[月季]|[上下第]))",
    re.IGNORECASE,
)
_LENGTH = re.compile(
    r"(?:(?P<count>three|six|nine|twelve|[0-9]{1,2})\s+months|(?P<unit>quarter|half[\s-]year|(?:fiscal\s+)?year))(?:\s+period)?\s+ended\s*$"
    r"|截至\s*$", re.IGNORECASE
)  # fmt: skip


def scan_periods(plain: str) -> Iterator[tuple[int, int, Period]]:
    """Every quarter, half and year of a text in half width."""
    for match in _PERIOD.finditer(plain):
        period = _READ[str(match.lastgroup)](match)
        yield match.start(), match.end(), period


def parse_period(plain: str) -> Period | None:
    """The period that the whole text is, or None."""
    match = _PERIOD.fullmatch(plain.strip())
    return _READ[str(match.lastgroup)](match) if match else None


def ended(before: str, last: date) -> Period | None:
    """The period that the words before a date make of it: "six months ended" 30 June 2025."""
    match = _LENGTH.search(before)
    if match is None or not (match["count"] or match["unit"]):
        return None
    count, unit = match["count"], (match["unit"] or "").lower()
    months = _COUNTS.get((count or "").lower()) or (int(count) if count else {"q": 3, "h": 6}.get(unit[:1], 12))
    year, month = divmod(last.year * 12 + last.month - months, 12)
    return Period(date(year, month + 1, 1), last)


def months(year: int, first: int, count: int) -> Period:
    """So many whole months."""
    last = first + count - 1
    return Period(date(year, first, 1), date(year, last, monthrange(year, last)[1]))


def _named(match: re.Match[str], letter: str) -> str:
    """The value of the one group letter1, letter2 … that was met."""
    groups = match.groupdict().items()
    return next(value for name, value in groups if name[0] == letter and name[1:].isdigit() and value)


def _year(text: str) -> int:
    return int(text) if len(text) == 4 else 2000 + int(text)


def _number(text: str) -> int:
    return _ORDINALS.get(text.lower()) or int(text)


_READ: dict[str, Callable[[re.Match[str]], Period]] = {
    "quarter": lambda match: months(_year(_named(match, "y")), 3 * _number(_named(match, "n")) - 2, 3),
    "half": lambda match: months(_year(_named(match, "z")), 6 * (_number(_named(match, "m")) - 1) + 1, 6),
    "fiscal": lambda match: months(_year(_named(match, "f")), 1, 12)._replace(fiscal=True),
    "annual": lambda match: months(_year(_named(match, "a")), 1, 12),
}
