"""Lines into text: rows, spaces, wrapped numbers, hyphens. Every character keeps its box; one put in has none."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from docmill.types import BBox
from preprocess.glyphs import Glyph, Line

Characters = list[tuple[str, BBox | None]]

#: In units of the font size. A gap wider than a thin space parts Latin words; Chinese is set with looser gaps.
WORD_GAP: Final = 0.22
CJK_GAP: Final = 0.8
#: A gap that a reader takes for the next column.
SEGMENT_GAP: Final = 1.6

_RAISED_SIZE: Final = 0.8
_NUMBER_TAIL: Final = re.compile(r"(?:^|[^\w.,])[-+(（]?\d{1,3}(?:,\d{3})*(?:\.\d+)?[,.]?$")
_GROUPED: Final = re.compile(r"^[-+(（]?\d{1,3}(?:,\d{3})+(?:\.\d+)?[)）]?%?$")
_HYPHENS: Final = "-‐‑"
_BREAKABLE: Final = 4


def is_cjk(char: str) -> bool:
    """Whether the character is set without spaces: Chinese, kana, and their punctuation and wide forms."""
    return char >= "\u2e80" and unicodedata.east_asian_width(char) in "WF"


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines that stand beside each other make a row; rows from top to bottom, lines from left to right."""
    rows: list[list[Line]] = []
    bottom = top = 0.0
    for line in sorted(lines, key=lambda one: (one.bbox.y0 + one.bbox.y1) / 2):
        middle = (line.bbox.y0 + line.bbox.y1) / 2
        if rows and line.upright and top <= middle <= bottom and _overlap(rows[-1][0], line) > 0.5:
            rows[-1].append(line)
        else:
            rows.append([line])
            top, bottom = (line.bbox.y0, line.bbox.y1) if line.upright else (0.0, 0.0)
    return [sorted(row, key=lambda one: one.bbox.x0) for row in rows]


def _overlap(one: Line, other: Line) -> float:
    """The shared height as a share of the lower line."""
    shared = min(one.bbox.y1, other.bbox.y1) - max(one.bbox.y0, other.bbox.y0)
    return shared / max(0.1, min(one.bbox.y1 - one.bbox.y0, other.bbox.y1 - other.bbox.y0))


def row_characters(row: Sequence[Line], *, segment: str = " ") -> Characters:
    """The characters of a row; `segment` stands between what a wide gap parts."""
    out: Characters = []
    last: Glyph | None = None
    for line in _untangled(row):
        spaced = False
        for glyph in line.glyphs:
            if glyph.char == " ":
                spaced = True
                continue
            if last is not None:
                out.extend((char, None) for char in _between(last, glyph, spaced, line, segment))
            out.append((glyph.char, glyph.box))
            last, spaced = glyph, False
    return out


def _untangled(row: Sequence[Line]) -> Sequence[Line]:
    """Lines that reach into each other (a raised sign set apart from its word) as one, from left to right."""
    plain = all(line.upright and not line.rtl for line in row)
    reach = any(line.bbox.x0 < before.bbox.x1 - 0.5 for before, line in pairwise(row))
    if not (plain and reach):
        return row
    return [row[0].part(sorted((glyph for line in row for glyph in line.glyphs), key=lambda glyph: glyph.x0))]


def _between(last: Glyph, glyph: Glyph, spaced: bool, line: Line, segment: str) -> str:
    """What stands between two characters of a row: nothing, a space, a column gap, or a mark for a raised note."""
    size = max(last.size, glyph.size)
    gap = glyph.x0 - last.x1 if line.upright else 0.0
    if line.rtl:
        return " " if spaced else ""
    if gap > SEGMENT_GAP * size:
        return segment
    if _is_raised(last, glyph):
        return "^"
    wide = is_cjk(last.char) or is_cjk(glyph.char)
    if wide:
        return " " if gap > CJK_GAP * size or (spaced and gap > WORD_GAP * size) else ""
    return " " if spaced or gap > WORD_GAP * size or gap < -2 * size else ""


def _is_raised(last: Glyph, glyph: Glyph) -> bool:
    """A small digit or bracket above the line, glued to what precedes it: a footnote mark or an exponent."""
    if glyph.size > _RAISED_SIZE * last.size or not (glyph.char.isdigit() or glyph.char in "([*"):
        return False
    raised = (last.y0 + last.y1) / 2 - (glyph.y0 + glyph.y1) / 2
    return raised > 0.08 * last.size and (last.char.isalnum() or last.char in "%)）")


def text_of(characters: Characters) -> str:
    return "".join(char for char, _ in characters)


def cell_characters(rows: Sequence[Sequence[Line]]) -> Characters:
    """The rows of a table cell as one line: a number that was wrapped in a narrow column is one number again."""
    out: Characters = []
    for row in rows:
        characters = row_characters(row)
        if out:
            out.extend((char, None) for char in _cell_seam(text_of(out), text_of(characters)))
        out.extend(characters)
    return out


def _cell_seam(before: str, after: str) -> str:
    if is_cjk(before[-1]) or is_cjk(after[0]) or _wraps_number(before, after):
        return ""
    return " "


def _wraps_number(before: str, after: str) -> bool:
    """Whether a number goes on in the next line of its cell."""
    tail = before.rsplit(" ", 1)[-1]
    if not tail[-1:] or not _NUMBER_TAIL.search(tail):
        return False
    if tail[-1] in ",." and after[0].isdigit():
        return True
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


def seam(before: Characters, after: Characters) -> str | None:
    """What joins two lines of a paragraph; None takes the hyphen away that parted a word."""
    return text_seam(text_of(before[-_BREAKABLE:]), after[0][0])


def text_seam(before: str, after: str) -> str | None:
    """`seam` for two texts."""
    last, first = before[-1], after[0]
    if is_cjk(last) or is_cjk(first):
        return ""
    word = before[-_BREAKABLE:]
    if last in _HYPHENS and first.islower() and word[:-1].isalpha():
        return None
    return " "
