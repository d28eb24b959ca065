"""Numbers in Chinese characters, ordinary (五百二十八万) and capital (壹佰万元整), to Decimal.

Our own code: cn2an, the known library, answers in binary floating point, which loses the last digits of a large amount.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from math import prod

_DIGITS = {
    character: value
    for value, characters in enumerate(
        ("零〇○", "一壹弌", "二贰貳两兩", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖")
    )
    for character in characters
}
_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_SCALES = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_POINT = "点點"

DIGITS = "".join(_DIGITS)
CHARACTERS = DIGITS + "".join(_UNITS) + "".join(_SCALES) + _POINT


def chinese_number(text: str) -> Decimal | None:
    """The value of a numeral, or None if it is not well formed: 一百零五, 一百二 (120), 二〇二四, 五点二八亿."""
    whole, point, rest = text.replace("點", "点").partition("点")
    if not point:
        value = _whole(whole)
        return None if value is None else Decimal(value)
    fraction = rest.rstrip("".join(_SCALES))
    value, scale = _whole(whole), prod(_SCALES[character] for character in rest[len(fraction) :])
    if value is None or not fraction or not all(character in _DIGITS for character in fraction):
        return None
    return Decimal(f"{value}.{_positional(fraction)}") * scale


def own_scale(text: str) -> int | None:
    """The largest 万 or 亿 in a numeral, None where it has neither."""
    return max((_SCALES[character] for character in text if character in _SCALES), default=None)


def chinese_amount(yuan: str, jiao: str | None, fen: str | None) -> Decimal | None:
    """元, 角 and 分 together."""
    value = chinese_number(yuan)
    if value is None:
        return None
    return value + Decimal(_DIGITS[jiao or "零"]) / 10 + Decimal(_DIGITS[fen or "零"]) / 100


def _positional(text: str) -> str:
    return "".join(str(_DIGITS[character]) for character in text)


def _whole(text: str) -> int | None:
    if text and all(character in _DIGITS for character in text):
        return int(_positional(text))
    total, last_scale = 0, 10**12
    for section, scale in _sections(text):
        value = _section(section)
        if value is None or (value == 0 and total == 0):
            return None
        # 一千二百万亿: a larger scale multiplies all before it; 一亿零三百万: a smaller one adds to it.
        total = (total + value) * scale if scale > last_scale else total + value * scale
        last_scale = scale
    return total + _colloquial(text) if total else None


def _sections(text: str) -> Iterator[tuple[str, int]]:
    """The text cut at 万 and 亿, each piece with its scale; what follows the last has scale 1."""
    start = 0
    for index, character in enumerate(text):
        if character in _SCALES:
            yield text[start:index], _SCALES[character]
            start = index + 1
    if start < len(text):
        yield text[start:], 1


def _section(text: str) -> int | None:
    """A piece below 10,000; None if it is not well formed (千 with no digit before it, units that rise)."""
    value, digit, last_unit = 0, None, 10**4
    for character in text:
        if character in _DIGITS:
            if digit:
                return None
            digit = _DIGITS[character]
            continue
        unit = _UNITS[character]
        # 十五 needs no 一 before it; 百 does.
        digit = 1 if digit is None and unit == 10 else digit
        if not digit or unit >= last_unit:
            return None
        value, digit, last_unit = value + digit * unit, None, unit
    return value + (digit or 0)


def _colloquial(text: str) -> int:
    """What 一百二 and 两万三 mean beyond their characters: the last digit counts tenths of the unit before it."""
    if len(text) < 2 or text[-1] not in _DIGITS:
        return 0
    unit = _UNITS.get(text[-2]) or _SCALES.get(text[-2]) or 10
    return _DIGITS[text[-1]] * (unit // 10 - 1)
