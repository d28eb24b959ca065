"""Chunks before they are counted: blocks of text, a long one with its sentences as rows."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from docmill.types import Block, BlockKind, Piece, Printed

#: A paragraph longer than this can be split at its sentences.
SPLIT_FROM: Final = 64
#: Characters of a "sentence" without an end; it is cut at a space, or anywhere.
LONGEST_SENTENCE: Final = 160

_SENTENCE: Final = re.compile(r"[^。！？；!?\n]*?(?:[。！？；!?]+[”’」』）)\"]*|\.(?=\s+[A-Z(\"“])|\n|$)\s*")
_MARKS: Final = {BlockKind.HEADING: "## ", BlockKind.ANNOTATION: "[note] ", BlockKind.FORM_FIELD: "[field] "}


@dataclass(frozen=True, slots=True)
class Draft:
    """A chunk before it is counted; `foot` closes what `head` opens; `block` is the block of text that it shows."""

    text: str
    page: int
    pieces: tuple[Piece, ...]
    head: str = ""
    head_pieces: tuple[Piece, ...] = ()
    rows: tuple[Draft, ...] = ()
    foot: str = ""
    block: Block | None = None


def text_draft(block: Block) -> Draft:
    """A block of text; a long one with its sentences as rows, so that it can be split there."""
    mark, printed = _MARKS.get(block.kind, ""), block.printed
    text = f"{mark}{printed.text}\n"
    rows: tuple[Draft, ...] = ()
    if len(text) > SPLIT_FROM:
        cuts = sentences(printed.text)
        if len(cuts) > 1:
            rows = tuple(_sentence(printed, start, stop, block.page) for start, stop in cuts)
            rows = (
                replace(rows[0], text=mark + rows[0].text),
                *rows[1:-1],
                replace(rows[-1], text=rows[-1].text + "\n"),
            )
    return Draft(text, block.page, (Piece(printed, block.page),), rows=rows, block=block)


def _sentence(printed: Printed, start: int, stop: int, page: int) -> Draft:
    boxes = printed.boxes[16 * start : 16 * stop]
    part = Printed(printed.text[start:stop], boxes)
    return Draft(part.text, page, (Piece(part, page),))


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text start and stop; what has no end for long is cut at a space."""
    cuts = []
    for match in _SENTENCE.finditer(text):
        start = match.start()
        while match.end() - start > LONGEST_SENTENCE:
            stop = text.rfind(" ", start + LONGEST_SENTENCE // 2, start + LONGEST_SENTENCE) + 1
            stop = stop or start + LONGEST_SENTENCE
            cuts.append((start, stop))
            start = stop
        if match.end() > start:
            cuts.append((start, match.end()))
    return cuts
