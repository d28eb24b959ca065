"""Lines into text: rows, spaces, wrapped numbers, hyphens. Every character keeps its box; one put in has none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, Final

import numpy as np

from docmill.types import Printed
from preprocess.glyphs import Line
from preprocess.packed import Glyph, Glyphs

Ints = np.ndarray[Any, np.dtype[np.intp]]
Codes = np.ndarray[Any, np.dtype[np.uint32]]

#: In units of the font size. A gap wider than a thin space parts Latin words; Chinese is set with looser gaps.
WORD_GAP: Final = 0.22
CJK_GAP: Final = 0.8
#: A gap that a reader takes for the next column.
SEGMENT_GAP: Final = 1.6

_RAISED_SIZE: Final = 0.8
_SPACE: Final = ord(" ")
_FIRST_CJK: Final = 0x2E80
_NUMBER_TAIL: Final = re.compile(r"(?:^|[^\w.,])[-+(（]?(?:\d{1,3}(?:,\d{3})*(?:\.\d+)?[,.]?|\d{1,3}(?:\.\d{3})+,)$")
_GROUPED: Final = re.compile(r"^[-+(（]?\d{1,3}(?:,\d{3})+(?:\.\d+)?[)）]?%?$")
_HYPHENS: Final = "-‐‑"
_BREAKABLE: Final = 4
#: Three digits go on with a number after its comma; four are the year of a date ("June 25," and "2022").
_GROUP: Final = re.compile(r"\d{3}(?!\d)")
#: A number with points between its groups has a comma before its decimals.
_POINT_GROUPED: Final = re.compile(r"\d\.\d{3},$")


def is_cjk(char: str) -> bool:
    """Whether the character is set without spaces: Chinese, kana, and their punctuation and wide forms."""
    return char >= "\u2e80" and unicodedata.east_asian_width(char) in "WF"


_is_cjk = cache(is_cjk)


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that stand beside each other make a row; rows from top to bottom, lines in their order of reading."""
    rows: list[list[Line]] = []
    bottom = top = 0.0
    for line in sorted(lines, key=lambda one: (one.bbox.y0 + one.bbox.y1) / 2):
        middle = (line.bbox.y0 + line.bbox.y1) / 2
        if rows and line.upright and top <= middle <= bottom and _overlap(rows[-1][0], line) > 0.5:
            rows[-1].append(line)
        else:
            rows.append([line])
            top, bottom = (line.bbox.y0, line.bbox.y1) if line.upright else (0.0, 0.0)
    return [
        sorted(row, key=lambda one: one.bbox.x0, reverse=2 * sum(line.rtl for line in row) > len(row)) for row in rows
    ]


def _overlap(one: Line, other: Line) -> float:
    """The shared height as a share of the lower line."""
    shared = min(one.bbox.y1, other.bbox.y1) - max(one.bbox.y0, other.bbox.y0)
    return shared / max(0.1, min(one.bbox.y1 - one.bbox.y0, other.bbox.y1 - other.bbox.y0))


def row_printed(row: Sequence[Line], *, segment: str = " ") -> Printed:
    """The text of a row; `segment` stands between what a wide gap parts."""
    return rows_printed([row], segment=segment)[0]


def rows_printed(rows: Sequence[Sequence[Line]], *, segment: str = " ") -> list[Printed]:
    """`row_printed` for many rows in one go."""
    lines = [(number, line) for number, row in enumerate(rows) for line in _untangled(row)]
    if not lines:
        return []
    glyphs = Glyphs.joined([line.glyphs for _, line in lines])
    lengths = [len(line.glyphs) for _, line in lines]
    codes = np.frombuffer(glyphs.text.encode("utf-32-le", "surrogatepass"), "<u4")
    kept = np.flatnonzero(codes != _SPACE)
    apart = _Gaps(glyphs, codes, kept, np.repeat(np.arange(len(lines)), lengths)[kept], [line for _, line in lines])
    owner = np.repeat(np.array([number for number, _ in lines]), lengths)[kept]
    return _printed(glyphs, kept, owner, apart.signs(segment), len(rows))


def _printed(glyphs: Glyphs, kept: Ints, owner: Ints, signs: Mapping[int, str], rows: int) -> list[Printed]:
    """The kept glyphs of each row with the signs that stand before some of them."""
    text = glyphs.text.replace(" ", "")
    boxes = glyphs.edges[kept].astype("<f4").tobytes()
    bounds = np.searchsorted(owner, np.arange(rows + 1)).tolist()
    cuts = iter([*sorted(signs), len(text)])
    cut = next(cuts)
    out = []
    for start, stop in pairwise(bounds):
        texts, packed, place = [], [], start
        while cut < stop:
            if cut > start:  # what stands between two rows belongs to neither
                sign = signs[cut]
                texts += [text[place:cut], sign]
                packed += [boxes[16 * place : 16 * cut], bytes(16 * len(sign))]
                place = cut
            cut = next(cuts)
        out.append(Printed("".join([*texts, text[place:stop]]), b"".join([*packed, boxes[16 * place : 16 * stop]])))
    return out


def _untangled(row: Sequence[Line]) -> Sequence[Line]:
    """Lines that reach into each other (a raised sign set apart from its word) as one, from left to right."""
    if len(row) == 1:
        return row
    plain = all(line.upright and not line.rtl for line in row)
    reach = any(line.bbox.x0 < before.bbox.x1 - 0.5 for before, line in pairwise(row))
    if not (plain and reach):
        return row
    glyphs = Glyphs.joined([line.glyphs for line in row])
    return [row[0].part(glyphs.picked(np.argsort(glyphs.edges[:, 0], kind="stable")))]


