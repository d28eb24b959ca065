"""Numbers as they are printed, to Decimal: one reading for a whole text, all readings in a longer one.

A value holds its sign and its own scale (5.28亿, $5.2 million). The scale of a table (单位：万元, in thousands) is put
on by `in_table`, once: a number that has a scale already, and a percentage, keeps what it has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from validation.chinese import CHARACTERS, DIGITS, chinese_amount, own_scale
from validation.english import scan_words
from validation.text import JOINED, half


@dataclass(frozen=True, slots=True)
class Number:
    """`value` has sign and scale in it; `scale` says which one, None for none. `unit`: CNY, USD, %, ‰, 股 ..."""

    value: Decimal
    unit: str | None = None
    scale: Decimal | None = None

    @property
    def relative(self) -> bool:
        """A share of something, which no scale of a table applies to."""
        return self.unit in _RELATIVE

    @property
    def fraction(self) -> Decimal:
        """A share as a plain fraction: 4.35% is 0.0435. The value itself where it is no share."""
        return self.value.scaleb(_FRACTIONS.get(self.unit or "", 0))


@dataclass(frozen=True, slots=True)
class Found:
    """A number in a longer text. `other` is a second reading where print does not tell: (1,000) in prose."""

    start: int
    stop: int
    number: Number
    other: Number | None = None


#: Shares, and the power of ten that makes each a plain fraction.
_FRACTIONS = {"%": -2, "‰": -3, "bp": -4}
_RELATIVE = frozenset({*_FRACTIONS, "倍"})

_CURRENCIES = {
    "US$": "USD", "USD": "USD", "美元": "USD", "HK$": "HKD", "HKD": "HKD", "港元": "HKD", "港币": "HKD",
    "NT$": "TWD", "A$": "AUD", "C$": "CAD", "S$": "SGD", "R$": "BRL", "RMB": "CNY", "CNY": "CNY", "人民币": "CNY",
    "元": "CNY", "圆": "CNY", "EUR": "EUR", "€": "EUR", "欧元": "EUR", "GBP": "GBP", "£": "GBP", "英镑": "GBP",
    "JPY": "JPY", "日元": "JPY", "CHF": "CHF", "SGD": "SGD", "₩": "KRW", "₹": "INR", "$": "$", "¥": "¥",
    "元人民币": "CNY", "yuan": "CNY", "renminbi": "CNY", "dollars": "$", "euros": "EUR", "pounds": "GBP",
}  # fmt: skip
_SCALES = {
    "万亿": 12, "亿": 8, "億": 8, "千万": 7, "百万": 6, "十万": 5, "万": 4, "萬": 4, "千": 3, "百": 2,
    "trillion": 12, "billion": 9, "bn": 9, "million": 6, "mn": 6, "mln": 6, "thousand": 3, "b": 9, "m": 6, "k": 3,
}  # fmt: skip
_COUNTED = "倍|股|份|人|户|次|个|家|件|名|笔|项|吨|天|年|月|日|shares?"


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


_GROUPS = f"[.,'{JOINED}]"
_RUN = re.compile(rf"[0-9]+(?:{_GROUPS}[0-9]+)*")
_MAYBE_SPACED = re.compile("[0-9] [0-9]{3}")
_BARE_POINT = re.compile(r"(?<![0-9A-Za-z.,])\.$")
_SPACED = re.compile(r"(?<![0-9.,])[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?(?![0-9.,]|\s[0-9])")
_BEFORE = re.compile(
    rf"(?:(?:(?<![A-Za-z])(?P<outer>{_any(_CURRENCIES)})\s?)?(?P<open>\()\s?)?"
    rf"(?:(?P<sign>(?<![0-9A-Za-z.,)%])[-+]|负|△|▲|(?<![A-Za-z])(?i:minus|negative)(?=\s))\s?)?"
    rf"(?:(?<![A-Za-z])(?P<currency>{_any(_CURRENCIES)})\s?(?P<inner>-)?)?$"
)
#: As far back as a bracket, a sign and a currency reach.
_REACH = 12
_AFTER = re.compile(
    rf"(?P<close>\s?\))?(?:\s?(?P<share>%|‰|个?百分点|per\s?cent(?![a-z])|percentage\spoints?|bps|basis\spoints?)"
    rf"|\s?(?P<scale>万亿|[千百十]?万|[亿億萬]|[千百](?=[元美港欧日英]))|\s?(?P<word>trillion|billion|million|thousand"
    rf"|bn|mn|mln)(?![A-Za-z])|(?P<letter>[kmb])(?![A-Za-z]))?"
    rf"(?:\s?(?P<unit>(?:{_any(_CURRENCIES)})(?![A-Za-z])|{_COUNTED}))?(?P<shut>\s?\))?(?P<minus>-(?![\w(]))?",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    rf"(?<![0-9{CHARACTERS}])(?P<currency>人民币\s?)?(?P<sign>负)?(?P<of>[百千万]分之)?(?P<whole>[{CHARACTERS}]+)"
    rf"(?:(?P<unit>[元圆圓])(?:(?P<jiao>[{DIGITS}])角)?零?(?:(?P<fen>[{DIGITS}])分)?[整正]?"
    rf"|(?P<foreign>美元|港元|港币|欧元|日元|英镑))?"
)
_CHARACTER = re.compile(f"[{CHARACTERS}]+")
#: One character alone is no numeral without a unit or a share.
_LIKELY = re.compile(f"[{CHARACTERS}](?:[{CHARACTERS}]+|(?=[元圆圓美港欧日英]|分之))")
#: As far before a numeral as 人民币 and 负 reach.
_LEAD = 6
_SMALL = re.compile(rf"(?P<jiao>[{DIGITS}])角零?(?:(?P<fen>[{DIGITS}])分)?[整正]?|(?P<only>[{DIGITS}])分[整正]?")
#: 1亿2000万 and 3亿5,000万元 and 1万5千: one number of which each piece has its own scale.
_COMPOUND = re.compile(
    r"[0-9](?<![0-9.,][0-9])[0-9,.]*\s?(?:(?:万亿|[亿億])[0-9][0-9,.]*\s?[万萬](?:[0-9][0-9,.]*(?=[元圆]))?"
    r"|(?:[亿億万萬])[0-9][0-9,.]*(?:\s?千(?!元)|(?=[元圆])))"
)
_PIECE = re.compile("([0-9][0-9,.]*)\\s?(万亿|[亿億万萬千])?")
#: What may stand before and after a number that is a whole value: about, (in capitals).
_HEDGE = re.compile(
    r"^(?:约为?|大约|近|逾|超过?|不超过|不低于|不少于|至少|about|approximately|approx\.?|around|nearly|almost|over"
    r"|more than|less than|at least|up to|some|[~≈≤≥<>]|(?:人民币)?\s?[(]?大写[)]?\s?[::]?\s?(?:人民币)?\s?[::]?)\s?",
    re.IGNORECASE,
)
_TAIL = re.compile(r"(?:左右|以上|以下|[.,]-*|\.)$")
_OPEN_ONLY = re.compile(r"\s*[(]\s?(?P<body>[^()]*[0-9])\s*")
_SIMPLE = re.compile(
    r"(?P<open>\()?(?P<minus>-)?(?P<digits>(?!0[0-9])[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|(?!0[0-9])[0-9]+(?:\.[0-9]+)?)"
    r"(?P<share>%)?(?P<close>\))?"
)
#: Without one of these nothing is a number.
_MAY_BE = re.compile(f"[0-9{CHARACTERS}]|hundred|thousand|million|billion|[enrfxvh]ty", re.IGNORECASE)
_WORD_BEFORE = re.compile(r"[A-Za-z_]-?$")
_EITHER = re.compile("[1-9][0-9]{0,2}[.,][0-9]{3}")
_LEADING_ZERO = re.compile("0[0-9]")
_WORD_AFTER = re.compile(r"[A-Za-z_]")


def parse_number(text: str) -> Number | None:
    """The one number that the whole text is, or None: (1,234) and 1,234- are negative, 4.35% has unit %."""
    return next(iter(readings(text)), None)


@lru_cache(8192)
def readings(text: str, *, comma: bool = False) -> tuple[Number, ...]:
    """What the whole text may mean as a number, likeliest first; brackets may be those of a sentence.

    A word that hedges (about, 约) and the dash of 1'000.- are no part of it. `comma`: see `scan_numbers`.
    """
    plain = half(text).strip()
    if simple := _simple(plain, comma):
        return simple
    if not _MAY_BE.search(plain):
        return ()
    if whole := _whole(plain, comma):
        return whole
    bare = _TAIL.sub("", unhedged(plain)).strip()
    if bare != plain and (whole := _whole(bare, comma)):
        return whole
    opened = _OPEN_ONLY.fullmatch(plain)
    return _whole(f"({opened['body']})", comma) if opened else ()


def unhedged(plain: str) -> str:
    """The text without a word at its beginning that hedges: about, more than, 约."""
    return _HEDGE.sub("", plain)


def _simple(plain: str, comma: bool) -> tuple[Number, ...]:
    """What most cells hold: digits in threes, a sign or brackets, a percent sign. Empty for all else."""
    match = _SIMPLE.fullmatch(plain)
    digits = match["digits"] if match else ""
    if match is None or (comma and _EITHER.fullmatch(digits)) or bool(match["open"]) != bool(match["close"]):
        return ()
    value, unit = Decimal(digits.replace(",", "")), "%" if match["share"] else None
    if match["open"] and not match["minus"]:
        return Number(-value, unit), Number(value, unit)
    return (Number(-value if match["open"] or match["minus"] else value, unit),)


def _whole(plain: str, comma: bool) -> tuple[Number, ...]:
    found = [*scan_numbers(plain, whole_cells=False, comma=comma), *_chinese(plain, single=True)]
    whole = next((number for number in found if (number.start, number.stop) == (0, len(plain))), None)
    return () if whole is None else (whole.number,) if whole.other is None else (whole.number, whole.other)


def in_table(number: Number, scale: Decimal | None, unit: str | None) -> Number:
    """The number with its table's scale and unit, where it has none of its own; twice gives the same as once."""
    if number.relative:
        return number
    if number.scale is None and scale is not None:
        number = replace(number, value=number.value * scale, scale=scale)
    return replace(number, unit=number.unit or unit)


