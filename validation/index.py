"""Where a document prints which digits: every number can be looked up without every number being read.

Digits are collected in one pass, keyed by a number's significant digits, so that a value, its tenfold, its negative and
its share are one look-up. A piece of text is read in full when a value asked for may stand in it, and once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from validation.dates import Dated, scan_dates
from validation.numbers import Found, readings, scan_numbers, scan_spelled
from validation.places import NumberAt, Pieces, Place

#: What the pieces are joined with: no blank to any pattern, and printed nowhere.
BREAK = "\0"
#: Groups of digits with blanks between them that may be one number (1 234 567,89).
_MOST_GROUPS = 5

_RUN = re.compile("[0-9](?:[0-9.,'\u00a0 \\n]*[0-9])?")
#: Marks and blanks that may stand between two digits of a number, and how many.
_MARKS = ".,'\u00a0 \n".encode("latin-1")
_KEPT: NDArray[np.bool_] = ~np.isin(np.arange(256), [*_MARKS])
_MOST_MARKS = 3
#: Numbers of so few digits are looked for by a pattern, which is kept; a pattern takes longer to make than to use.
_FEW = 2
_BEFORE = re.compile("[1-9](?:[.,'])?\\Z")
_AFTER = re.compile("[.,']?[0-9.,']*[1-9]")
_GAP = re.compile("[\u00a0 \\n]+")
_PLAIN = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})*(?:\.[0-9]+)?|[0-9]+\.[0-9]+")
_NO_MARKS = str.maketrans("", "", ".,'")
_WRAPPED = re.compile(r"(?<=[0-9.,])\s*\n\s*(?=[0-9.,])")
#: 1.234,56 and no 1,234.56: the document parts decimals with a comma. Each begins with a literal, to be found quickly.
_COMMA_MARK = re.compile(r"\.(?<=[0-9]\.)[0-9]{3},[0-9]{1,2}(?![0-9.,])")
_POINT_MARK = re.compile(r",(?<=[0-9],)[0-9]{3}(?:\.[0-9]|(?![0-9.,]))")


@dataclass(frozen=True)
class Index:
    """`plain` is all pieces in half width, joined by BREAK; `starts` says where each begins in it."""

    pieces: Pieces
    plain: str
    starts: Sequence[int]
    _read: dict[int, tuple[NumberAt, ...]] = field(default_factory=dict)
    _dated: dict[int, tuple[Dated, ...]] = field(default_factory=dict)

    def like(self, value: Decimal) -> list[NumberAt]:
        """Every printed number with these significant digits, whatever its sign, scale and unit, in reading order."""
        wanted = significand(value)
        numbers = sorted({self.piece_at(offset) for offset in self._standing(wanted)})
        found = [one for number in numbers for one in self.numbers_of(number)]
        return [one for one in (*found, *self._spelled) if significand(one.number.value) == wanted]

    def all(self) -> Iterator[NumberAt]:
        """Every number of the document."""
        for number in range(len(self.pieces)):
            yield from self.numbers_of(number)
        yield from self._spelled

    @cached_property
    def comma(self) -> bool:
        """Whether decimals stand after a comma."""
        return bool(_COMMA_MARK.search(self.plain)) and not _POINT_MARK.search(self.plain)

    @cached_property
    def digits(self) -> Mapping[str, list[int]]:
        """Significant digits to the offsets where they stand: for what is not printed so, and may be a slip of it."""
        index: dict[str, list[int]] = defaultdict(list)
        for match in _RUN.finditer(self.plain):
            text = match.group()
            if text.isdecimal():
                index[text.strip("0")].append(match.start())
            else:
                for key in (text.translate(_NO_MARKS).strip("0"),) if _PLAIN.fullmatch(text) else _keys(text):
                    index[key].append(match.start())
        return index

    def piece_at(self, offset: int) -> int:
        return bisect_right(self.starts, offset) - 1

    def place(self, number: int, start: int, stop: int) -> Place:
        return Place(self.pieces[number], start, stop, self.pieces.standing[number][-1])

    def plain_of(self, number: int) -> str:
        """A piece's text in half width."""
        start = self.starts[number]
        return self.plain[start : start + len(self.pieces.texts[number])]

    def dates_of(self, number: int) -> tuple[Dated, ...]:
        if number not in self._dated:
            self._dated[number] = tuple(scan_dates(self.pieces.texts[number], self.plain_of(number)))
        return self._dated[number]

    def numbers_of(self, number: int) -> tuple[NumberAt, ...]:
        """The numbers in digits of one piece; parts of dates are no numbers, save the year."""
        if number not in self._read:
            self._read[number] = tuple(self._numbers_of(number))
        return self._read[number]

    # ------------------------------------------------------------ how it is worked out

    def _standing(self, digits: str) -> Iterator[int]:
        """Where these digits may be all that a number has, but for zeros at its ends."""
        if len(digits) <= _FEW:
            yield from (match.start() for match in _printed(digits).finditer(self.plain))
            return
        text, offsets = self._squeezed
        start = text.find(digits.encode())
        while start >= 0:
            at = offsets[start : start + len(digits)].tolist()
            if all(right - left <= _MOST_MARKS + 1 for left, right in pairwise(at)) and self._whole(at[0], at[-1] + 1):
                yield at[0]
            start = text.find(digits.encode(), start + 1)

    def _whole(self, start: int, stop: int) -> bool:
        before = _BEFORE.search(self.plain, max(0, start - 2), start)
        return before is None and _AFTER.match(self.plain, stop) is None

    @cached_property
    def _squeezed(self) -> tuple[bytes, NDArray[np.int64]]:
        """The text without what may stand between two digits of a number, and where each character of it stands."""
        latin = self.plain.encode("latin-1", "replace")
        return latin.translate(None, _MARKS), np.flatnonzero(_KEPT[np.frombuffer(latin, dtype=np.uint8)])

    @cached_property
    def _spelled(self) -> tuple[NumberAt, ...]:
        """Numbers in words and characters: they are found by their value only."""
        return tuple(one for found in scan_spelled(self.plain) for one in self._at(self.piece_at(found.start), found))

    def _at(self, number: int, found: Found, shift: int = -1) -> Iterator[NumberAt]:
        start = self.starts[number] if shift < 0 else shift
        place = self.place(number, found.start - start, found.stop - start)
        for reading in (found.number, found.other):
            if reading is not None:
                yield NumberAt(reading, place, found.other is None)

    def _numbers_of(self, number: int) -> Iterator[NumberAt]:
        text, cell = self.plain_of(number), self.pieces.standing[number][2] is not None
        dates = [(dated.start, dated.stop) for dated in self.dates_of(number)]
        if cell and (simple := readings(text, comma=self.comma)) and not dates:
            yield NumberAt(simple[0], self.place(number, 0, len(text)))
            return
        for found in scan_numbers(text, whole_cells=cell, comma=self.comma, spelled=False):
            if not any(start <= found.start and found.stop <= stop for start, stop in dates):
                yield from self._at(number, found, 0)
        if cell and _WRAPPED.search(text):
            # A number that its cell was too narrow for: the place is the cell.
            for found in scan_numbers(_WRAPPED.sub("", text), comma=self.comma):
                yield NumberAt(found.number, self.place(number, 0, len(text)))