class _Gaps:
    """What stands between each two neighbours of the kept glyphs of some lines."""

    def __init__(self, glyphs: Glyphs, codes: Codes, kept: Ints, owner: Ints, lines: Sequence[Line]) -> None:
        """`owner` has for each kept glyph the place of its line among the lines."""
        self._glyphs, self._kept = glyphs, kept
        before, after = kept[:-1], kept[1:]
        sizes, edges, of = glyphs.sizes, glyphs.edges, owner[1:]
        upright, rtl = (np.array([getattr(line, name) for line in lines]) for name in ("upright", "rtl"))
        starts = np.cumsum([0, *(len(line.glyphs) for line in lines)])
        self._spaced = (after > starts[of]) & (codes[after - 1] == _SPACE)
        self._size = np.maximum(sizes[before], sizes[after])
        self._gap = np.where(upright[of], edges[after, 0] - edges[before, 2], 0.0)
        self._rtl = rtl[of]
        wide = cjk_mask(glyphs.text, codes)[kept]
        self._wide = wide[:-1] | wide[1:]
        self._small = np.flatnonzero(~self._rtl & (sizes[after] <= _RAISED_SIZE * sizes[before]))

    def signs(self, segment: str) -> dict[int, str]:
        """The sign that stands before a kept glyph, for those that have one."""
        gap, size = self._gap, self._size
        loose = gap > WORD_GAP * size
        spaces = np.where(
            self._wide,
            (gap > CJK_GAP * size) | (self._spaced & loose),
            self._spaced | loose | (gap < -2 * size),
        )
        spaces = np.where(self._rtl, self._spaced, spaces)
        parted = ~self._rtl & (gap > SEGMENT_GAP * size)
        found = dict.fromkeys((np.flatnonzero(spaces & ~parted) + 1).tolist(), " ")
        raised = [place for place in self._small.tolist() if not parted[place] and self._raised(place)]
        found |= {place + 1: "^" for place in raised}
        return found | dict.fromkeys((np.flatnonzero(parted) + 1).tolist(), segment)

    def _raised(self, place: int) -> bool:
        last, glyph = (next(iter(self._glyphs[at : at + 1])) for at in self._kept[place : place + 2].tolist())
        return _is_raised(last, glyph)


def cjk_mask(text: str, codes: Codes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """`is_cjk` of each character."""
    if not len(codes) or int(codes.max()) < _FIRST_CJK:
        return np.zeros(len(codes), bool)
    return np.array([_is_cjk(char) for char in text])


def _is_raised(last: Glyph, glyph: Glyph) -> bool:
    """A small digit or bracket above the line, glued to what precedes it: a footnote mark or an exponent."""
    if glyph.size > _RAISED_SIZE * last.size or not (glyph.char.isdigit() or glyph.char in "([*"):
        return False
    raised = (last.y0 + last.y1) / 2 - (glyph.y0 + glyph.y1) / 2
    return raised > 0.08 * last.size and (last.char.isalnum() or last.char in "%)）")


def joined(parts: Sequence[Printed | str]) -> Printed:
    """Pieces of text as one; a plain string stands on no page."""
    boxes = [bytes(16 * len(part)) if isinstance(part, str) else part.boxes for part in parts]
    return Printed("".join([part if isinstance(part, str) else part.text for part in parts]), b"".join(boxes))


def cell_printed(rows: Sequence[Sequence[Line]]) -> Printed:
    """The rows of a table cell as one line: a number that was wrapped in a narrow column is one number again."""
    out: list[Printed | str] = []
    before = ""
    for printed in rows_printed(rows):
        if before:
            seam = cell_seam(before, printed.text)
            out.append(seam)
            before += seam
        out.append(printed)
        before += printed.text
    return joined(out)


def cell_seam(before: str, after: str) -> str:
    """What stands between two lines of a cell: nothing in Chinese and inside a number, else a space."""
    if is_cjk(before[-1]) or is_cjk(after[0]) or _wraps_number(before, after):
        return ""
    return " "


def _wraps_number(before: str, after: str) -> bool:
    """Whether a number goes on in the next line of its cell."""
    tail = before.rsplit(" ", 1)[-1]
    if not tail[-1:] or not _NUMBER_TAIL.search(tail):
        return False
    if tail[-1] in ",." and after[0].isdigit():
        return tail[-1] == "." or bool(_GROUP.match(after) or _POINT_GROUPED.search(tail))
    if after[0] in ",." and after[1:2].isdigit():
        return True
    return after[0].isdigit() and _completes_number(tail, after.split(" ", 1)[0])


def _completes_number(tail: str, head: str) -> bool:
    """`234,753.2` + `4` is one number, `1,234` + `5,678` is two: the whole must be better formed than its parts."""
    whole = tail + head
    if not _GROUPED.match(whole):
        return False
    decimals = tail.partition(".")[2]
    return len(decimals) == 1 if "." in tail else not _GROUPED.match(tail)


def text_seam(before: str, after: str) -> str | None:
    """What joins two lines of a paragraph; None takes the hyphen away that parted a word."""
    last, first = before[-1], after[0]
    if is_cjk(last) or is_cjk(first):
        return ""
    word = before[-_BREAKABLE:]
    if last in _HYPHENS and first.islower() and word[:-1].isalpha():
        return None
    return " "
