"""Words and chunks of a table's text: what stands together on one line, whatever columns it touches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

from docmill.types import BBox
from preprocess.glyphs import Line
from preprocess.join import WORD_GAP
from preprocess.packed import Glyph

#: In units of the font size. Words with at most this between them are one chunk; a typewriter's space is wider.
CHUNK_GAP: Final = 0.4
TYPEWRITER_GAP: Final = 0.75
#: A line of at least so many glyphs whose widths differ by less than this (units of the font size) is typewritten.
_TYPEWRITER_GLYPHS: Final = 4
_TYPEWRITER_SPREAD: Final = 0.06


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or several that are set as one; `gap` is the widest space that a chunk of its line may hold (points)."""

    text: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float
    gap: float

    @property
    def x(self) -> float:
        """Its middle."""
        return (self.x0 + self.x1) / 2

    @property
    def y(self) -> float:
        """Its middle."""
        return (self.y0 + self.y1) / 2


def words_of(line: Line) -> Iterator[list[Glyph]]:
    """The glyphs of a line word by word; a space is a word of its own."""
    word: list[Glyph] = []
    for glyph in line.glyphs:
        apart = word and line.upright and glyph.x0 - word[-1].x1 > WORD_GAP * glyph.size
        if word and (apart or glyph.char == " " or word[-1].char == " "):
            yield word
            word = []
        word.append(glyph)
    if word:
        yield word


def words_in(lines: Iterable[Line], box: BBox) -> list[Word]:
    """The words whose middle is in the box."""
    words: list[Word] = []
    for line in lines:
        if line.bbox.y0 > box.y1 or line.bbox.y1 < box.y0 or line.bbox.x0 > box.x1 or line.bbox.x1 < box.x0:
            continue
        gap = (TYPEWRITER_GAP if _is_typewritten(line) else CHUNK_GAP) * line.size
        made = (_word(glyphs, gap) for glyphs in words_of(line) if glyphs[0].char != " ")
        words.extend(word for word in made if box.x0 <= word.x <= box.x1 and box.y0 <= word.y <= box.y1)
    return words


def _word(glyphs: Sequence[Glyph], gap: float) -> Word:
    text = "".join(glyph.char for glyph in glyphs)
    y0, y1 = min(glyph.y0 for glyph in glyphs), max(glyph.y1 for glyph in glyphs)
    x0, x1 = min(glyph.x0 for glyph in glyphs), max(glyph.x1 for glyph in glyphs)
    return Word(text, x0, y0, x1, y1, glyphs[0].size, gap)


def _is_typewritten(line: Line) -> bool:
    widths = [glyph.x1 - glyph.x0 for glyph in line.glyphs if glyph.char != " "]
    return len(widths) >= _TYPEWRITER_GLYPHS and max(widths) - min(widths) < _TYPEWRITER_SPREAD * line.size


def baselines(words: Iterable[Word]) -> list[list[Word]]:
    """Words that stand beside each other, from top to bottom, each row from left to right."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda one: one.y):
        if rows and rows[-1][0].y0 <= word.y <= rows[-1][0].y1:
            rows[-1].append(word)
        else:
            rows.append([word])
    return [sorted(row, key=lambda one: one.x0) for row in rows]


def grouped(row: Iterable[Word]) -> list[list[Word]]:
    """The words of one row, those with no more than a space between them together."""
    groups: list[list[Word]] = []
    for word in row:
        if groups and word.x0 - groups[-1][-1].x1 <= min(groups[-1][-1].gap, word.gap):
            groups[-1].append(word)
        else:
            groups.append([word])
    return groups


def chunks(row: Iterable[Word]) -> list[Word]:
    """The words of one row, those with no more than a space between them as one."""
    return [reduce(joined, group) for group in grouped(row)]


def joined(one: Word, other: Word) -> Word:
    """Both as one."""
    return Word(
        f"{one.text} {other.text}",
        min(one.x0, other.x0),
        min(one.y0, other.y0),
        max(one.x1, other.x1),
        max(one.y1, other.y1),
        max(one.size, other.size),
        min(one.gap, other.gap),
    )