def scan_numbers(text: str, *, whole_cells: bool = True, comma: bool = False, spelled: bool = True) -> Iterator[Found]:
    """Every number of a text. With `whole_cells`, one that fills the text has no second reading.

    `comma` says that the document writes its decimals after a comma: 1.234 is a thousand and more, 12,345 is twelve.
    Without `spelled`, those are left out that `scan_spelled` finds.
    """
    plain = half(text)
    compounds = list(_compounds(plain))
    yield from (_settle(found, plain, whole_cells) for found in _arabic(plain, comma, compounds))
    if spelled:
        yield from scan_spelled(plain)
    opened = _OPEN_ONLY.fullmatch(plain) if whole_cells else None
    if opened:
        # The closing bracket of a negative often stands in a cell of its own.
        for number in _whole(f"({opened['body']})", comma)[:1]:
            yield Found(plain.index("("), len(plain.rstrip()), number)


def _settle(found: Found, plain: str, whole_cells: bool) -> Found:
    if not whole_cells or found.other is None or plain[: found.start].strip() or plain[found.stop :].strip():
        return found
    return replace(found, other=None)


def scan_spelled(plain: str) -> Iterator[Found]:
    """The numbers of a text in half width that are not digits alone: 1亿2000万, 五百万, five million."""
    for match in _compounds(plain):
        yield from _compound(plain, match)
    yield from _chinese(plain)
    for start, stop, value, scale in scan_words(plain):
        yield from _read(plain, start, stop, value=value, scale=scale)


