"""A document cut down to a budget: headings, tables, form fields and what a profile marks critical are kept.

Of the rest goes first what stands behind its first 512 tokens, the last sentence first; then, of what reads like a
conversation, the oldest turns, as its end is what counts; then, if it must be, the rest of the text, again from its
end. Nothing else goes: what must be kept and does not fit is refused. Where something is missing the text says so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Final

from docmill.errors import PromptTooLong
from docmill.types import Chunk, Omission, Why
from preprocess.conversation import is_conversation
from preprocess.render import anchor, anchored_page

#: Of text that is not critical so many tokens go last; of a conversation, its last so many.
FIRST_TOKENS: Final = 512
#: Stands where text was left out.
GAP: Final = "[...]\n"
_HEADING, _FIELD = "## ", "[field] "


@dataclass(frozen=True, slots=True)
class _Unit:
    """What is kept or left out as one: a sentence, a block that has none, or a table."""

    chunk: int
    row: int | None
    text: str
    tokens: int
    page: int


def shorten(
    chunks: Sequence[Chunk], limit: int | None, *, terms: Sequence[str] = (), sections: Sequence[str] = ()
) -> tuple[tuple[Chunk, ...], tuple[Omission, ...]]:
    """The chunks within the limit, and what was left out; all of them where they fit. Raises PromptTooLong."""
    if limit is None or sum(chunk.tokens for chunk in chunks) <= limit:
        return tuple(chunks), ()
    units = list(_units(chunks))
    order = _order_of_going(units, chunks, _critical(chunks, terms, sections))
    left = bisect_left(range(len(order)), True, key=lambda count: _fits(chunks, units, order[:count], limit))
    while left < len(order) and not _fits(chunks, units, order[:left], limit):
        left += 1  # a mark that moves to a longer text may add a token: the lengths fall, but not in every step
    out = dict(order[:left])
    kept = _kept(chunks, units, out)
    if _length(kept) > limit:
        raise PromptTooLong(
            f"headings, tables and what the profile marks critical are {_length(kept)} tokens, over the budget of"
            f" {limit} for a document; raise the profile's document_tokens or mark less as critical"
        )
    return tuple(kept), _omissions(units, out)


def _units(chunks: Sequence[Chunk]) -> Iterator[_Unit]:
    for place, chunk in enumerate(chunks):
        if chunk.rows and not chunk.head:
            for row, inner in enumerate(chunk.rows):
                yield _Unit(place, row, inner.text, inner.tokens, inner.page)
        else:
            yield _Unit(place, None, chunk.text, chunk.tokens, chunk.page)


# ---------------------------------------------------------------- what goes, and when


def _critical(chunks: Sequence[Chunk], terms: Sequence[str], sections: Sequence[str]) -> set[int]:
    """The chunks that are never left out."""
    terms, sections = [term.casefold() for term in terms], [name.casefold() for name in sections]
    kept: set[int] = set()
    inside = False
    for place, chunk in enumerate(chunks):
        text = _unmarked(chunk.text)
        if text.startswith(_HEADING):
            inside = any(name in text.casefold() for name in sections)
        structural = bool(chunk.head) or text.startswith((_HEADING, _FIELD))
        if structural or inside or any(term in text.casefold() for term in terms):
            kept.add(place)
    return kept


def _order_of_going(units: Sequence[_Unit], chunks: Sequence[Chunk], critical: set[int]) -> list[tuple[int, Why]]:
    """The units that may go, the first to go first."""
    talk = _talk(chunks)
    free = [place for place, unit in enumerate(units) if unit.chunk not in critical]
    plain = [place for place in free if units[place].chunk not in talk]
    turns = [place for place in free if units[place].chunk in talk]
    first, last = _within(units, plain), _within(units, turns[::-1])
    tail = [(place, Why.TAIL) for place in reversed(plain) if place not in first]
    older = [(place, Why.OLDER_TURNS) for place in turns if place not in last]
    rest = [*(place for place in reversed(plain) if place in first), *(place for place in turns if place in last)]
    return [*tail, *older, *((place, Why.TEXT) for place in rest)]


def _within(units: Sequence[_Unit], places: Sequence[int]) -> set[int]:
    """The first of the places that are not over 512 tokens together."""
    lengths = accumulate(units[place].tokens for place in places)
    return {place for place, length in zip(places, lengths, strict=True) if length <= FIRST_TOKENS}


def _talk(chunks: Sequence[Chunk]) -> set[int]:
    """The chunks of sections that read like a conversation."""
    sections: list[list[int]] = [[]]
    for place, chunk in enumerate(chunks):
        if _unmarked(chunk.text).startswith(_HEADING):
            sections.append([])
        elif not chunk.head:
            sections[-1].append(place)
    talking = (part for part in sections if is_conversation([_unmarked(chunks[place].text) for place in part]))
    return {place for part in talking for place in part}


# ---------------------------------------------------------------- what is kept


def _fits(chunks: Sequence[Chunk], units: Sequence[_Unit], gone: Sequence[tuple[int, Why]], limit: int) -> bool:
    return _length(_kept(chunks, units, dict(gone))) <= limit


def _length(chunks: Sequence[Chunk]) -> int:
    return sum(chunk.tokens for chunk in chunks)


def _kept(chunks: Sequence[Chunk], units: Sequence[_Unit], out: Mapping[int, Why]) -> list[Chunk]:
    """The chunks without the units that are out; each gap is marked, a page's mark moves to what is left of it."""
    kept: list[Chunk] = []
    gap, mark = False, ""
    for place, group in groupby(enumerate(units), key=lambda numbered: numbered[1].chunk):
        rows: list[Chunk] = []
        for number, unit in group:
            if number in out:
                gap, mark = True, _mark(unit.text) or mark
                continue
            shown = chunks[place] if unit.row is None else chunks[place].rows[unit.row]
            rows.append(_after_gap(shown, mark) if gap else shown)
            if number + 1 in out:
                rows[-1] = _ended(rows[-1])
            gap, mark = False, ""
        if rows:
            kept.append(_joined(chunks[place], rows))
    return kept


