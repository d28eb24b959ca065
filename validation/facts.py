"""What a document holds, found without help from the model: text, numbers, dates, each with its place.

Everything is worked out when first asked for: a result with three fields costs three searches, not a full index.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from docmill.types import BBox, Citation, Page, Piece, PreparedDocument, Printed, Table
from validation.dates import Dated, scan_dates
from validation.numbers import Number, scan_numbers
from validation.text import fold, fold_places, half

#: A text that is met this often as a part of longer words is not looked for any further.
_MOST_TRIES = 10_000
#: Points by which a box may miss the middle of a character that it is meant to hold.
_SLACK = 1.0
#: A document is Chinese above the first share of Chinese letters, mixed above the second, else English.
_CHINESE, _MIXED = 0.5, 0.05

_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_LATIN = re.compile("[A-Za-z]+")
_WRAPPED = re.compile(r"(?<=[0-9.,])\s*\n\s*(?=[0-9.,])")


@dataclass(frozen=True, slots=True)
class Place:
    """A stretch of a piece. `outline` is the box of the whole block or cell."""

    piece: Piece
    start: int
    stop: int
    outline: BBox | None

    @property
    def page(self) -> int:
        return self.piece.page

    @property
    def bbox(self) -> BBox | None:
        return self.piece.printed.box(self.start, self.stop) or self.outline


@dataclass(frozen=True, slots=True)
class NumberAt:
    """A number of the document; the scale of its table is not in it. `sure`: print allows no other reading."""

    number: Number
    place: Place
    sure: bool = True


@dataclass(frozen=True, slots=True)
class DateAt:
    dated: Dated
    place: Place


@dataclass(frozen=True)
class Facts:
    """The facts of one document. `pieces` are its citable texts in reading order, `outlines` their boxes."""

    pages: Mapping[int, Page]
    tables: Mapping[str, Table]
    pieces: tuple[Piece, ...]
    outlines: tuple[BBox | None, ...]

    @cached_property
    def language(self) -> str:
        """zh, en or mixed."""
        text = "".join(piece.printed.text for piece in self.pieces)
        chinese, english = len(_HAN.findall(text)), len(_LATIN.findall(text))
        share = chinese / ((chinese + english) or 1)
        return "zh" if share > _CHINESE else "mixed" if share > _MIXED else "en"

    @cached_property
    def numbers(self) -> Mapping[Decimal, list[NumberAt]]:
        """Every reading of every number, by value; parts of dates are no numbers, save the year."""
        index: dict[Decimal, list[NumberAt]] = defaultdict(list)
        for number in range(len(self.pieces)):
            for found in self._numbers_of(number):
                index[found.number.value].append(found)
        return dict(index)

    @cached_property
    def significands(self) -> Mapping[str, list[NumberAt]]:
        """Numbers by their digits alone, without sign, decimal mark and zeros at the ends."""
        index: dict[str, list[NumberAt]] = defaultdict(list)
        for value, found in self.numbers.items():
            index[significand(value)].extend(found)
        return dict(index)

    @cached_property
    def dates(self) -> tuple[DateAt, ...]:
        return tuple(
            DateAt(dated, self._place(number, dated.start, dated.stop))
            for number, piece in enumerate(self.pieces)
            for dated in scan_dates(piece.printed.text)
        )

    @cached_property
    def days(self) -> Mapping[date, DateAt]:
        """The first place of every day, both days of an ambiguous date."""
        return {day: found for found in reversed(self.dates) for day in found.dated.readings}

    @cached_property
    def page_texts(self) -> Mapping[int, str]:
        texts: dict[int, list[str]] = {number: [] for number in self.pages}
        for piece in self.pieces:
            texts.setdefault(piece.page, []).append(piece.printed.text)
        return {number: "\n".join(parts) for number, parts in texts.items()}

    @cached_property
    def text(self) -> str:
        """The whole document in half width, a line for each piece at least."""
        return "\n".join(half(piece.printed.text) for piece in self.pieces)

    @cached_property
    def folded(self) -> str:
        """The whole document as compared; `_starts` says where each piece begins in it."""
        return "".join(self._folded_pieces)

    def find(self, text: str) -> tuple[Place, ...]:
        """The first place where the text stands as printed and is not cut out of a longer word or number.

        Blanks, width and kinds of dashes do not matter. A text that runs over several pieces gives a place in each.
        """
        wanted = fold(text)
        offset = self.folded.find(wanted) if wanted else -1
        for _ in range(_MOST_TRIES):
            if offset < 0:
                return ()
            places = self._places(offset, offset + len(wanted))
            if not _cut(places):
                return places
            offset = self.folded.find(wanted, offset + 1)
        return ()

    def place_of(self, citation: Citation) -> Place | None:
        """The stretch that a citation leads to; where its piece prints the text twice, the one at its box."""
        cited = (citation.page, citation.table_id, citation.row, citation.col)
        places = [
            self._place(number, match.start(), match.end())
            for number, piece in enumerate(self.pieces)
            if (piece.page, piece.table_id, piece.row, piece.col) == cited
            for match in re.finditer(re.escape(citation.text), piece.printed.text)
        ]
        return min(places, key=lambda place: _apart(place.bbox, citation.bbox), default=None)

    def everywhere(self, text: str) -> Iterator[Place]:
        """Every place inside one piece where exactly this text stands whole."""
        wanted = re.compile(re.escape(text))
        for number, piece in enumerate(self.pieces):
            for match in wanted.finditer(piece.printed.text):
                place = self._place(number, match.start(), match.end())
                if not _cut((place,)):
                    yield place

    def text_in(self, page: int, box: BBox) -> str:
        """What is printed inside a box of a page, in reading order."""
        numbers, bounds = self._page_bounds.get(page, ([], np.empty((0, 4), np.float32)))
        touching = (
            (bounds[:, 0] <= box.x1) & (bounds[:, 2] >= box.x0) & (bounds[:, 1] <= box.y1) & (bounds[:, 3] >= box.y0)
        )
        return "\n".join(_inside(self.pieces[numbers[row]].printed, box) for row in np.flatnonzero(touching))

    # ------------------------------------------------------------ how it is worked out

    @cached_property
    def _folded_pieces(self) -> tuple[str, ...]:
        return tuple(fold(piece.printed.text) for piece in self.pieces)

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(text) for text in self._folded_pieces), initial=0))

    @cached_property
    def _page_bounds(self) -> Mapping[int, tuple[list[int], NDArray[np.float32]]]:
        on_page: dict[int, list[int]] = defaultdict(list)
        for number, piece in enumerate(self.pieces):
            on_page[piece.page].append(number)
        return {page: (numbers, np.array([self._bounds(n) for n in numbers])) for page, numbers in on_page.items()}

    def _bounds(self, number: int) -> tuple[float, float, float, float]:
        boxes = _boxes(self.pieces[number].printed)
        if len(boxes):
            return (*boxes[:, :2].min(axis=0), *boxes[:, 2:].max(axis=0))
        return self.outlines[number] or (0.0, 0.0, 0.0, 0.0)

    def _place(self, number: int, start: int, stop: int) -> Place:
        return Place(self.pieces[number], start, stop, self.outlines[number])

    def _places(self, start: int, stop: int) -> tuple[Place, ...]:
        first, last = (bisect_right(self._starts, offset) - 1 for offset in (start, stop - 1))
        places = []
        for number in range(first, last + 1):
            origin, where = self._starts[number], fold_places(self.pieces[number].printed.text)
            inside = where[max(start - origin, 0) : stop - origin]
            if inside:
                places.append(self._place(number, inside[0], inside[-1] + 1))
        return tuple(places)

    def _numbers_of(self, number: int) -> Iterator[NumberAt]:
        piece = self.pieces[number]
        text = piece.printed.text
        dates = [(dated.start, dated.stop) for dated in scan_dates(text)]
        for found in scan_numbers(text, whole_cells=piece.table_id is not None):
            if not any(start < found.start and found.stop <= stop for start, stop in dates):
                place = self._place(number, found.start, found.stop)
                sure = found.other is None
                yield from (NumberAt(reading, place, sure) for reading in (found.number, found.other) if reading)
        if piece.table_id is not None and _WRAPPED.search(text):
            # A number that its cell was too narrow for: the place is the cell.
            for found in scan_numbers(_WRAPPED.sub("", text)):
                yield NumberAt(found.number, self._place(number, 0, len(text)))


def facts_of(document: PreparedDocument) -> Facts:
    """The facts of a prepared document."""
    standing = [*_standing(document)]
    return Facts(
        pages={page.number: page for page in document.pages},
        tables={table.table_id: table for table in document.tables},
        pieces=tuple(piece for piece, _ in standing),
        outlines=tuple(outline for _, outline in standing),
    )


def significand(value: Decimal) -> str:
    """The digits of a number without sign, decimal mark and zeros at the ends."""
    return "".join(map(str, value.as_tuple().digits)).strip("0")


def _standing(document: PreparedDocument) -> Iterator[tuple[Piece, BBox | None]]:
    for block in (block for page in document.pages for block in page.blocks):
        if block.table is None:
            yield Piece(block.printed, block.page), block.bbox
            continue
        if block.table.caption:
            yield Piece(Printed(block.table.caption), block.page), block.bbox
        for cell in block.table.cells:
            yield Piece(cell.printed, cell.page, block.table.table_id, cell.row, cell.col), cell.bbox


def _boxes(printed: Printed) -> NDArray[np.float32]:
    """One row for each character that stands on a page."""
    boxes = np.frombuffer(printed.boxes, dtype="<f4").reshape(-1, 4)
    return boxes[boxes.any(axis=1)]


def _inside(printed: Printed, box: BBox) -> str:
    """The characters whose middle lies in the box; all of them where only the piece's own box is known."""
    if not printed.boxes:
        return printed.text
    boxes = np.frombuffer(printed.boxes, dtype="<f4").reshape(-1, 4)
    x, y = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    inside = (x >= box.x0 - _SLACK) & (x <= box.x1 + _SLACK) & (y >= box.y0 - _SLACK) & (y <= box.y1 + _SLACK)
    return "".join(printed.text[index] for index in np.flatnonzero(inside & boxes.any(axis=1)))


def _apart(one: BBox | None, other: BBox) -> float:
    """How far the top left corners of two boxes are from each other."""
    return float("inf") if one is None else abs(one.x0 - other.x0) + abs(one.y0 - other.y0)


def _cut(places: tuple[Place, ...]) -> bool:
    """Whether the stretch begins or ends inside a word or a number."""
    first, last = places[0], places[-1]
    left, right = half(first.piece.printed.text), half(last.piece.printed.text)
    return _joined(left[: first.start][::-1], left[first.start]) or _joined(right[last.stop :], right[last.stop - 1])


def _joined(outside: str, edge: str) -> bool:
    """Whether what stands outside, nearest character first, goes on with the word or number at the edge."""
    if not (edge.isascii() and edge.isalnum()) or not outside:
        return False
    if edge.isdigit() and outside[0] in ".," and outside[1:2].isdigit():
        return True
    return outside[0].isascii() and outside[0].isalnum()
