"""What a document holds, found without help from the model: text, numbers, dates, tables, each with its place.

Everything is worked out when first asked for: a result with three fields costs three look-ups, not a full index.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from typing import TypeVar, cast

from docmill.types import BBox, Citation, Page, PreparedDocument, Printed, Table
from validation.dates import MAY_BE_DATE, order_of, scan_spans
from validation.grid import Frame, Grid
from validation.index import BREAK, Index
from validation.numbers import readings
from validation.places import DateAt, NumberAt, Pieces, Place, Standing, begins_inside, cut, ends_inside
from validation.region import text_in
from validation.text import fold, fold_places, half

#: A text that is met this often as a part of longer words is not looked for any further.
_MOST_TRIES = 10_000
#: A document is Chinese above the first share of Chinese letters, mixed above the second, else English.
_CHINESE, _MIXED = 0.5, 0.05
#: Documents whose facts are kept: one that is read again, or by several profiles, is measured once.
_KEPT = 4

T = TypeVar("T")

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile("[A-Za-z]+")


@dataclass(frozen=True)
class Facts:
    """The facts of one document. `pieces` are its citable texts in reading order."""

    pages: Mapping[int, Page]
    tables: Mapping[str, Table]
    pieces: Pieces

    @cached_property
    def language(self) -> str:
        """zh, en or mixed."""
        chinese, english = len(_HAN.findall(self.plain)), len(_LATIN.findall(self.plain))
        share = chinese / ((chinese + english) or 1)
        return "zh" if share > _CHINESE else "mixed" if share > _MIXED else "en"

    # ------------------------------------------------------------ numbers

    @cached_property
    def index(self) -> Index:
        return Index(self.pieces, self.plain, self._starts)

    @cached_property
    def numbers(self) -> Mapping[Decimal, list[NumberAt]]:
        """Every reading of every number, by value; for one value `index.like` is cheaper."""
        index: dict[Decimal, list[NumberAt]] = defaultdict(list)
        for found in self.index.all():
            index[found.number.value].append(found)
        return dict(index)

    @cached_property
    def grids(self) -> Mapping[str, Grid]:
        return {identity: Grid(table) for identity, table in self.tables.items()}

    def grid(self, place: Place) -> Grid | None:
        """The table that a place is in."""
        return self.grids.get(place.piece.table_id or "")

    def frame(self, place: Place) -> Frame:
        """The scale and unit that a number at this place is printed in."""
        grid = self.grid(place)
        return grid.frame(place.piece.row, place.piece.col) if grid else Frame(None, None)

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What a check finds in the document whatever the result, worked out once."""
        if key not in self._once:
            self._once[key] = make()
        return cast(T, self._once[key])

    @cached_property
    def _once(self) -> dict[Hashable, object]:
        return {}

    # ------------------------------------------------------------ dates

    @cached_property
    def dates(self) -> tuple[DateAt, ...]:
        numbers = dict.fromkeys(self.index.piece_at(match.start()) for match in MAY_BE_DATE.finditer(self.plain))
        return tuple(
            DateAt(dated, self.index.place(number, dated.start, dated.stop))
            for number in numbers
            for dated in self.index.dates_of(number)
        )

    @cached_property
    def periods(self) -> tuple[DateAt, ...]:
        """The months, quarters, halves and years that it speaks of."""
        of_months = [found for found in self.dates if found.dated.period]
        spans = (
            DateAt(dated, self.index.place(number, dated.start, dated.stop))
            for number, piece in enumerate(self.pieces)
            for dated in scan_spans(piece.printed.text)
        )
        return (*of_months, *spans)

    @cached_property
    def day_first(self) -> bool | None:
        """Whether 03/04/2024 is 3 April here, as its other dates tell; None if they do not."""
        return order_of(found.dated for found in self.dates)

    def day(self, readings: Iterable[date]) -> Place | None:
        """Where one of these days is printed: looked for where its year is, before every date is read."""
        wanted = set(readings)
        years = {str(day.year) for day in wanted}
        near = {self.index.piece_at(offset): None for year in years for offset in _every(year, self.plain)}
        for number in near:
            for dated in self.index.dates_of(number):
                if wanted.intersection(dated.readings) and not dated.ambiguous:
                    return self.index.place(number, dated.start, dated.stop)
        return next((self.days[day].place for day in wanted if day in self.days), None)

    @cached_property
    def days(self) -> Mapping[date, DateAt]:
        """The first place of every day, both days of an ambiguous date that nothing settles."""
        return {day: found for found in reversed(self.dates) for day in found.dated.days(self.day_first)}

    # ------------------------------------------------------------ text

    @cached_property
    def page_texts(self) -> Mapping[int, str]:
        texts: dict[int, list[str]] = {number: [] for number in self.pages}
        for piece in self.pieces:
            texts.setdefault(piece.page, []).append(piece.printed.text)
        return {number: "\n".join(parts) for number, parts in texts.items()}

    @cached_property
    def plain(self) -> str:
        """The whole document in half width, its pieces joined by BREAK."""
        return half(BREAK.join(self.pieces.texts))

    @cached_property
    def lower(self) -> str:
        """`plain` in small letters, of the same length."""
        lower = self.plain.lower()
        return lower if len(lower) == len(self.plain) else "".join(c.lower()[:1] or c for c in self.plain)

    @cached_property
    def folded(self) -> str:
        """The whole document as compared; `_folded_starts` says where each piece begins in it."""
        return "".join(self._folded_pieces)

    def find(self, text: str) -> tuple[Place, ...]:
        """The first place where the text stands as printed and is not cut out of a longer word or number.

        Blanks, width and kinds of dashes do not matter. A text that runs over several pieces gives a place in each.
        """
        whole = next(self.everywhere(text), None)
        return (whole,) if whole else self._find_folded(fold(text))

    def everywhere(self, text: str) -> Iterator[Place]:
        """Every place inside one piece where this text stands whole, blanks and all."""
        wanted = half(text)
        offset = self.plain.find(wanted) if wanted.strip() else -1
        while offset >= 0:
            stop = offset + len(wanted)
            if not begins_inside(self.plain, offset) and not ends_inside(self.plain, stop):
                number = self.index.piece_at(offset)
                start = self._starts[number]
                yield self.index.place(number, offset - start, stop - start)
            offset = self.plain.find(wanted, offset + 1)

    def located(
        self, key: Hashable, search: Callable[[], Iterable[tuple[int, int]]]
    ) -> Mapping[int, list[tuple[int, int]]]:
        """Stretches of `plain` by piece, as stretches of that piece; searched once for each key."""
        if key not in self._located:
            found: dict[int, list[tuple[int, int]]] = defaultdict(list)
            for first, last in search():
                number = self.index.piece_at(first)
                found[number].append((first - self._starts[number], last - self._starts[number]))
            self._located[key] = dict(found)
        return self._located[key]

    def place_of(self, citation: Citation) -> Place | None:
        """The stretch that a citation leads to; where its piece prints the text twice, the one at its box."""
        cited = (citation.page, citation.table_id, citation.row, citation.col)
        places = [
            self.index.place(number, start, start + len(citation.text))
            for number in self.on_page(citation.page)
            if self.pieces.standing[number][1:5] == cited
            for start in _every(citation.text, self.pieces.texts[number])
        ]
        return places[0] if len(places) == 1 else min(places, key=lambda p: _apart(p.bbox, citation.bbox), default=None)

    def text_in(self, page: int, box: BBox) -> str:
        """What is printed inside a box of a page, in reading order."""
        return text_in([self.pieces.standing[number][0] for number in self.on_page(page)], box)

    def on_page(self, page: int) -> Sequence[int]:
        """The numbers of the pieces that stand on a page."""
        return self._by_page.get(page, ())

    # ------------------------------------------------------------ how it is worked out

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate([len(text) + 1 for text in self.pieces.texts[:-1]], initial=0))

    @cached_property
    def _by_page(self) -> Mapping[int, list[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for number, entry in enumerate(self.pieces.standing):
            found[entry[1]].append(number)
        return dict(found)

    @cached_property
    def _located(self) -> dict[Hashable, Mapping[int, list[tuple[int, int]]]]:
        return {}

    @cached_property
    def _folded_pieces(self) -> list[str]:
        return fold(self.plain, keep=BREAK).split(BREAK)

    @cached_property
    def _folded_starts(self) -> list[int]:
        return list(accumulate((len(text) for text in self._folded_pieces), initial=0))

    def _find_folded(self, wanted: str) -> tuple[Place, ...]:
        offset = self.folded.find(wanted) if wanted else -1
        for _ in range(_MOST_TRIES):
            if offset < 0:
                return ()
            places = self._places(offset, offset + len(wanted))
            if not cut(places):
                return places
            offset = self.folded.find(wanted, offset + 1)
        return ()

    def _places(self, start: int, stop: int) -> tuple[Place, ...]:
        first, last = (bisect_left(self._folded_starts, offset + 1) - 1 for offset in (start, stop - 1))
        places = []
        for number in range(first, last + 1):
            origin, where = self._folded_starts[number], fold_places(self.pieces[number].printed.text)
            inside = where[max(start - origin, 0) : stop - origin]
            if inside:
                places.append(self.index.place(number, inside[0], inside[-1] + 1))
        return tuple(places)


_measured: OrderedDict[int, tuple[PreparedDocument, Facts]] = OrderedDict()


def facts_of(document: PreparedDocument) -> Facts:
    """The facts of a prepared document; those of the last few documents are kept."""
    kept = _measured.get(id(document))
    if kept is not None and kept[0] is document:
        return kept[1]
    facts = measure(document)
    _measured[id(document)] = document, facts
    while len(_measured) > _KEPT:
        _measured.popitem(last=False)
    return facts


def measure(document: PreparedDocument) -> Facts:
    """The facts of a prepared document, anew."""
    return Facts(
        pages={page.number: page for page in document.pages},
        tables={table.table_id: table for table in document.tables},
        pieces=Pieces(tuple(_standing(document))),
    )


def _standing(document: PreparedDocument) -> Iterator[Standing]:
    for block in (block for page in document.pages for block in page.blocks):
        table = block.table
        if table is None:
            yield block.printed, block.page, None, None, None, block.bbox
            continue
        if table.caption:
            yield Printed(table.caption), block.page, None, None, None, block.bbox
        for cell in table.cells:
            yield cell.printed, cell.page, table.table_id, cell.row, cell.col, cell.bbox


def _every(text: str, plain: str) -> Iterator[int]:
    offset = plain.find(text)
    while offset >= 0:
        yield offset
        offset = plain.find(text, offset + (len(text) or 1))


def _apart(one: BBox | None, other: BBox) -> float:
    """How far the top left corners of two boxes are from each other."""
    return float("inf") if one is None else abs(one.x0 - other.x0) + abs(one.y0 - other.y0)


def forget() -> None:
    """Let go of the facts that are kept, and of the numbers that were read for them."""
    _measured.clear()
    readings.cache_clear()
