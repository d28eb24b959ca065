"""Dates that are said relative to the document's own: yesterday, last quarter, 上月末, 三日前."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from datetime import date, timedelta

from validation.chinese import chinese_number
from validation.dates import Dated
from validation.facts import Facts
from validation.periods import Period, months
from validation.places import Place

#: Words that make the date after them the document's own, within so many characters.
_OWN = re.compile(r"(?:date|dated|as of|as at|日期|截至|报告期)\W{0,6}$")
_OWN_REACH = 24

_COUNT = "(?P<count>[0-9]{1,3}|[一二两三四五六七八九十]{1,3}|one|two|three|four|five|six|seven|ten)"
_RELATIVE = re.compile(
    rf"(?:{_COUNT}\s?(?P<unit>日|天|个月|年|days?|weeks?|months?|years?)\s?(?:之?前|ago|earlier|prior)"
    r"|(?P<day>今[日天]|本日|昨[日天]|明[日天]|次日|\b(?:today|yesterday|tomorrow)\b"
    r"|\bthe (?:previous|preceding|next|following) day\b)"
    r"|(?P<end>上月[末底]|上季度?[末底]|上年[末底]|去年[末底]|年初|期初"
    r"|\bend of (?:last|the previous|the prior) (?:month|quarter|year)\b|\b(?:prior|previous|last) year[- ]end\b)"
    r"|(?P<span>上个?月|上季度|上个季度|去年|上年度?|\b(?:last|previous|prior) (?:month|quarter|year)\b))"
)
#: Something that every relative term holds; it begins with one letter of a few, so that it is found quickly.
_HINT = re.compile("[前今本昨明次上去年期atyenplo](?:(?<=[前今本昨明次上去年期])|(?<=a)go|(?<=e)(?:arlier|nd of)"
                   "|(?<=p)r(?:ior|e(?:vious|ceding))|(?<=t)o(?:day|morrow)|(?<=y)esterday|(?<=n)ext"
                   "|(?<=l)ast|(?<=f)ollowing)")  # fmt: skip
_WORDS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "ten": 10}


def document_date(facts: Facts) -> date | None:
    """The date that the document gives itself, else the first that it prints."""
    sure = [found for found in facts.dates if len(found.dated.days(facts.day_first)) == 1]
    for found in sure:
        before = found.place.piece.printed.text[max(0, found.place.start - _OWN_REACH) : found.place.start]
        if _OWN.search(before.lower()):
            return found.dated.days(facts.day_first)[0]
    return sure[0].dated.days(facts.day_first)[0] if sure else None


def resolve(text: str, anchor: date) -> Period | None:
    """What a relative term means, seen from a day."""
    match = _RELATIVE.search(text.lower())
    return _meaning(match, anchor) if match else None


def mentions(dated: Dated, facts: Facts) -> Iterator[Place]:
    """Where the document says this day or period in relation to its own date."""
    anchor = document_date(facts)
    if anchor is None:
        return
    days = dated.days(facts.day_first)
    for match in facts.once("relative", lambda: _said(facts)):
        meant = _meaning(match, anchor)
        if meant and (meant in (dated.period,) or (meant.first == meant.last and meant.first in days)):
            number = facts.index.piece_at(match.start())
            start = facts.index.starts[number]
            yield facts.index.place(number, match.start() - start, match.end() - start)


def _said(facts: Facts) -> list[re.Match[str]]:
    """Every relative term, looked for where a word of one stands: the whole pattern is slow to fail."""
    index, lower = facts.index, facts.lower
    numbers = dict.fromkeys(index.piece_at(hint.start()) for hint in _HINT.finditer(lower))
    ends = ((index.starts[number], index.starts[number] + len(facts.pieces.texts[number])) for number in numbers)
    return [match for start, stop in ends for match in _RELATIVE.finditer(lower, start, stop)]


def _meaning(match: re.Match[str], anchor: date) -> Period | None:
    return _READ[str(match.lastgroup)](match, anchor)


def _ago(match: re.Match[str], anchor: date) -> Period:
    text, unit = match["count"], match["unit"]
    count = int(text) if text.isdigit() else _WORDS.get(text) or int(chinese_number(text) or 0)
    if unit in ("日", "天", "day", "days") or unit.startswith("week"):
        day = anchor - timedelta(days=count * (7 if unit.startswith("week") else 1))
    else:
        back = count * (12 if unit[0] in "年y" else 1)
        year, month = divmod(anchor.year * 12 + anchor.month - 1 - back, 12)
        day = date(year, month + 1, min(anchor.day, monthrange(year, month + 1)[1]))
    return Period(day, day)


def _day(match: re.Match[str], anchor: date) -> Period:
    word = match["day"]
    step = -1 if re.match("昨|yest|the pre", word) else 1 if re.match("明|次|tomo|the (?:next|foll)", word) else 0
    day = anchor + timedelta(days=step)
    return Period(day, day)


def _end(match: re.Match[str], anchor: date) -> Period:
    last = _before(match["end"], anchor).last
    return Period(last, last)


def _before(word: str, anchor: date) -> Period:
    """The month, quarter or year before the one that the day is in."""
    if "quarter" in word or "季" in word:
        year, quarter = divmod(anchor.year * 4 + (anchor.month - 1) // 3 - 1, 4)
        return months(year, 3 * quarter + 1, 3)
    if "month" in word or "月" in word:
        year, month = divmod(anchor.year * 12 + anchor.month - 2, 12)
        return months(year, month + 1, 1)
    return months(anchor.year - 1, 1, 12)


_READ: dict[str, Callable[[re.Match[str], date], Period]] = {
    "unit": _ago,
    "day": _day,
    "end": _end,
    "span": lambda match, anchor: _before(match["span"], anchor),
}