def significand(value: Decimal) -> str:
    """The digits of a number without sign, decimal mark and zeros at the ends."""
    return "".join(map(str, value.as_tuple().digits)).strip("0")


@lru_cache(4096)
def _printed(digits: str) -> re.Pattern[str]:
    """The pattern of few digits as `Index._standing` looks for many: those stand too often to look at each."""
    if not digits:
        return re.compile("(?<![0-9.,])0(?![0-9])|0[.,]0+(?![0-9])")
    # The first digit comes first in the pattern, and what may not stand before it after it: so re looks for a literal.
    first, marks = digits[0], f"[.,'\u00a0 \\n]{{0,{_MOST_MARKS}}}"
    rest = "".join(f"{marks}{digit}" for digit in digits[1:])
    return re.compile(f"{first}(?<![1-9]{first})(?<![1-9][.,']{first}){rest}(?![.,']?[0-9.,']*[1-9])")


def _keys(text: str) -> Iterator[str]:
    """The significant digits of all numbers that a run of digits, marks and blanks may be read as."""
    groups = _GAP.split(text)
    for first in range(len(groups)):
        for last in range(first + 1, min(first + _MOST_GROUPS, len(groups)) + 1):
            yield "".join(groups[first:last]).translate(_NO_MARKS).strip("0")
    for group in groups:
        if "," in group:
            yield from (part.translate(_NO_MARKS).strip("0") for part in group.split(","))
