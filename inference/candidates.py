"""The numbers, amounts, dates and identifiers that a document prints, whole and with their place.

Constrained decoding offers these and nothing else, so what is not found here cannot be read; and a piece of a number
(280,000 of 5,280,000) is never offered.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from inference.text import HAN, Plain

Span = tuple[int, int]
KINDS = ("number", "amount", "date", "id")


class Candidate(NamedTuple):
    """A value and where it stands: piece number, and range in the piece's one-line text."""

    text: str
    piece: int
    start: int
    stop: int


#: Stands between the pieces while they are searched as one text, which takes half the time; no pattern crosses it.
_PARTING = "\x00"


def find(plains: Sequence[Plain]) -> Mapping[str, tuple[Candidate, ...]]:
    """All candidates by kind (`KINDS`) in document order; what is printed twice is there twice."""
    offsets = list(accumulate((len(plain.marked) + 1 for plain in plains), initial=0))
    spans = _spans(_PARTING.join(plain.marked for plain in plains))
    return {kind: tuple(_placed(spans[kind], plains, offsets)) for kind in KINDS}


def _placed(spans: Sequence[Span], plains: Sequence[Plain], offsets: Sequence[int]) -> Iterator[Candidate]:
    for start, stop in spans:
        piece = bisect_right(offsets, start) - 1
        start, stop = start - offsets[piece], stop - offsets[piece]
        yield Candidate(plains[piece].text[start:stop], piece, start, stop)


def _spans(text: str) -> Mapping[str, list[Span]]:
    dates = _dates(text)
    ids = _ids(text, dates)
    numbers = sorted(_numbers(text, dates, ids))
    return {"date": dates, "id": ids, "number": numbers, "amount": [span for span in numbers if _is_amount(text, span)]}


# ---------------------------------------------------------------- dates

_D = "[0-9０-９]"
_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = f"{_D}{{1,2}}(?:st|nd|rd|th)?"
#: (what must be in a text for the pattern to be worth trying, the pattern)
_DATES = [
    (
        re.compile("年"),
        re.compile(
            rf"{_D}{{4}}\s?年\s?{_D}{{1,2}}\s?月(?:\s?{_D}{{1,2}}\s?[日号])?"
            "|[〇○零一二三四五六七八九]{4}年[一二三四五六七八九十]{1,3}月(?:[一二三四五六七八九十]{1,3}[日号])?"
        ),
    ),
    (
        re.compile(rf"[-/.－／．]{_D}{{1,2}}[-/.－／．]"),
        re.compile(
            rf"(?<![0-9０-９.,/-])(?:{_D}{{4}}(?P<a>[-/.－／．]){_D}{{1,2}}(?P=a){_D}{{1,2}}"
            rf"|{_D}{{1,2}}(?P<b>[-/.－／．]){_D}{{1,2}}(?P=b){_D}{{4}})(?![0-9０-９])"
        ),
    ),
    (
        re.compile(_MONTH, re.IGNORECASE),
        re.compile(
            rf"(?<![0-9A-Za-z])(?:{_DAY}[\s-](?:of\s)?{_MONTH}\.?,?[\s-]{_D}{{4}}"
            rf"|{_MONTH}\.?(?:\s{_DAY})?,?\s{_D}{{4}})(?![0-9０-９])",
            re.IGNORECASE,
        ),
    ),
    (
        re.compile(r"\d{8}"),
        re.compile(
            r"(?<![0-9A-Za-z.,/-])(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?![0-9A-Za-z/-]|[.,]\d)"
        ),
    ),
]


def _dates(text: str) -> list[Span]:
    return sorted(match.span() for sign, pattern in _DATES if sign.search(text) for match in pattern.finditer(text))


# ---------------------------------------------------------------- identifiers

_TOKEN = re.compile(r"(?<![0-9A-Za-z*])(?<![0-9][.,])[0-9A-Za-z*]+(?:[-/_.][0-9A-Za-z*]+)*(?![0-9A-Za-z])")
_GROUPED_DIGITS = re.compile(r"(?<![0-9A-Za-z.,-])\d{4}(?:[ -]\d{4}){2,5}(?:[ -]\d{1,4})?(?![0-9A-Za-z]|[.,]\d)")
_CHINESE_NUMBER = re.compile(
    rf"[（(〔\[]\d{{4}}[)）〕\]][{HAN}]{{1,4}}\d{{0,6}}[{HAN}]{{0,3}}第?\d+号"
    rf"|[{HAN}]{{1,6}}字第[0-9A-Za-z-]+号|[{HAN}]{{1,6}}[〔\[（(]\d{{4}}[)）\]〕]第?\d+号"
)
#: Fewer digits without a letter are a number, not an identifier.
_ID_DIGITS = 8
_ID_LENGTH = 5
_DIGIT = re.compile(_D)
_LETTER = re.compile("[A-Za-z]")
_PLAIN_NUMBER = re.compile(r"\d+(?:\.\d+)?|\d+[.](?:\d+[.])*\d+")


