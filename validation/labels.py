"""Labels: the words beside which a document prints the value of a field (`x-labels` in a profile's schema).

A value stands beside a label that is printed before it in its line, above it in its column, or, in a table, to the left
in its row or at the head of its column. What is beside is judged generously: a finding must be worth a person's time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from docmill.types import BBox, Table
from validation.facts import Facts, Place
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
_ALONE = re.compile(r"[A-Za-z0-9]")


@cache
def pattern_of(labels: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of the labels in text in half width, whole words only, whatever its case and blanks."""
    longest_first = sorted({half(label).strip() for label in labels}, key=len, reverse=True)
    return re.compile("|".join(map(_pattern, longest_first)), re.IGNORECASE)


def stands_beside(place: Place, labels: re.Pattern[str], facts: Facts) -> bool:
    """Whether one of the labels belongs to the value at this place."""
    table = facts.tables.get(place.piece.table_id or "")
    if _before(place, labels) or (table and any(labels.search(half(text)) for text in _left_and_head(table, place))):
        return True
    box = place.bbox
    return box is not None and any(_touch(label, served, box) for label, served in _boxes(place, labels, facts))


def stands_with(place: Place, words: str, facts: Facts) -> bool:
    """Whether the words stand in the same block or row as the value, or label it."""
    table = facts.tables.get(place.piece.table_id or "")
    row = [cell.text for cell in table.cells if cell.row == place.piece.row] if table else []
    if any(fold(words).lower() in fold(text).lower() for text in (place.piece.printed.text, *row)):
        return True
    return stands_beside(place, pattern_of((words,)), facts)


def printed_labels(labels: Sequence[str], value: str, facts: Facts) -> tuple[str, ...]:
    """The labels that the document prints, in its spelling; one that is a part of the value cannot be told from it."""
    others = [label for label in labels if fold(label).lower() not in fold(value).lower()]
    found = (re.search(_pattern(half(label)), facts.text, re.IGNORECASE) for label in others)
    return tuple(dict.fromkeys(" ".join(match.group().split()) for match in found if match))


def heads_text(place: Place) -> bool:
    """Whether a colon follows at once: what stands here is a label itself."""
    return half(place.piece.printed.text)[place.stop :].lstrip().startswith(":")


def _pattern(label: str) -> str:
    """Blanks are free between Chinese characters (姓　名) and needed between words."""
    words = (r"\s*".join(map(re.escape, word)) if not word.isascii() else re.escape(word) for word in label.split())
    text = r"\s+".join(words)
    left = "(?<![A-Za-z0-9])" if _ALONE.match(label[:1]) else ""
    return left + text + ("(?![A-Za-z0-9])" if _ALONE.match(label[-1:]) else "")


def _before(place: Place, labels: re.Pattern[str]) -> bool:
    """A label before the value in its line, or alone at the end of the line above."""
    before = half(place.piece.printed.text)[: place.start]
    for match in labels.finditer(before):
        between = before[match.end() :]
        one_line = "\n" not in between and len(between) <= _REACH and not _SENTENCE_END.search(between)
        if one_line or _NOTHING.fullmatch(between):
            return True
    return False


def _left_and_head(table: Table, place: Place) -> Iterator[str]:
    row, col = place.piece.row or 0, place.piece.col or 0
    head = max(table.header_rows, 1)
    for cell in table.cells:
        left = cell.row <= row < cell.row + cell.rowspan and cell.col < col
        above = (cell.header or cell.row < head) and cell.row < row and cell.col <= col < cell.col + cell.colspan
        if left or above:
            yield cell.text


def _boxes(place: Place, labels: re.Pattern[str], facts: Facts) -> Iterator[tuple[BBox, bool]]:
    """The labels in other lines of text on the value's page, and whether each has a value in its own line."""
    for piece in facts.pieces:
        if piece.page != place.page or piece.table_id is not None:
            continue
        text = half(piece.printed.text)
        for match in labels.finditer(text):
            apart = piece is not place.piece or "\n" in text[match.end() : place.start]
            box = piece.printed.box(*match.span()) if apart else None
            if box is not None:
                yield box, _SERVED.match(text, match.end()) is not None


def _touch(label: BBox, served: bool, value: BBox) -> bool:
    """The label stands to the left in the same line, or in the line directly above, over the value and without one."""
    height = min(label.y1 - label.y0, value.y1 - value.y0)
    same_line = min(label.y1, value.y1) - max(label.y0, value.y0) > height / 2
    if same_line:
        return -1 <= value.x0 - label.x1 <= _GAP
    over = min(label.x1, value.x1) > max(label.x0, value.x0)
    return over and not served and -height / 2 <= value.y0 - label.y1 <= height * _LEADING
