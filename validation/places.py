"""Stretches of a document's text: where a value stands, and whether it stands there whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from docmill.types import BBox, Piece, Printed
from validation.dates import Dated
from validation.numbers import Number
from validation.text import half

Standing = tuple[Printed, int, str | None, int | None, int | None, BBox | None]
"""A citable text as it stands in a document: its page, its cell if it is one, the box of the block or cell."""


class Pieces(Sequence[Piece]):
    """The citable texts of a document, made into pieces when asked for: most never are."""

    def __init__(self, standing: tuple[Standing, ...]) -> None:
        self.standing = standing
        self.texts = [entry[0].text for entry in standing]
        self._made: dict[int, Piece] = {}
        self._numbers: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.standing)

    @overload
    def __getitem__(self, index: int) -> Piece: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Piece]: ...
    def __getitem__(self, index: int | slice) -> Piece | Sequence[Piece]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        if index not in self._made:
            if not 0 <= index < len(self.standing):
                raise IndexError(index)
            self._made[index] = piece = Piece(*self.standing[index][:-1])
            self._numbers[id(piece)] = index
        return self._made[index]

    def number_of(self, piece: Piece) -> int | None:
        """The place of one of these very pieces among them."""
        return self._numbers.get(id(piece))


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

    @property
    def text(self) -> str:
        return self.piece.printed.text[self.start : self.stop]


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


def cut(places: Sequence[Place]) -> bool:
    """Whether the stretch begins or ends inside a word or a number."""
    first, last = places[0], places[-1]
    left, right = half(first.piece.printed.text), half(last.piece.printed.text)
    return begins_inside(left, first.start) or ends_inside(right, last.stop)


def begins_inside(plain: str, start: int) -> bool:
    """Whether text in half width goes on to the left of a stretch."""
    return _joined(plain[max(0, start - 2) : start][::-1], plain[start])


def ends_inside(plain: str, stop: int) -> bool:
    """Whether text in half width goes on to the right of a stretch."""
    return _joined(plain[stop : stop + 2], plain[stop - 1])


def _joined(outside: str, edge: str) -> bool:
    """Whether what stands outside, nearest character first, goes on with the word or number at the edge."""
    if not (edge.isascii() and edge.isalnum()) or not outside:
        return False
    if edge.isdigit() and outside[0] in ".," and outside[1:2].isdigit():
        return True
    return outside[0].isascii() and outside[0].isalnum()