# ---------------------------------------------------------------- digits


def _compounds(plain: str) -> Iterator[re.Match[str]]:
    return _COMPOUND.finditer(plain) if "亿" in plain or "万" in plain or "億" in plain else iter(())


def _arabic(plain: str, comma: bool, compounds: Sequence[re.Match[str]]) -> Iterator[Found]:
    spaced = list(_SPACED.finditer(plain)) if _MAYBE_SPACED.search(plain) else []
    whole = [match.span() for match in (*compounds, *(one for one in spaced if _surely_one(one, plain)))]
    for match in spaced:
        yield from _read(plain, *match.span(), comma=comma)
    for match in _RUN.finditer(plain):
        if not any(start <= match.start() < stop for start, stop in whole):
            yield from _run(plain, match, comma)


def _run(plain: str, match: re.Match[str], comma: bool) -> Iterator[Found]:
    if _BARE_POINT.search(plain, max(0, match.start() - 2), match.start()):
        yield from _read(plain, match.start() - 1, match.end())
        return
    if decimal_of(match.group(), comma) is not None:
        yield from _read(plain, *match.span(), comma=comma)
        return
    # 2023,2024 is a list.
    start = match.start()
    for part in match.group().split(","):
        yield from _read(plain, start, start + len(part))
        start += len(part) + 1


