"""Numbers in English words: five million, twenty-five thousand, one hundred and five, half a billion.

One small word (five) is mostly no figure, so a number in words needs two words or an order of magnitude.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

_SMALL = {
    word: Decimal(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {
    word: Decimal(10 * value)
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
} | {"a": Decimal(1), "half": Decimal("0.5")}  # fmt: skip
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORDS = "|".join(sorted({*_SMALL, *_LARGE, "hundred"} - {"a"}, key=len, reverse=True))
#: The end of a number word before an order of magnitude, or of tens before a hyphen: where a numeral may be.
_LIKELY = re.compile(rf"(?:{_WORDS}|\ba)(?:[\s?]+|[\s?]*-[\s?]*)(?:and[\s?]+|an?[\s?]+)?(?:{_WORDS})\b".encode())
_MARKS = (b"hundred", b"thousand", b"million", b"billion", b"trillion")
_TENS = (b"twenty", b"thirty", b"forty", b"fifty", b"sixty", b"seventy", b"eighty", b"ninety")
#: As far as a numeral in words reaches.
_REACH = 200
_NUMBER = re.compile(rf"\b(?:a\s+)?(?:{_WORDS})(?:(?:\s*-\s*|\s+(?:and\s+|an?\s+)?)(?:{_WORDS}))*\b", re.IGNORECASE)
_SPLIT = re.compile(r"[\s-]+")


def scan_words(plain: str) -> Iterator[tuple[int, int, Decimal, Decimal | None]]:
    """Start, stop, value and largest order of magnitude of every number in words; plain digits are not looked at."""
    for match in _numerals(plain):
        words = [word for word in _SPLIT.split(match.group().lower()) if word not in ("and", "an")]
        # "5.2 million" is read as digits with a scale.
        if words[0] in _LARGE or words[0] == "hundred" or (len(words) < 2):
            continue
        value = english_number(words)
        if value is not None:
            scale = max((Decimal(_LARGE[word]) for word in words if word in _LARGE), default=None)
            yield match.start(), match.end(), value, scale


def _numerals(plain: str) -> Iterator[re.Match[str]]:
    """The runs of number words. Most orders of magnitude follow digits (5.2 million): there no pattern is tried."""
    # Bytes are put into small letters ten times as quickly as text; a blank that they do not know becomes a “?”.
    lower, after = plain.encode("ascii", "replace").lower(), 0
    for at in sorted((*_tens(lower), *(offset for mark in _MARKS for offset in _every(mark, lower)))):
        first = max(after, at - _REACH)
        of_digits = lower[max(0, at - 2) : at - 1].isdigit()
        if at < after or of_digits or not _LIKELY.search(lower, max(first, at - 24), at + 12):
            continue
        for match in _NUMBER.finditer(plain, first, at + _REACH):
            if match.start() <= at < match.end():
                after = match.end()
                yield match


def _tens(lower: bytes) -> Iterator[int]:
    """Where tens end before a hyphen or a blank."""
    return (at for mark in (b"ty-", b"ty ") for at in _every(mark, lower) if lower.endswith(_TENS, 0, at + 2))


def _every(mark: bytes, text: bytes) -> Iterator[int]:
    offset = text.find(mark)
    while offset >= 0:
        yield offset
        offset = text.find(mark, offset + 1)


def english_number(words: Sequence[str]) -> Decimal | None:
    """The value of number words, or None where they do not fall in size as a numeral's do."""
    total, section, last = Decimal(0), Decimal(0), Decimal(10) ** 15
    for word in words:
        if word in _LARGE:
            if not section or _LARGE[word] >= last:
                return None
            total, section, last = total + section * _LARGE[word], Decimal(0), Decimal(_LARGE[word])
        elif word == "hundred":
            section = (section or Decimal(1)) * 100
        elif word != "a" or not section:
            section += Decimal(0) if word == "a" and "half" in words else _SMALL[word]
    return total + section if total or section else None
