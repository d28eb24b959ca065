"""Dates as they are printed, in English and Chinese, to days.

03/04/2024 may be either day: such a date has two readings and says so. A month (March 2024, 2024年3月) is a period and
has no day. Our own table: dateutil and dateparser guess what is missing from today's date, and a guess is no evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from validation.chinese import chinese_number
from validation.periods import Period, months, parse_period, scan_periods
from validation.text import half


@dataclass(frozen=True, slots=True)
class Dated:
    """A date in a text. `readings`: one day; two if print does not tell which is the month; none for a month or for
    a day that no calendar has (`impossible`)."""

    text: str
    start: int
    stop: int
    readings: tuple[date, ...]
    month: tuple[int, int] | None = None
    span: Period | None = None

    @property
    def day(self) -> date | None:
        """The day, if there is exactly one reading."""
        return self.readings[0] if len(self.readings) == 1 else None

    @property
    def ambiguous(self) -> bool:
        return len(self.readings) > 1

    def days(self, day_first: bool | None) -> tuple[date, ...]:
        """The readings that are left where it is known (or not) that the day comes first."""
        return self.readings if day_first is None or not self.ambiguous else (self.readings[not day_first],)

    @property
    def impossible(self) -> bool:
        return not self.readings and self.period is None

    @property
    def period(self) -> Period | None:
        """The months, quarter or year that it is, where it is no day."""
        return self.span or (months(*self.month, 1) if self.month else None)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?"
)
_ZH = "〇○零一二三四五六七八九"
#: Two-digit years from here on are of the last century, as POSIX has it.
_PIVOT = 69
_DATE = re.compile(
    rf"(?P<ymd>(?<![0-9.,/-])(?P<y1>[0-9]{{4}})(?P<sep>[-/.])(?P<m1>[0-9]{{1,2}})(?P=sep)(?P<d1>[0-9]{{1,2}})(?![0-9]))"
    rf"|(?P<zh>(?<![0-9])(?P<y2>[0-9]{{4}})\s?年\s?(?P<m2>[0-9]{{1,2}})\s?月(?:\s?(?P<d2>[0-9]{{1,2}})\s?[日号])?)"
    rf"|(?P<han>(?P<y3>[{_ZH}]{{4}})年(?P<m3>[{_ZH}十]{{1,3}})月(?:(?P<d3>[{_ZH}十]{{1,3}})[日号])?)"
    rf"|(?P<xxy>(?<![0-9.,/-])(?P<a>[0-9]{{1,2}})(?P<mark>[-/.])(?P<b>[0-9]{{1,2}})(?P=mark)(?P<y4>[0-9]{{4}})(?![0-9]))"
    rf"|(?P<dmy>(?<![0-9A-Za-z])(?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?[\s-]+(?:day\s+)?(?:of\s+)?(?P<m5>{_MONTH})\.?,?[\s-]+"
    rf"(?P<y5>[0-9]{{4}}|[0-9]{{2}}(?=[\s,;)]|$))(?![0-9]))"
    rf"|(?P<mdy>(?<![A-Za-z])(?P<m6>{_MONTH})\.?\s+(?P<d6>[0-9]{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y6>[0-9]{{4}})(?![0-9]))"
    rf"|(?P<my>(?<![A-Za-z])(?P<m7>{_MONTH})\.?,?\s+(?P<y7>[0-9]{{4}})(?![0-9]))"
    rf"|(?P<run>(?<![0-9A-Za-z.,/-])(?P<y8>(?:19|20)[0-9]{{2}})(?P<m8>0[1-9]|1[0-2])(?P<d8>[0-2][0-9]|3[01])(?![0-9A-Za-z/-]|[.,][0-9]))",
    re.IGNORECASE,
)
_XXY = re.compile("([0-9]{1,2})[-/]([0-9]{1,2})[-/][0-9]{4}")
#: Without one of these nothing is a date: what need not be scanned for dates is left out.
MAY_BE_DATE = re.compile("(?:19|20)[0-9]{2}|年|[A-Za-z][ -][0-9]{2}(?![0-9])")
_NEEDED = re.compile("[0-9]|年")
#: How each style begins: by digits that something of a date follows, by a month's three letters, by Chinese digits.
_WORD = re.compile(
    rf"[0-9JFMASONDjfmasond{_ZH}](?:(?<=[0-9])(?<![0-9][0-9])(?:[0-9]{{3}}(?=[-/.]|\s?年)|[0-9]{{7}}(?![0-9])"
    r"|[0-9]?(?=[-/.][0-9]|(?:[sS][tT]|[nN][dD]|[rR][dD]|[tT][hH])?[\s-]+[A-Za-z]))"
    rf"|(?<=[A-Za-z])(?<![A-Za-z][A-Za-z])[A-Za-z]{{2}}|(?<=[{_ZH}])[{_ZH}]{{3,}})"
)
#: Which groups hold year, month and day of each style.
_PARTS = {
    "ymd": ("y1", "m1", "d1"),
    "zh": ("y2", "m2", "d2"),
    "han": ("y3", "m3", "d3"),
    "dmy": ("y5", "m5", "d5"),
    "mdy": ("y6", "m6", "d6"),
    "my": ("y7", "m7", None),
    "run": ("y8", "m8", "d8"),
}


def parse_date(text: str) -> Dated | None:
    """The one date that the whole text is, or None."""
    text = text.strip()
    match = _DATE.fullmatch(half(text))
    if match:
        return _dated(match, text)
    period = parse_period(half(text))
    return Dated(text, 0, len(text), (), span=period) if period else None


def order_of(dates: Iterable[Dated]) -> bool | None:
    """Whether the day comes first in dates such as 25/04/2024, as those that can only be read one way tell."""
    settled = (_XXY.match(half(dated.text)) for dated in dates if len(dated.readings) == 1)
    # 04/04/2024 has one reading and tells nothing.
    orders = {int(parts[1]) > 12 for parts in settled if parts and max(int(parts[1]), int(parts[2])) > 12}
    return orders.pop() if len(orders) == 1 else None


def scan_dates(text: str, plain: str | None = None) -> Iterator[Dated]:
    """Every date of a text; `plain` is the text in half width, where that is known."""
    plain, after = half(text) if plain is None else plain, 0
    for start in _starts(plain):
        match = _DATE.match(plain, start) if start >= after else None
        if match:
            after = match.end()
            yield _dated(match, text)


def scan_spans(text: str) -> Iterator[Dated]:
    """Every quarter, half and year of a text."""
    for start, stop, period in scan_periods(half(text)):
        yield Dated(text[start:stop], start, stop, (), span=period)


def _starts(plain: str) -> Iterator[int]:
    """Where a date may begin. The pattern is slow to fail, so it is not tried at every character."""
    if not _NEEDED.search(plain):
        return
    for word in _WORD.finditer(plain):
        if not word[0].isalpha() or not word[0].isascii() or word[0].lower() in _MONTHS:
            yield word.start()


def _dated(match: re.Match[str], text: str) -> Dated:
    style = str(match.lastgroup)
    printed = text[match.start() : match.end()]
    if style == "xxy":
        return Dated(printed, match.start(), match.end(), _either(match))
    year_group, month_group, day_group = _PARTS[style]
    year, month = _year(match[year_group]), _month(match[month_group])
    day_text = match[day_group] if day_group else None
    if day_text is None:
        return Dated(printed, match.start(), match.end(), (), (year, month) if 1 <= month <= 12 else None)
    return Dated(printed, match.start(), match.end(), _days(year, month, _integer(day_text)))


def _either(match: re.Match[str]) -> tuple[date, ...]:
    """Day and month in either order; with dots the day comes first by custom."""
    year, first, second = int(match["y4"]), int(match["a"]), int(match["b"])
    day_first, month_first = _days(year, second, first), _days(year, first, second)
    if match["mark"] == "." and day_first:
        return day_first
    return tuple(dict.fromkeys(day_first + month_first))


def _days(year: int, month: int, day: int) -> tuple[date, ...]:
    try:
        return (date(year, month, day),)
    except ValueError:
        return ()


def _year(text: str) -> int:
    if len(text) == 2:
        return int(text) + (1900 if int(text) >= _PIVOT else 2000)
    return _integer(text)


def _month(text: str) -> int:
    name = text[:3].lower()
    return _MONTHS.index(name) + 1 if name in _MONTHS else _integer(text)


def _integer(text: str) -> int:
    return int(text) if text.isascii() else int(chinese_number(text) or 0)