def _compound(plain: str, match: re.Match[str]) -> Iterator[Found]:
    """The pieces must fall in size (1亿2000万), else they are two numbers that touch."""
    total, last, largest = Decimal(0), None, Decimal(1)
    for digits, word in _PIECE.findall(match.group()):
        value, scale = decimal_of(digits), Decimal(10) ** _SCALES.get(word, 0)
        if value is None or (last is not None and value * scale >= last):
            return
        total, last, largest = total + value * scale, scale, max(largest, scale)
    yield from _read(plain, *match.span(), value=total, scale=largest)


def _surely_one(spaced: re.Match[str], plain: str) -> bool:
    """33 000 is one number, as 33 350 is where it fills a cell; in a line of text that may be two."""
    groups = spaced.group().split()
    fills = not plain[: spaced.start()].strip() and not plain[spaced.end() :].strip()
    return fills or len(groups) > 2 or any(group.startswith("0") for group in groups)


def decimal_of(digits: str, comma: bool = False) -> Decimal | None:
    """Digits with separators: 1,234.56 and 1.234,56 and 1'234 and 12,34,567; None for what is no number (1.2.3).

    `comma`: a mark that may group or part decimals is read as where the comma parts them."""
    digits = digits.replace(" ", JOINED)
    if comma and _EITHER.fullmatch(digits):
        digits = digits.replace(".", "") if "." in digits else digits.replace(",", ".")
    point = _decimal_mark(digits)
    whole, fraction = (digits[:point], digits[point + 1 :]) if point is not None else (digits, "")
    groups = re.split(_GROUPS, whole)
    if len(set(re.findall(_GROUPS, whole))) > 1 or not _grouped(groups) or not (fraction or "0").isdigit():
        return None
    return Decimal(f"{''.join(groups) or '0'}.{fraction or '0'}") if fraction else Decimal("".join(groups))


def _decimal_mark(digits: str) -> int | None:
    """Where the decimal mark stands. A lone comma is one only where it cannot group: 27,80 and 0,125 and 5,4900."""
    dot, comma = digits.rfind("."), digits.rfind(",")
    if dot >= 0 and comma >= 0:
        return max(dot, comma)
    if digits.count(".") == 1:
        return dot
    after = len(digits) - comma - 1
    mark = digits.startswith("0,") or after in (1, 2) or (after > 3 and comma <= 3)
    return comma if digits.count(",") == 1 and mark else None


def _grouped(groups: list[str]) -> bool:
    if len(groups) == 1:
        return True
    inner = {len(group) for group in groups[1:-1]} or {3}
    return 1 <= len(groups[0]) <= 3 and len(groups[-1]) == 3 and inner in ({3}, {2})


