"""Paragraphs that go on over a page break: the first block of a page continues the last paragraph before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import Block, BlockKind
from preprocess.join import is_cjk

#: What ends a sentence, also inside closing quotes and brackets.
_ENDED: Final = re.compile(r"[.。!！?？;；:：…][\"'”’」』）)\]]*$")
#: What starts a list item, a heading or a note, never the rest of a sentence.
_STARTS: Final = re.compile(
    r"^(?:[（(]?[一二三四五六七八九十百\d]{1,3}[)）、．]|\d{1,3}[.．]\s|[•·●■◆▪*–—-]\s?|第[一二三四五六七八九十百\d]+[章节条篇款]"
    r"|[①-⑳]|\[\d|[a-zA-Z][.)]\s|注[:：\d])"
)
_CLAUSE: Final = re.compile(r"[，、,]")
#: A line shorter than this is a label or a record and no sentence.
_SENTENCE: Final = 12
#: How far the boxes of two parts of one paragraph may differ in height: fonts of one size differ, in two scripts more.
_SAME_SIZE: Final = 0.2


def goes_on(before: Sequence[Block], after: Sequence[Block]) -> bool:
    """Whether the first block of a page goes on with the last paragraph of the page before."""
    last = last_paragraph(before)
    first = next((block for block in after if block.kind in (BlockKind.PARAGRAPH, BlockKind.TABLE)), None)
    if last is None or first is None or first is not after[0] or first.kind is not BlockKind.PARAGRAPH:
        return False
    one, other = last.printed.text.rsplit("\n", 1)[-1], first.printed.text.split("\n", 1)[0]
    return (
        _alike(_height(last, -1), _height(first))
        and "  " not in one + other
        and _is_open(one, last.printed.text)
        and _follows(one, other)
    )


def last_paragraph(blocks: Sequence[Block]) -> Block | None:
    """The paragraph that a next page may go on with: the last in the page's larger print, so no footnote."""
    for block in reversed(blocks):
        if block.kind in (BlockKind.TABLE, BlockKind.HEADING, BlockKind.CAPTION):
            return None
        if block.kind is BlockKind.PARAGRAPH and not _is_note(block, blocks):
            return block
    return None


def _is_note(block: Block, blocks: Sequence[Block]) -> bool:
    largest = max((_height(other) for other in blocks if other.kind is BlockKind.PARAGRAPH), default=0.0)
    return _height(block) < (1 - _SAME_SIZE) * largest


def _alike(one: float, other: float) -> bool:
    return abs(one - other) <= _SAME_SIZE * max(one, other)


def _height(block: Block, at: int = 0) -> float:
    """The height of the print, by one of the block's characters."""
    box = block.printed.character_box(at % max(1, len(block.printed.text))) if block.printed.text else None
    return box.y1 - box.y0 if box else 0.0


def _is_open(line: str, text: str) -> bool:
    """Whether a sentence has begun and not ended."""
    return len(text) >= _SENTENCE and not _ENDED.search(line)


def _follows(one: str, other: str) -> bool:
    """Whether the next line can be the rest of the sentence: prose on both sides, and no new item."""
    if _STARTS.match(other) or not other:
        return False
    if is_cjk(one[-1]) or is_cjk(other[0]):
        return bool(_CLAUSE.search(one) or one[-1] in "的和与及或在为是对将由") and bool(
            _CLAUSE.search(other) or _ENDED.search(other.rstrip()) or "。" in other
        )
    return other[0].islower()


def mark_continued(pages: Sequence[Sequence[Block]]) -> list[list[Block]]:
    """The body blocks of each page, those that go on from the page before marked as such."""
    marked = [list(blocks) for blocks in pages]
    for before, blocks in zip(pages, marked[1:], strict=False):
        if goes_on(before, blocks):
            blocks[0] = replace(blocks[0], continues=True)
    return marked