def _looks_like_an_id(token: str) -> bool:
    if len(token) < _ID_LENGTH or _PLAIN_NUMBER.fullmatch(token):
        return token.isdigit() and len(token) >= _ID_DIGITS
    digits = len(_DIGIT.findall(token))
    return digits >= _ID_DIGITS or (digits > 0 and not token.isdigit() and _LETTER.search(token) is not None)


#: Character by character, so that places stay.
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
_FULL_WIDTH = re.compile("[０-９Ａ-Ｚａ-ｚ]")


def _ids(text: str, dates: list[Span]) -> list[Span]:
    text = text.translate(_HALF_WIDTH) if _FULL_WIDTH.search(text) else text
    whole = [match.span() for pattern in (_CHINESE_NUMBER, _GROUPED_DIGITS) for match in pattern.finditer(text)]
    taken = _Cover(whole + [span for span in dates if not text[slice(*span)].isdigit()])
    tokens = [match.span() for match in _TOKEN.finditer(text) if _looks_like_an_id(match.group())]
    return sorted(whole + [span for span in tokens if not taken.holds(span)])


# ---------------------------------------------------------------- numbers

_RUN = re.compile(rf"{_D}+(?:[.,．，'’\u00a0\u2009\u202f]{_D}+)*")
_WELL_FORMED = re.compile(
    rf"{_D}{{1,3}}(?:(?P<g>[,，'’\u00a0\u2009\u202f]){_D}{{2,4}}(?:(?P=g){_D}{{2,4}})*)?(?:[.．]{_D}+)?"
    rf"|{_D}+(?:[.．]{_D}+|[,，]{_D}{{1,2}})?|{_D}{{1,3}}(?:\.{_D}{{3}})+,{_D}+"
)
#: 1 234 567,89: groups by spaces, where they cannot be columns: with decimals, or alone in the piece.
_SPACED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?: [0-9]{3})+(?P<decimals>[.,][0-9]{1,2})?(?![0-9.,]| [0-9])")
_BETWEEN_NUMBERS = re.compile("[,，]")
_CURRENCY = r"(?:[¥￥$＄€£]|(?:US|HK|C|A)\$|RMB|CNY|USD|EUR|GBP|HKD|JPY|CHF|人民币)"
_SIGN_BEFORE = re.compile(rf"(?<![0-9０-９A-Za-z.,)）%])[-−－＋+]\s?(?:{_CURRENCY}\s?)?$")
_BRACKET_BEFORE = re.compile(rf"[(（]\s?(?:{_CURRENCY}\s?)?$")
_CURRENCY_BEFORE = re.compile(rf"{_CURRENCY}\s?$")
_BRACKET_AFTER = re.compile(r"\s?[%％]?\s?[)）]")
_UNIT_AFTER = re.compile(
    r"\s?[%％‰]|\s?(?:万亿|千万|百万|亿|万)(?:美元|港元|欧元|日元|元|股|份|吨)?|\s?[千百](?:美元|港元|元)"
    r"|\s(?:thousand|million|billion|trillion|mn|bn)(?![A-Za-z])",
    re.IGNORECASE,
)
_WORD_AROUND = re.compile(r"[A-Za-z_]")
#: As far back as a sign, a bracket and a currency can stand.
_BEFORE = 8
_LONGEST_NUMBER = 15


_UP_TO_TEN = "〇零一二三四五六七八九十壹贰貳叁參肆伍陆陸柒捌玖拾两兩"
_NUMERALS = _UP_TO_TEN + "百千万亿佰仟萬億"
#: 伍佰贰拾捌万元整, 百分之五点三: numerals alone (一般, 万一) are words, and 万元 is a unit.
_CHINESE_NUMERAL = re.compile(
    rf"(?<![0-9０-９{_NUMERALS}])(?:负?[百千万]分之[{_NUMERALS}]+(?:点[{_NUMERALS}]+)?"
    rf"|负?[{_UP_TO_TEN}][{_NUMERALS}]*(?:美元|港元|欧元|日元|[元圆圓](?:[{_NUMERALS}]角)?零?(?:[{_NUMERALS}]分)?[整正]?))"
)


