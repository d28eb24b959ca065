"""Pages as the model reads them: compact text, `[p3]` where a page starts, tables as pipe rows under their captions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from docmill.types import Block, BlockKind, Cell, Chunk, Page, Piece, Printed, Table
from preprocess.furniture import is_page_number
from preprocess.tokens import Count

#: A paragraph longer than this can be split at its sentences.
SPLIT_FROM: Final = 64
#: Characters of a "sentence" without an end; it is cut at a space, or anywhere.
LONGEST_SENTENCE: Final = 160

_SENTENCE: Final = re.compile(r"[^。！？；!?\n]*?(?:[。！？；!?]+[”’」』）)\"]*|\.(?=\s+[A-Z(\"“])|\n|$)\s*")
_FURNITURE: Final = frozenset({BlockKind.HEADER, BlockKind.FOOTER})
_MARKS: Final = {BlockKind.HEADING: "## ", BlockKind.ANNOTATION: "[note] ", BlockKind.FORM_FIELD: "[field] "}


@dataclass(frozen=True, slots=True)
class Draft:
    """A chunk before it is counted."""

    text: str
    page: int
    pieces: tuple[Piece, ...]
    head: str = ""
    head_pieces: tuple[Piece, ...] = ()
    rows: tuple[Draft, ...] = ()


def anchor(page: int) -> str:
    """What stands where a page starts."""
    return f"[p{page}]\n"


def render(pages: Sequence[Page], count: Count) -> tuple[Chunk, ...]:
    """All pages as chunks with their lengths. A running header is shown once, a page number never."""
    shown: set[str] = set()
    chunks: list[Chunk] = []
    for page in pages:
        drafts = [draft for block in _shown(page, shown) for draft in _drafts(block)]
        if drafts:
            drafts[0] = _anchored(drafts[0])
            chunks.extend(_counted(drafts, count))
    return tuple(chunks)


def _shown(page: Page, shown: set[str]) -> Iterator[list[Block]]:
    """The blocks to show, furniture first, a table together with its captions."""
    captions: list[Block] = []
    blocks = sorted(page.blocks, key=lambda block: block.kind not in _FURNITURE)
    for block in blocks:
        if block.kind in _FURNITURE or block.kind is BlockKind.ANNOTATION:
            text = block.printed.text
            key = re.sub(r"\d+", "#", text) if block.kind in _FURNITURE else text
            if key in shown or is_page_number(block.printed.text):
                continue
            shown.add(key)
        if block.kind is BlockKind.CAPTION:
            captions.append(block)
            continue
        yield [*captions, block]
        captions = []
    yield from ([caption] for caption in captions)


def _drafts(blocks: list[Block]) -> Iterator[Draft]:
    *captions, block = blocks
    if block.table is not None:
        yield _table_draft(captions, block.table, block.page)
        return
    yield from map(_text_draft, blocks)


def _anchored(draft: Draft) -> Draft:
    mark = anchor(draft.page)
    if draft.head:
        return replace(draft, head=mark + draft.head, text=mark + draft.text)
    rows = (replace(draft.rows[0], text=mark + draft.rows[0].text), *draft.rows[1:]) if draft.rows else ()
    return replace(draft, text=mark + draft.text, rows=rows)


# ---------------------------------------------------------------- text


def _text_draft(block: Block) -> Draft:
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
    return Draft(text, block.page, (Piece(printed, block.page),), rows=rows)


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


# ---------------------------------------------------------------- tables


def _table_draft(captions: Sequence[Block], table: Table, page: int) -> Draft:
    rows = _slots(table)
    header = [_row_draft(table, row, cells, page) for row, cells in enumerate(rows[: table.header_rows])]
    body = tuple(_row_draft(table, row, cells, page) for row, cells in enumerate(rows) if row >= table.header_rows)
    ruler = "|" + "---|" * table.cols + "\n" if header else ""
    titles = [_text_draft(caption) for caption in captions]
    head = "".join(draft.text for draft in (*titles, *header)) + ruler
    head_pieces = tuple(piece for draft in (*titles, *header) for piece in draft.pieces)
    pieces = (*head_pieces, *dict.fromkeys(piece for row in body for piece in row.pieces))
    return Draft(head + "".join(row.text for row in body), page, pieces, head, head_pieces, body)


def _slots(table: Table) -> list[list[Cell | None]]:
    """For each place of the table the cell to show there.

    A header over several columns, and a label beside several rows, stands for all of them; a title over the whole
    width, and a body cell over several columns, is shown once.
    """
    slots: list[list[Cell | None]] = [[None] * table.cols for _ in range(table.rows)]
    for cell in table.cells:
        header = cell.row < table.header_rows and cell.colspan < table.cols
        for row in range(cell.row, min(table.rows, cell.row + cell.rowspan)):
            for col in range(cell.col, min(table.cols, cell.col + (cell.colspan if header else 1))):
                slots[row][col] = slots[row][col] or cell
    return slots


def _row_draft(table: Table, row: int, cells: Sequence[Cell | None], page: int) -> Draft:
    texts = [_escaped(cell.text) if cell is not None else "" for cell in cells]
    own = list(dict.fromkeys(cell for cell in cells if cell is not None and cell.text))
    pieces = tuple(Piece(cell.printed, cell.page, table.table_id, cell.row, cell.col) for cell in own)
    first = next((cell.page for cell in own if cell.row == row), page)
    return Draft("|" + "|".join(texts) + "|\n", first, pieces)


def _escaped(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


# ---------------------------------------------------------------- lengths


def _counted(drafts: Sequence[Draft], count: Count) -> list[Chunk]:
    """Drafts with their lengths; all texts of a page are counted in one go."""
    texts = [text for draft in drafts for text in _countable(draft)]
    lengths = iter(count(texts))
    return [_chunk(draft, lengths) for draft in drafts]


def _countable(draft: Draft) -> Iterator[str]:
    if not draft.rows:
        yield draft.text
        return
    yield draft.head
    yield from (row.text for row in draft.rows)


def _chunk(draft: Draft, lengths: Iterator[int]) -> Chunk:
    if not draft.rows:
        return Chunk(draft.text, next(lengths), draft.page, draft.pieces)
    head_tokens = next(lengths)
    rows = tuple(Chunk(row.text, next(lengths), row.page, row.pieces) for row in draft.rows)
    tokens = head_tokens + sum(row.tokens for row in rows)
    return Chunk(draft.text, tokens, draft.page, draft.pieces, draft.head, head_tokens, draft.head_pieces, rows)
