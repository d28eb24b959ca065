"""Small counting numbers as documents print them: 12, １２, 十二, 二十三, 一百零五."""

from __future__ import annotations

import unicodedata
from typing import Final

#: What a number of a page, a note or a table is written with, for patterns.
NUMERAL: Final = "(?:[0-9０-９]{1,4}|[〇零一二两三四五六七八九十百]{1,7})"
_DIGITS: Final = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS: Final = {"十": 10, "百": 100}


def number_of(text: str) -> int | None:
    """The number, or None where the text is none."""
    plain = unicodedata.normalize("NFKC", text)
    if plain.isdigit():
        return int(plain)
    if not plain or any(sign not in _DIGITS and sign not in _TENS for sign in plain):
        return None
    if not any(sign in _TENS for sign in plain):
        return int("".join(str(_DIGITS[sign]) for sign in plain))
    return _counted(plain)


def _counted(text: str) -> int:
    total, digit = 0, None
    for sign in text:
        if sign in _TENS:
            total += _TENS[sign] * (1 if digit is None else digit)
            digit = None
        else:
            digit = _DIGITS[sign]
    return total + (digit or 0)
