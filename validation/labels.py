"""Labels: the words beside which a document prints the value of a field (`x-labels` in a profile's schema).

A value stands beside a label that is printed before it in its line, above it in its column, or, in a table, to the left
in its row or at the head of its column. What is beside is judged generously: a finding must be worth a person's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from docmill.types import BBox
from validation.facts import Facts
from validation.places import Place
from validation.text import fold, half

#: Characters of a sentence that may stand between a label and its value.
_REACH = 60
#: Points between a label and a value to its right in a block of its own.
_GAP = 250.0
#: A line counts as directly above if the distance is at most this share of a line's height.
_LEADING = 1.2
#: The end of a sentence; an abbreviation such as "no." ends none.
_SENTENCE_END = re.compile(r"[A-Za-z]{4,}\.\s|[。；;]")
#: What may stand between a label and a value on the next line: no letter and no digit, but an aside in brackets.
_NOTHING = re.compile(r"(?:\([^()]*\)|[^\w()])*")
#: A label that has its value in its own line: a colon and something, or a digit somewhere.
_SERVED = re.compile(r"[^\S\n]*:[^\S\n]*\S|[^\n]*[0-9]")
#: A cell of at most so many characters that begins with a label is one ("Date and time").
_CELL = 24
#: What follows a label: an aside in brackets, then a colon, a gap of two blanks, the end of the line.
_ASIDE = re.compile(r"\s?(?:\([^()]*\))?\s?(:|[ \u3000\t]{2,}|\s*$|\s*\n)")
_ALONE = re.compile(r"[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Label:
    """A label's pattern, and the literal that it begins with: that is quick to look for."""

    begins: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


@cache
def labels_of(texts: tuple[str, ...]) -> tuple[Label, ...]:
    """What finds these labels in half width and small letters, whole words only, whatever their blanks."""
    unique = sorted({half(text).strip().lower() for text in texts} - {""}, key=len, reverse=True)
    return tuple(map(_label, unique))


def search(labels: tuple[Label, ...], lower: str) -> Iterator[tuple[int, int]]:
    """Every stretch of text where one of the labels stands, the longest where several do."""
    found: dict[int, int] = {}
    for label in labels:
        if all(word in lower for word in label.words):
            for start, stop in _search(label, lower):
                found.setdefault(start, stop)
    return iter(sorted(found.items()))


def _search(label: Label, lower: str) -> Iterator[tuple[int, int]]:
    offset = lower.find(label.begins)
    while offset >= 0:
        match = label.pattern.match(lower, offset)
        if match:
            yield match.span()
        offset = lower.find(label.begins, offset + 1)


def stands_beside(place: Place, labels: tuple[Label, ...], facts: Facts) -> bool:
    """Whether one of the labels belongs to the value at this place."""
    if _before(place, labels, facts) or any(_in(labels, text) for text in _left_and_head(place, facts)):
        return True
    boxes = _boxes(place, labels, facts)
    box = place.bbox if boxes else None
    return box is not None and any(_touch(label, served, box) for label, served in boxes)


def stands_with(place: Place, words: str, facts: Facts) -> bool:
    """Whether the words stand in the same block or row as the value, or label it."""
    grid, row = facts.grid(place), place.piece.row or 0
    wanted = fold(words).lower()
    texts = [place.piece.printed.text]
    if grid is not None:
        texts = [cell.text for (at, _), cell in grid.cells.items() if at == row]
    return any(wanted in fold(text).lower() for text in texts) or stands_beside(place, labels_of((words,)), facts)


def printed_labels(labels: Sequence[str], value: str, facts: Facts, *, as_labels: bool = False) -> tuple[str, ...]:
    """The labels that the document prints, in its spelling; one that is a part of the value cannot be told from it.

    `as_labels`: only where it labels something, which "the company" and "as of" in a sentence do not.
    """
    others = [label for label in labels if fold(label).lower() not in fold(value).lower()]
    return tuple(dict.fromkeys(spelling for label in others if (spelling := _printed(label, facts, as_labels))))


