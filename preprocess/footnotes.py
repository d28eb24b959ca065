"""Footnotes: small print at the foot of a page's text, each note behind its mark."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Final

from docmill.types import Block, BlockKind

#: How much smaller than the page's print a note is.
_SMALLER: Final = 0.92
#: A note begins with a mark: 1, (1), *, †, ①, 注1.
_MARKED: Final = re.compile(r"^(?:[(（\[]?\d{1,3}[)）\].]?\s*\D|[*†‡§¶]|[①-⑳]|注\s*[\d:：一二三])")
#: Notes stand in the lower part of a page.
_FROM: Final = 0.5


def mark_footnotes(blocks: Sequence[Block], height: float) -> list[Block]:
    """The blocks of a page, its footnotes marked as such: the last ones, in small print, from the first mark on."""
    size = _usual(blocks)
    start = len(blocks)
    while start and _is_small(blocks[start - 1], size) and blocks[start - 1].bbox.y0 > _FROM * height:
        start -= 1
    notes = [place for place in range(start, len(blocks)) if _MARKED.match(blocks[place].printed.text)]
    if not notes or notes[0] == 0:
        return list(blocks)
    return [
        replace(block, kind=BlockKind.FOOTNOTE) if place >= notes[0] else block for place, block in enumerate(blocks)
    ]


def _is_small(block: Block, size: float) -> bool:
    return block.kind is BlockKind.PARAGRAPH and 0 < _print(block) < _SMALLER * size


def _usual(blocks: Sequence[Block]) -> float:
    """The height of the print that most of the page's text has."""
    sizes = [_print(block) for block in blocks if block.kind is BlockKind.PARAGRAPH for _ in block.printed.text]
    return median(sizes) if sizes else 0.0


def _print(block: Block) -> float:
    """The height of a block's print, by a letter in its middle."""
    text = block.printed.text
    box = block.printed.character_box(len(text) // 2) or block.printed.character_box(0) if text else None
    return box.y1 - box.y0 if box else 0.0
