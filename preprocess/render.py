"""Pages as the model reads them: compact text, `[p3]` where a page starts, tables under their captions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from docmill.types import Block, BlockKind, Chunk, Page
from preprocess.breaks import last_paragraph
from preprocess.drafts import Draft, text_draft
from preprocess.furniture import is_page_number
from preprocess.join import text_seam as seam
from preprocess.render_table import table_draft
from preprocess.repeats import Repeats
from preprocess.tokens import Count

_ANCHOR: Final = re.compile(r"\[p(\d+)\]\n")
_FURNITURE: Final = frozenset({BlockKind.HEADER, BlockKind.FOOTER})


def anchor(page: int) -> str:
    """What stands where a page starts."""
    return f"[p{page}]\n"


def anchored_page(text: str) -> int | None:
    """The page whose mark the text starts with."""
    found = _ANCHOR.match(text)
    return int(found[1]) if found else None


def render(pages: Sequence[Page], count: Count) -> tuple[Chunk, ...]:
    """All pages as chunks with their lengths. A running header is shown once, a page number never.

    A paragraph that goes on over a page break is one text, before the mark of the page on which it ends; one that was
    shown before is left out.
    """
    shown: set[str] = set()
    chunks: list[Chunk] = []
    waiting: list[Draft] = []
    repeats = Repeats()
    for page in pages:
        drafts = _with_rest(waiting, [draft for block in _shown(page, shown) for draft in _drafts(block)])
        chunks.extend(_counted(_anchored(repeats.without(waiting)), count))
        waiting = drafts
    return (*chunks, *_counted(_anchored(repeats.without(waiting)), count))


def _with_rest(before: list[Draft], drafts: list[Draft]) -> list[Draft]:
    """Put what goes on from the page before behind its beginning; returns the other drafts of the page."""
    rest = next((draft for draft in drafts if draft.block is not None and draft.block.continues), None)
    last = last_paragraph([draft.block for draft in before if draft.block is not None])
    if rest is None or last is None:
        return drafts
    place = next(index for index, draft in enumerate(before) if draft.block is last)
    before[place] = _joined(before[place], rest)
    return [draft for draft in drafts if draft is not rest]


def _joined(one: Draft, other: Draft) -> Draft:
    """Two parts of a paragraph as one text; a part without sentences of its own is one of the rows."""
    first, second = one.block, other.block
    glue = seam(first.printed.text, second.printed.text) if first and second else " "
    text = one.text[:-1] if glue is not None else one.text[:-2]
    rows = [*(one.rows or [one]), *(other.rows or [other])]
    at = len(one.rows or [one]) - 1
    cut = rows[at].text[: len(rows[at].text) - (len(one.text) - len(text))]
    rows[at] = replace(rows[at], text=cut + (glue or ""))
    pieces = (*one.pieces, *other.pieces)
    return replace(one, text=text + (glue or "") + other.text, pieces=pieces, rows=tuple(rows))


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
        yield table_draft(captions, block.table, block.page)
        return
    yield from map(text_draft, blocks)


def _anchored(drafts: Sequence[Draft]) -> list[Draft]:
    """The drafts of a page with its mark before the first."""
    return [_marked(drafts[0]), *drafts[1:]] if drafts else []


def _marked(draft: Draft) -> Draft:
    mark = anchor(draft.page)
    if draft.head:
        return replace(draft, head=mark + draft.head, text=mark + draft.text)
    rows = (replace(draft.rows[0], text=mark + draft.rows[0].text), *draft.rows[1:]) if draft.rows else ()
    return replace(draft, text=mark + draft.text, rows=rows)


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
    yield from (draft.head, draft.foot)
    yield from (row.text for row in draft.rows)


def _chunk(draft: Draft, lengths: Iterator[int]) -> Chunk:
    if not draft.rows:
        return Chunk(draft.text, next(lengths), draft.page, draft.pieces)
    head_tokens, foot_tokens = next(lengths), next(lengths)
    rows = tuple(Chunk(row.text, next(lengths), row.page, row.pieces) for row in draft.rows)
    return Chunk(
        draft.text,
        head_tokens + foot_tokens + sum(row.tokens for row in rows),
        draft.page,
        draft.pieces,
        head=draft.head,
        head_tokens=head_tokens,
        head_pieces=draft.head_pieces,
        rows=rows,
        foot=draft.foot,
        foot_tokens=foot_tokens,
    )
