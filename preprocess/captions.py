"""What is printed above a table belongs to it: title, unit line, date. They become captions and unit facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from docmill.types import Block, BlockKind, Table
from preprocess.units import UnitFact, table_unit, unit_of

#: Short lines above a table that may be its own, and the points between them.
_MOST_LINES: Final = 3
_GAP: Final = 30.0
_LONGEST: Final = 100
_SENTENCE_END: Final = ("。", "；", ";", ".", "，", ",")
_CAPTIONABLE: Final = frozenset({BlockKind.HEADING, BlockKind.PARAGRAPH, BlockKind.CAPTION})


def tie_captions(blocks: Sequence[Block]) -> list[Block]:
    """The blocks of a page, those that belong to a table made captions, and each table with its caption and unit."""
    tied = list(blocks)
    for index, block in enumerate(blocks):
        if block.table is not None:
            own = _own_lines(tied, index)
            for place in own:
                tied[place] = replace(tied[place], kind=BlockKind.CAPTION)
            above = [tied[place].printed.text for place in own]
            tied[index] = replace(block, table=_described(block.table, above))
    return tied


def _own_lines(blocks: Sequence[Block], index: int) -> list[int]:
    """Where the table's own lines stand among the blocks before it, from the top down."""
    own: list[int] = []
    top = blocks[index].bbox.y0
    for place in range(index - 1, max(-1, index - 1 - _MOST_LINES), -1):
        block = blocks[place]
        if block.kind not in _CAPTIONABLE or not -_GAP < top - block.bbox.y1 < _GAP or not _is_short(block):
            break
        own.insert(0, place)
        top = block.bbox.y0
        if unit_of(block.printed.text) is None and block.kind is BlockKind.HEADING:
            break
    return own


def _is_short(block: Block) -> bool:
    text = block.printed.text
    stated = unit_of(text) is not None
    return len(text) <= _LONGEST and (stated or not text.rstrip().endswith(_SENTENCE_END))


def _described(table: Table, above: Sequence[str]) -> Table:
    fact = table_unit(table, reversed(above)) or UnitFact(None, None)
    caption = "\n".join(above) or None
    return replace(table, caption=caption, unit=fact.unit, scale=fact.scale)