def _numbers(text: str, dates: list[Span], ids: list[Span]) -> Iterator[Span]:
    yield from (match.span() for match in _CHINESE_NUMERAL.finditer(text))
    taken = _Cover(dates + [span for span in ids if not text[slice(*span)].isdigit()])
    for start, stop in _cores(text):
        if not taken.holds((start, stop)) and not _in_a_word(text, start, stop):
            yield _widen(text, start, stop)


def _cores(text: str) -> Iterator[Span]:
    """The digits with their separators. A run that is no number (2023,2024) is taken as a list of numbers."""
    spaced = [match.span() for match in _SPACED.finditer(text) if match["decimals"] or _is_alone(match)]
    yield from spaced
    taken = _Cover(spaced)
    for run in _RUN.finditer(text):
        if taken.holds(run.span()):
            continue
        if _WELL_FORMED.fullmatch(run.group()):
            yield from (run.span(),) if len(_DIGIT.findall(run.group())) <= _LONGEST_NUMBER else ()
            continue
        start = run.start()
        for part in _BETWEEN_NUMBERS.split(run.group()):
            if _WELL_FORMED.fullmatch(part):
                yield start, start + len(part)
            start += len(part) + 1


def _is_alone(match: re.Match[str]) -> bool:
    """Whether its piece holds nothing else."""
    text, (start, stop) = match.string, match.span()
    left, right = text.rfind(_PARTING, 0, start) + 1, text.find(_PARTING, stop)
    return not text[left:start].strip() and not text[stop : right if right >= 0 else None].strip()


def _in_a_word(text: str, start: int, stop: int) -> bool:
    """Q3 and 12th are words; USD5,000 and 5,000USD are amounts."""
    before = text[max(0, start - 1) : start]
    if _WORD_AROUND.match(before) and not _CURRENCY_BEFORE.search(text[max(0, start - _BEFORE) : start]):
        return True
    after = text[stop : stop + 3]
    return bool(_WORD_AROUND.match(after)) and re.match(_CURRENCY, after) is None


def _widen(text: str, start: int, stop: int) -> Span:
    """Take in what changes the value: sign, brackets of a negative, percent, a scale such as 万元 or million."""
    before = text[max(0, start - _BEFORE) : start]
    closing = _BRACKET_AFTER.match(text, stop)
    if closing and (bracket := _BRACKET_BEFORE.search(before)):
        return start - len(bracket.group()), closing.end()
    if unit := _UNIT_AFTER.match(text, stop):
        stop = unit.end()
    if sign := _SIGN_BEFORE.search(before):
        start -= len(sign.group())
    return start, stop


# ---------------------------------------------------------------- amounts

_NO_MONEY = re.compile("[%％‰股份吨]$|分之")
_COUNTED = re.compile(
    r"\s?(?:个|名|人|户|股|份|吨|天|日|年|月|次|笔|家|项|倍|页|条|(?:days?|weeks?|months?|years?|shares?|times|pages?"
    r"|employees|persons|people|customers|basis points|bps)(?![A-Za-z]))",
    re.IGNORECASE,
)
_ORDINAL_BEFORE = re.compile(r"(?:第|(?<![A-Za-z])(?:page|note|no\.?|article|section|clause|item)\s?)$", re.IGNORECASE)
_YEAR = re.compile(r"(?:19|20)\d\d")


def _is_amount(text: str, span: Span) -> bool:
    """Whether a number may be money: no share, no count of things or of time, no year, no "Note 12"."""
    start, stop = span
    before = text[max(0, start - _BEFORE) : start]
    if _CURRENCY_BEFORE.search(before):
        return True
    if _NO_MONEY.search(text[start:stop]) or _COUNTED.match(text, stop) or _ORDINAL_BEFORE.search(before):
        return False
    return _YEAR.fullmatch(text[start:stop]) is None


class _Cover:
    """The stretches of a text that are already read as something else."""

    def __init__(self, spans: list[Span]) -> None:
        spans = sorted(spans)
        self._starts = [start for start, _ in spans]
        self._stops = list(accumulate((stop for _, stop in spans), max))

    def holds(self, span: Span) -> bool:
        index = bisect_right(self._starts, span[0]) - 1
        return index >= 0 and span[1] <= self._stops[index]