def _read(
    plain: str,
    start: int,
    stop: int,
    *,
    value: Decimal | None = None,
    scale: Decimal | None = None,
    comma: bool = False,
) -> Iterator[Found]:
    """The number at this stretch with what frames it; `value` and `scale` where it is no plain run of digits."""
    digits = value is None
    value = decimal_of(plain[start:stop], comma) if value is None else value
    before = _BEFORE.search(plain, max(0, start - _REACH), start)
    after = _AFTER.match(plain, stop)
    if value is None or before is None or after is None or _in_a_word(plain, before, after, start):
        return
    if digits and _LEADING_ZERO.match(plain, start):
        return  # 0017 is part of an identifier
    bracketed = before["open"] is not None and bool(after["close"] or after["shut"])
    number = _number(value, before, after)
    number = number if scale is None or number.relative else replace(number, scale=scale)
    first = before.start() if bracketed or not before["open"] else _after_bracket(before, start)
    last = after.end() if bracketed or not (after["close"] or after["shut"]) else _before_bracket(after)
    minus = before["sign"] not in (None, "+") or before["inner"]
    doubtful = not minus and (bracketed or (after["minus"] and last == after.end()))
    if minus or doubtful:
        yield Found(first, last, replace(number, value=-number.value), other=number if doubtful else None)
    else:
        yield Found(first, last, number)


def _in_a_word(plain: str, before: re.Match[str], after: re.Match[str], start: int) -> bool:
    """Q3, A-12 and 12th are words; USD5,000 and 5,000USD and 5.2m are numbers."""
    nothing_before = before.start() == start
    if nothing_before and _WORD_BEFORE.search(plain, max(0, start - 2), start):
        return True
    return bool(_WORD_AFTER.match(plain, after.end()))


def _after_bracket(before: re.Match[str], start: int) -> int:
    marks = [before.start(name) for name in ("sign", "currency", "inner") if before[name]]
    return min(marks, default=start)


def _before_bracket(after: re.Match[str]) -> int:
    return after.start("close") if after["close"] else after.start("shut")


def _number(value: Decimal, before: re.Match[str], after: re.Match[str]) -> Number:
    currency = _CURRENCIES.get(before["currency"] or before["outer"] or "")
    if after["share"]:
        return Number(value, unit=_share(after["share"]))
    # 5.2m is millions beside a currency; without one it may be metres.
    word = after["scale"] or (after["word"] or "").lower() or ((after["letter"] or "").lower() if currency else "")
    scale = Decimal(10) ** _SCALES[word] if word else None
    unit = _CURRENCIES.get(after["unit"] or "") or _CURRENCIES.get((after["unit"] or "").lower()) or after["unit"]
    return Number(value * (scale or 1), unit=currency or unit, scale=scale)


def _share(printed: str) -> str:
    word = printed.lower()
    return "bp" if word.startswith(("bps", "basis")) else "‰" if word == "‰" else "%"


# ---------------------------------------------------------------- Chinese numerals


def _chinese(plain: str, *, single: bool = False) -> Iterator[Found]:
    """Numerals in characters. One alone (一) is mostly a word, so it counts only with a unit or if it is asked for."""
    if not any(character in plain for character in CHARACTERS):
        return
    for match in _numerals(plain, _CHARACTER if single else _LIKELY):
        marked = match["unit"] or match["foreign"] or match["of"]
        if not (marked or single) and len(match["whole"]) < 2:
            continue
        value = chinese_amount(match["whole"], match["jiao"], match["fen"])
        if value is not None:
            scale = own_scale(match["whole"])
            signed = Number(-value if match["sign"] else value, _chinese_unit(match), Decimal(scale) if scale else None)
            yield Found(match.start(), match.end(), signed)
    small = _SMALL.fullmatch(plain) if single else None
    if small:
        value = chinese_amount("零", small["jiao"], small["fen"] or small["only"])
        yield Found(0, len(plain), Number(value or Decimal(0), "CNY"))


def _numerals(plain: str, where: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """The numerals, looked for only where some of their characters stand: the whole pattern is slow to fail."""
    after = 0
    for start, stop in (run.span() for run in where.finditer(plain)):
        while start >= after and (match := _CHINESE.search(plain, max(after, start - _LEAD), stop + _REACH)):
            after = match.end()
            yield match


def _chinese_unit(match: re.Match[str]) -> str | None:
    if match["of"]:
        return {"百": "%", "千": "‰", "万": "bp"}[match["of"][0]]
    return _CURRENCIES.get(match["foreign"] or "") or ("CNY" if match["unit"] or match["currency"] else None)