def _printed(label: str, facts: Facts, as_labels: bool) -> str:
    """The label in the document's spelling; empty if it does not print it."""
    for number, stretches in met(facts, labels_of((label,))).items():
        plain = half(facts.pieces[number].printed.text)
        for start, stop in stretches:
            heads = facts.pieces[number].table_id is not None and start == 0 and len(plain) <= _CELL
            if not as_labels or heads or _labels_something(plain, start, stop):
                return " ".join(plain[start:stop].split())
    return ""


def _labels_something(plain: str, start: int, stop: int) -> bool:
    """At the beginning of a line or cell, with nothing but an aside up to a colon, a gap, or the end."""
    before = plain[:start].rpartition("\n")[2]
    begins = not before.strip() or before.endswith(("  ", "\t", "\u3000"))
    after = _ASIDE.match(plain, stop)
    return begins and after is not None


def heads_text(place: Place) -> bool:
    """Whether a colon follows at once: what stands here is a label itself."""
    return half(place.piece.printed.text)[place.stop :].lstrip().startswith(":")


def _in(labels: tuple[Label, ...], text: str) -> bool:
    return next(search(labels, text.lower()), None) is not None


def _label(text: str) -> Label:
    words = text.split()
    begins = words[0] if words[0].isascii() else words[0][0]
    parts = [part for word in words for part in ((word,) if word.isascii() else word)]
    return Label(begins, tuple(parts), re.compile(_pattern(text)))


def _pattern(label: str) -> str:
    """Blanks are free between Chinese characters (姓　名) and needed between words."""
    words = (r"\s*".join(map(re.escape, word)) if not word.isascii() else re.escape(word) for word in label.split())
    text = r"\s+".join(words)
    left = "(?<![A-Za-z0-9])" if _ALONE.match(label[:1]) else ""
    return left + text + ("(?![A-Za-z0-9])" if _ALONE.match(label[-1:]) else "")


def met(facts: Facts, labels: tuple[Label, ...]) -> Mapping[int, list[tuple[int, int]]]:
    """Where the labels stand in a document, by piece: the stretches in that piece."""
    return facts.located(labels, lambda: search(labels, facts.lower))


def _before(place: Place, labels: tuple[Label, ...], facts: Facts) -> bool:
    """A label before the value in its line, or alone at the end of the line above."""
    number = facts.pieces.number_of(place.piece)
    stretches = met(facts, labels).get(number, ()) if number is not None else ()
    plain = half(place.piece.printed.text) if stretches else ""
    for _, stop in stretches:
        between = plain[stop : place.start]
        if stop > place.start:
            break
        one_line = "\n" not in between and len(between) <= _REACH and not _SENTENCE_END.search(between)
        if one_line or _NOTHING.fullmatch(between):
            return True
    return False


def _left_and_head(place: Place, facts: Facts) -> list[str]:
    grid, row, col = facts.grid(place), place.piece.row or 0, place.piece.col or 0
    if grid is None:
        return []
    left = [grid.text(row, other) for other in range(col)]
    head = max(grid.table.header_rows, 1)
    above = [
        half(cell.text)
        for above in range(row)
        if (cell := grid.cells.get((above, col))) and (cell.header or cell.row < head) and cell.row < row
    ]
    return [*left, *above]


def _boxes(place: Place, labels: tuple[Label, ...], facts: Facts) -> list[tuple[BBox, bool]]:
    """The labels in other lines of text on the value's page, and whether each has a value in its own line."""
    found = []
    for number, stretches in met(facts, labels).items():
        piece = facts.pieces[number]
        if piece.page != place.page or piece.table_id is not None:
            continue
        text = half(piece.printed.text)
        for start, stop in stretches:
            apart = piece is not place.piece or "\n" in text[stop : place.start]
            box = piece.printed.box(start, stop) if apart else None
            if box is not None:
                found.append((box, _SERVED.match(text, stop) is not None))
    return found


def _touch(label: BBox, served: bool, value: BBox) -> bool:
    """The label stands to the left in the same line, or in the line directly above, over the value and without one."""
    height = min(label.y1 - label.y0, value.y1 - value.y0)
    same_line = min(label.y1, value.y1) - max(label.y0, value.y0) > height / 2
    if same_line:
        return -1 <= value.x0 - label.x1 <= _GAP
    over = min(label.x1, value.x1) > max(label.x0, value.x0)
    return over and not served and -height / 2 <= value.y0 - label.y1 <= height * _LEADING
