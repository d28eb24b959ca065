"""Cut a document into parts of limited length: at pages and blocks, a table only between its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from docmill.errors import PromptTooLong
from docmill.types import Chunk, Part, Piece
from preprocess.render import anchor

#: A part is closed early at the start of a page if it is at least so full.
FULL_ENOUGH: Final = 0.75


@dataclass(frozen=True, slots=True)
class _Scrap:
    """What goes into a part as one: a chunk, or some rows of one under its head."""

    text: str
    tokens: int
    page: int
    pieces: tuple[Piece, ...]

    def anchored(self) -> _Scrap:
        """With its page named first. A character is one token at most, so the length stays an upper bound."""
        mark = anchor(self.page)
        if self.text.startswith(mark):
            return self
        return replace(self, text=mark + self.text, tokens=self.tokens + len(mark))


@dataclass(slots=True)
class _Open:
    """The parts so far; the last is still open."""

    limit: int
    parts: list[list[_Scrap]] = field(default_factory=lambda: [[]])

    @property
    def used(self) -> int:
        return sum(scrap.tokens for scrap in self.parts[-1])

    def room_for(self, scrap: _Scrap) -> bool:
        fresh = not self.parts[-1]
        return self.used + (scrap.anchored() if fresh else scrap).tokens <= self.limit

    def add(self, scrap: _Scrap) -> None:
        self.parts[-1].append(scrap if self.parts[-1] else scrap.anchored())

    def close(self, coming: _Scrap) -> None:
        """Begin a part. A page that began near the end of the last one moves along, so that the cut is at the page."""
        last = self.parts[-1]
        if not last:
            return
        cut = _page_start(last, self.limit)
        tail = last[cut:]
        if sum(scrap.tokens for scrap in (*tail, coming)) > self.limit:
            tail = []
        self.parts[-1:] = [last[: len(last) - len(tail)], tail]


def split(chunks: Sequence[Chunk], limit_tokens: int) -> tuple[Part, ...]:
    """The chunks in order, in parts that fit. Raises PromptTooLong if a row (with its head) does not fit."""
    parts = _Open(limit_tokens)
    for chunk in chunks:
        whole = _Scrap(chunk.text, chunk.tokens, chunk.page, chunk.pieces)
        if parts.room_for(whole):
            parts.add(whole)
        elif whole.anchored().tokens <= limit_tokens:
            parts.close(whole)
            parts.add(whole)
        else:
            _add_rows(chunk, parts)
    filled = [part for part in parts.parts if part]
    return tuple(_part(scraps, number, len(filled)) for number, scraps in enumerate(filled, start=1))


def _add_rows(chunk: Chunk, parts: _Open) -> None:
    """A chunk longer than a part, by its rows: as many as fit, then its head again and the next."""
    rows: list[Chunk] = []
    for row in chunk.rows or (chunk,):
        if rows and parts.room_for(_rows_scrap(chunk, [*rows, row])):
            rows.append(row)
            continue
        if rows:
            parts.add(_rows_scrap(chunk, rows))
        rows = [row]
        scrap = _rows_scrap(chunk, rows)
        if not parts.room_for(scrap):
            parts.close(scrap)
        if not parts.room_for(scrap):
            _refuse(scrap.anchored(), parts.limit)
    parts.add(_rows_scrap(chunk, rows))


def _rows_scrap(chunk: Chunk, rows: Sequence[Chunk]) -> _Scrap:
    pieces = dict.fromkeys((*chunk.head_pieces, *(piece for row in rows for piece in row.pieces)))
    tokens = chunk.head_tokens + chunk.foot_tokens + sum(row.tokens for row in rows)
    text = chunk.head + "".join(row.text for row in rows) + chunk.foot
    return _Scrap(text, tokens, rows[0].page, tuple(pieces))


def _refuse(scrap: _Scrap, limit: int) -> NoReturn:
    raise PromptTooLong(
        f"page {scrap.page}: one row or sentence of {scrap.tokens} tokens (with its header) is over the limit of "
        f"{limit} tokens for a part; use a lane with a longer context"
    )


def _page_start(scraps: Sequence[_Scrap], limit: int) -> int:
    """Where the last page of a part starts, if enough stands before it; else the end."""
    for place in range(len(scraps) - 1, 0, -1):
        if scraps[place].text.startswith(anchor(scraps[place].page)):
            before = sum(scrap.tokens for scrap in scraps[:place])
            return place if before >= FULL_ENOUGH * limit else len(scraps)
    return len(scraps)


def _part(scraps: Sequence[_Scrap], number: int, of: int) -> Part:
    text = "".join(scrap.text for scrap in scraps)
    pieces = tuple(dict.fromkeys(piece for scrap in scraps for piece in scrap.pieces))
    return Part(text, sum(scrap.tokens for scrap in scraps), pieces, number, of)