def _joined(chunk: Chunk, rows: list[Chunk]) -> Chunk:
    """A chunk of the units that are left of it."""
    if not chunk.rows or chunk.head:
        return rows[0]
    if len(rows) == len(chunk.rows) and all(one is other for one, other in zip(rows, chunk.rows, strict=True)):
        return chunk
    pieces = tuple(dict.fromkeys(piece for row in rows for piece in row.pieces))
    text, tokens = "".join(row.text for row in rows), _length(rows)
    return Chunk(text, tokens, rows[0].page, pieces, rows=tuple(rows))


def _after_gap(chunk: Chunk, mark: str) -> Chunk:
    """The chunk with the gap before it marked, behind the mark of its page. A character is one token at most."""
    own = _mark(chunk.text)
    lead = (own or mark) + GAP
    more = len(lead) - len(own)
    text, head = lead + chunk.text[len(own) :], chunk.head
    if head:
        return replace(
            chunk,
            text=text,
            tokens=chunk.tokens + more,
            head=lead + head[len(own) :],
            head_tokens=chunk.head_tokens + more,
        )
    return replace(chunk, text=text, tokens=chunk.tokens + more)


def _ended(chunk: Chunk) -> Chunk:
    """The chunk with its line ended, as what went on there is left out."""
    if chunk.text.endswith("\n"):
        return chunk
    return replace(chunk, text=chunk.text + "\n", tokens=chunk.tokens + 1)


def _mark(text: str) -> str:
    page = anchored_page(text)
    return "" if page is None else anchor(page)


def _unmarked(text: str) -> str:
    return text[len(_mark(text)) :]


def _omissions(units: Sequence[_Unit], out: Mapping[int, Why]) -> tuple[Omission, ...]:
    """What is out, as runs of one page and reason."""
    runs = groupby(range(len(units)), key=lambda place: (out.get(place), units[place].page))
    return tuple(_omission([units[place] for place in run], why) for (why, _), run in runs if why is not None)


def _omission(run: Sequence[_Unit], why: Why) -> Omission:
    return Omission(run[0].page, sum(unit.tokens for unit in run), "".join(_unmarked(unit.text) for unit in run), why)
