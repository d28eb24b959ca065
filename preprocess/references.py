"""References over pages: a part that says "see Note 12" or 见第5页 gets what it refers to, as far as there is room.

What is pulled in stands at the end of the part under a mark with its page, and its pieces keep their places: a value
that is read from it is cited where it is printed. A table is pulled in whole or not at all, of text what fits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from docmill.errors import PromptTooLong
from docmill.types import BlockKind, Chunk, Page, Part, Piece
from preprocess.furniture import is_page_number
from preprocess.numerals import NUMERAL, number_of
from preprocess.render import anchor, anchored_page
from preprocess.split import split

#: The share of a part that what it refers to may take.
MOST: Final = 0.25

#: What is referred to: its kind and its number, for a note below a numbered section both numbers.
Target = tuple[str, str]

_SEE: Final = r"(?:参见|详见|参阅|参照|请见|载于|列示于|披露于|如|见)"
_REFERENCES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("page", re.compile(rf"{_SEE}\s*(?:本\S{{1,4}})?\s*第\s*({NUMERAL})\s*页")),
    ("page", re.compile(r"\b(?:see|refer(?:s|red)? to|on|at|from)\s+(?:page|p\.|pp\.)\s*(\d{1,4})\b(?!\s*of)", re.I)),
    ("note", re.compile(rf"(?:附注|附註|注释)\s*((?>{NUMERAL}))(?![、（(.\d]\s*[（(]?{NUMERAL})")),
    ("note", re.compile(r"\bnotes?\s+(\d{1,3})\b(?!\s*(?:to|of)\s+\d)", re.I)),
    ("table", re.compile(rf"{_SEE}\s*附?表\s*({NUMERAL})")),
    ("table", re.compile(r"\b(?:see|refer to|in)\s+(?:table|schedule)\s+(\d{1,3}|[A-Z])\b", re.I)),
    ("annex", re.compile(rf"(?:{_SEE}|于)\s*附[录件]\s*({NUMERAL}|[A-Z])")),
    ("annex", re.compile(r"\b(?:see|refer to|in)\s+(?:appendix|annex|exhibit)\s+(\d{1,3}|[A-Z])\b", re.I)),
)
#: 附注五、12 and 附注五（十二）: a note below a numbered section.
_BELOW: Final = re.compile(rf"(?:附注|附註)\s*({NUMERAL})\s*[、（(.]\s*[（(]?({NUMERAL})[)）]?")

_TITLES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("note", re.compile(rf"(?:附注|附註|注释|notes?)\s*({NUMERAL})", re.I)),
    ("table", re.compile(rf"(?:附?表|table|schedule)\s*({NUMERAL}|[A-Z]\b)", re.I)),
    ("annex", re.compile(rf"(?:附[录件]|appendix|annex|exhibit)\s*({NUMERAL}|[A-Z]\b)", re.I)),
)
_HEADING: Final = "## "
_EDGES: Final = (BlockKind.HEADER, BlockKind.FOOTER)
#: 12、 and （十二）; （12） is a point within a note.
_NUMBERED: Final = re.compile(r"(\d{1,3})[、.．]\s*\D|[（(]([一二三四五六七八九十]{1,4})[)）]")
_SECTION: Final = re.compile(r"([一二三四五六七八九十]{1,3})、")


@dataclass(frozen=True, slots=True)
class Index:
    """Where what can be referred to begins, as places among the chunks; how far it goes; pages by printed number."""

    places: Mapping[Target, int]
    ends: Mapping[int, int]
    pages: Mapping[int, int]


def with_references(
    parts: Sequence[Part], chunks: Sequence[Chunk], pages: Sequence[Page], limit: int
) -> tuple[Part, ...]:
    """The parts with what they refer to; where that needs room the document is cut into somewhat smaller ones."""
    if len(parts) < 2:
        return tuple(parts)
    index = index_of(chunks, pages)
    wanted = [_wanted(part, chunks, index) for part in parts]
    if not any(wanted):
        return tuple(parts)
    most = int(MOST * limit)
    needs = [(part, min(most, _length(more))) for part, more in zip(parts, wanted, strict=True)]
    smaller = _smaller(
        parts, chunks, limit - max((need for part, need in needs if part.tokens + need > limit), default=0)
    )
    return tuple(_with(part, _wanted(part, chunks, index), min(most, limit - part.tokens)) for part in smaller)


def references(text: str) -> list[Target]:
    """What a text refers to, in its order, each once."""
    found = [(match.start(), _target("below", match[1], match[2])) for match in _BELOW.finditer(text)]
    for kind, pattern in _REFERENCES:
        found += [(match.start(), _target(kind, match[1])) for match in pattern.finditer(text)]
    return list(dict.fromkeys(target for _, target in sorted(found)))


def _target(kind: str, *numbers: str) -> Target:
    """A reference or a title by its number, however that is printed."""
    known = (number_of(number) for number in numbers)
    return kind, ".".join(
        number.upper() if value is None else str(value) for number, value in zip(numbers, known, strict=True)
    )


# ---------------------------------------------------------------- what can be referred to


def index_of(chunks: Sequence[Chunk], pages: Sequence[Page]) -> Index:
    """The titles of notes, tables and annexes among the chunks. The first of a number counts, headings before text.

    Numbered sections are notes too, where no title says "note"; of two with one number (an auditor's report has a
    section five as well) the one with more numbered notes below it.
    """
    places: dict[Target, int] = {}
    for place, target in sorted(_titles(chunks), key=lambda one: not _is_heading(chunks[one[0]])):
        places.setdefault(target, place)
    for number, section in _fullest(_sections(chunks)).items():
        places.setdefault(("note", number), section[0][0])
        places |= {target: place for place, target in reversed(section[1:])}
    for place in _headings(chunks):
        if found := _NUMBERED.match(_title(chunks[place])):
            places.setdefault(_target("note", found[1] or found[2]), place)
    starts = sorted({*places.values(), *_headings(chunks), len(chunks)})
    return Index(places, dict(pairwise(starts)), _printed_numbers(pages))


def _titles(chunks: Sequence[Chunk]) -> Iterator[tuple[int, Target]]:
    """What calls itself a note, a table or an annex."""
    for place, chunk in enumerate(chunks):
        for kind, pattern in _TITLES:
            if found := pattern.match(_title(chunk)):
                yield place, _target(kind, found[1])


def _sections(chunks: Sequence[Chunk]) -> list[list[tuple[int, Target]]]:
    """Each numbered section with the numbered notes below it."""
    sections: list[list[tuple[int, Target]]] = []
    for place, chunk in enumerate(chunks):
        if found := _SECTION.match(_title(chunk)):
            sections.append([(place, _target("note", found[1]))])
        elif sections and (found := _NUMBERED.match(_title(chunk))):
            sections[-1].append((place, _target("below", sections[-1][0][1][1], found[1] or found[2])))
    return sections


def _fullest(sections: Sequence[list[tuple[int, Target]]]) -> Mapping[str, list[tuple[int, Target]]]:
    """For each number the section with the most notes, the first of equals."""
    fullest: dict[str, list[tuple[int, Target]]] = {}
    for section in sections:
        _, number = section[0][1]
        if number not in fullest or len(section) > len(fullest[number]):
            fullest[number] = section
    return fullest


def _title(chunk: Chunk) -> str:
    return _bare(chunk.text).removeprefix(_HEADING).lstrip()


def _is_heading(chunk: Chunk) -> bool:
    return _bare(chunk.text).startswith(_HEADING)


def _headings(chunks: Sequence[Chunk]) -> list[int]:
    return [place for place, chunk in enumerate(chunks) if _is_heading(chunk)]


def _bare(text: str) -> str:
    page = anchored_page(text)
    return text if page is None else text[len(anchor(page)) :]


def _printed_numbers(pages: Sequence[Page]) -> Mapping[int, int]:
    """For each page number that is printed the page that it is printed on, if they are printed at all."""
    edges = ((page.number, block.printed.text) for page in pages for block in page.blocks if block.kind in _EDGES)
    digits = ((number, re.search(r"\d+", text)) for number, text in edges if is_page_number(text))
    return {int(found[0]): number for number, found in reversed([*digits]) if found}


# ---------------------------------------------------------------- what a part needs


def _wanted(part: Part, chunks: Sequence[Chunk], index: Index) -> list[list[Chunk]]:
    """For each thing that a part refers to, in that order, the chunks of it that the part does not show."""
    targets = references(part.text)
    shown: set[Piece] = set(part.pieces) if targets else set()
    taken: set[int] = set()
    wanted: list[list[Chunk]] = []
    for target in targets:
        places = [place for place in _places(target, chunks, index) if place not in taken]
        taken.update(places)
        missing = (chunks[place] for place in places if not shown.issuperset(chunks[place].pieces))
        wanted.append(list(missing))
    return [one for one in wanted if one]


def _places(target: Target, chunks: Sequence[Chunk], index: Index) -> Iterator[int]:
    kind, number = target
    if kind == "page":
        page = index.pages.get(int(number), None if index.pages else int(number)) if number.isdigit() else None
        yield from (place for place, chunk in enumerate(chunks) if chunk.page == page)
    elif target in index.places:
        start = index.places[target]
        yield from range(start, index.ends[start])


def _length(wanted: Sequence[Sequence[Chunk]]) -> int:
    """The tokens of chunks with their marks. A character is one token at most."""
    return sum(chunk.tokens + len(mark(chunk.page)) for target in wanted for chunk in target)


def _smaller(parts: Sequence[Part], chunks: Sequence[Chunk], limit: int) -> Sequence[Part]:
    """The document in parts of a lower limit, if every row of it fits that."""
    try:
        return split(chunks, limit)
    except PromptTooLong:
        return parts


def _with(part: Part, wanted: Sequence[Sequence[Chunk]], room: int) -> Part:
    """The part with as much of what it refers to as there is room for, shared between what it refers to."""
    text, spent = part.text, 0
    pulled: list[Chunk] = []
    for number, target in enumerate(wanted):
        allowed = spent + (room - spent) // (len(wanted) - number)
        for chunk in target:
            same_page = bool(pulled) and pulled[-1].page == chunk.page
            lead = ("" if text.endswith("\n") else "\n") + ("" if same_page else mark(chunk.page))
            fitting = _as_far_as(chunk, allowed - spent - len(lead))
            if fitting is not None:
                text, spent = text + lead + fitting.text, spent + len(lead) + fitting.tokens
                pulled.append(fitting)
    pieces = tuple(dict.fromkeys((*part.pieces, *(piece for chunk in pulled for piece in chunk.pieces))))
    pages = tuple(dict.fromkeys(chunk.page for chunk in pulled))
    return replace(part, text=text, tokens=part.tokens + spent, pieces=pieces, referred=pages)


def mark(page: int) -> str:
    """What stands before text that was pulled in from its page."""
    return f"[referred: p{page}]\n"


def _as_far_as(chunk: Chunk, room: int) -> Chunk | None:
    """The chunk without its page's mark, if it fits; of text its first sentences that do."""
    bare = replace(chunk, text=_bare(chunk.text))
    if chunk.tokens <= room:
        return bare
    if chunk.head:
        return None
    rows: list[Chunk] = []
    for row in chunk.rows:
        if sum(one.tokens for one in rows) + row.tokens > room:
            break
        rows.append(row)
    if not rows:
        return None
    pieces = tuple(dict.fromkeys(piece for row in rows for piece in row.pieces))
    text = _bare("".join(row.text for row in rows))
    return Chunk(text, sum(row.tokens for row in rows), chunk.page, pieces)
