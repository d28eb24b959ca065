"""What must add up in a table, found from the table itself.

A relation is a set of lines (rows or columns) that add up to another, such as the rows above a total. Which rows those
are a table does not say; the relation that holds in one column is the one that must hold in the others. Where it does
not, it is reported if one slip in one cell explains it: a digit, two digits swapped, a sign, a power of ten. So an
average below a column of prices is no error, a row that the parser lost is none of the table's, and a misread digit is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

from docmill.types import Cell
from validation.grid import Grid
from validation.index import significand

#: Digits of a sum below which it may hold by chance.
_TELLING = 3
_BLANK = "-–—−/ "


@dataclass(frozen=True, slots=True)
class Amount:
    """A cell's printed number; `cell` is None for a blank, which counts as nothing."""

    value: Decimal
    cell: Cell | None = None
    relative: bool = False


_NOTHING = Amount(Decimal(0))


@dataclass(frozen=True, slots=True)
class Slip:
    """A sum that does not hold: the cell that one slip would explain (else the sum's own) and what it should say."""

    cell: Cell
    expected: Decimal
    cells: tuple[Cell, ...]


Relation = Mapping[int, int]
"""Line numbers with their factors: parts with +1 or -1, the line that they make with -1; together nothing."""


@dataclass(frozen=True)
class Lines:
    """A table's numbers, by line and place in the line; `across` turns it, so that its columns are the lines."""

    grid: Grid
    across: bool = False

    @cached_property
    def count(self) -> int:
        return self.grid.table.cols if self.across else self.grid.table.rows

    @cached_property
    def places(self) -> range:
        """Where numbers can stand in a line."""
        if self.across:
            return range(self.grid.head_rows, self.grid.table.rows)
        return range(1, self.grid.table.cols)

    def amount(self, line: int, place: int) -> Amount | None:
        """The number there; None for a text."""
        return self.at(place)[line]

    def at(self, place: int) -> Mapping[int, Amount | None]:
        """The numbers there by line, each read when asked for."""
        if place not in self._places:
            self._places[place] = _Place(self, place)
        return self._places[place]

    @cached_property
    def _places(self) -> dict[int, _Place]:
        return {}

    def read(self, line: int, place: int) -> Amount | None:
        """What is printed there, looked at anew."""
        return self._read((place, line) if self.across else (line, place))

    def _read(self, at: tuple[int, int]) -> Amount | None:
        cell = self.grid.cells.get(at)
        if cell is None or not cell.text.strip(_BLANK):
            return _NOTHING
        number = self.grid.number(*at)
        return Amount(number.value, cell, number.relative) if number else None

    def residual(self, relation: Relation, place: int) -> Decimal | None:
        """By how much the relation is off there; None where it cannot be asked."""
        amounts = self.amounts(relation, place)
        return _sum(amounts, relation) if amounts else None

    def amounts(self, relation: Relation, place: int) -> dict[int, Amount]:
        """The numbers of a relation at a place; empty if one is a text, kinds are mixed or too few are printed."""
        here = self.at(place)
        found = {line: here[line] for line in relation}
        amounts = {line: one for line, one in found.items() if one is not None}
        printed = [one for one in amounts.values() if one.cell is not None]
        whole = next(reversed(relation))
        if len(amounts) < len(found) or len(printed) < 3 or amounts[whole].cell is None:
            return {}
        shares = {one.relative for one in printed}
        # Rates have no sum; shares of a whole make a hundred.
        rates = shares == {True} and not 99 <= amounts[whole].value <= 101
        return amounts if len(shares) == 1 and not rates else {}

    def holds(self, relation: Relation, place: int) -> bool | None:
        amounts = self.amounts(relation, place)
        return abs(_sum(amounts, relation)) <= slack(amounts.values()) if amounts else None


class _Place(dict[int, "Amount | None"]):
    def __init__(self, lines: Lines, place: int) -> None:
        self._lines, self._at = lines, place

    def __missing__(self, line: int) -> Amount | None:
        self[line] = found = self._lines.read(line, self._at)
        return found


def _sum(amounts: Mapping[int, Amount], relation: Relation) -> Decimal:
    return sum((one.value if relation[line] > 0 else -one.value for line, one in amounts.items()), Decimal(0))


def slack(amounts: Iterable[Amount]) -> Decimal:
    """Half of the last printed digit for each number that is not exact."""
    return rounding([one.value for one in amounts if one.cell is not None])


def rounding(values: Sequence[Decimal]) -> Decimal:
    """What numbers rounded to their last printed digit may be off by, together."""
    exponents = [exponent for value in values if isinstance(exponent := value.as_tuple().exponent, int)]
    return Decimal(1).scaleb(max(exponents, default=0)) * len(values) / 2


def broken(lines: Lines, relation: Relation, *, sure: bool = False) -> Iterator[Slip]:
    """Where a relation does not hold, if it is known to be one: by its labels (`sure`), or by other places."""
    judged = {place: lines.holds(relation, place) for place in lines.places}
    telling = [place for place, holds in judged.items() if holds and _tells(lines, relation, place)]
    failing = [place for place, holds in judged.items() if holds is False]
    if not (sure or telling) or len(failing) > max(len(telling), 1):
        return
    for place in failing:
        slip = _slip(lines, relation, place)
        if slip is not None:
            yield slip


def _tells(lines: Lines, relation: Relation, place: int) -> bool:
    """Whether it can hardly hold by chance there."""
    whole = next(reversed(relation))
    amounts = lines.amounts(relation, place)
    parts = [one for line, one in amounts.items() if line != whole and one.value]
    return len(amounts[whole].value.as_tuple().digits) >= _TELLING and len(parts) >= 2


def _slip(lines: Lines, relation: Relation, place: int) -> Slip | None:
    amounts, residual = lines.amounts(relation, place), lines.residual(relation, place) or Decimal(0)
    cells = tuple(one.cell for one in amounts.values() if one.cell is not None)
    for line, one in reversed(amounts.items()):
        expected = one.value - residual * relation[line]
        if one.cell is not None and one_slip(one.value, expected):
            return Slip(one.cell, expected, cells)
    return None


def one_slip(printed: Decimal, expected: Decimal) -> bool:
    """A sign, a power of ten, one digit or two neighbours apart."""
    if not printed or not expected:
        return False
    if printed == -expected or significand(printed) == significand(expected):
        return True
    left, right = (re.sub(r"\D", "", f"{value:f}") for value in _aligned(printed, expected))
    apart = [index for index, (one, other) in enumerate(zip(left, right, strict=False)) if one != other]
    if len(left) != len(right) or (printed < 0) != (expected < 0):
        return False
    swapped = len(apart) == 2 and apart[1] == apart[0] + 1 and left[apart[0]] == right[apart[1]]
    return len(apart) == 1 or (swapped and left[apart[1]] == right[apart[0]])


def _aligned(one: Decimal, other: Decimal) -> tuple[Decimal, Decimal]:
    """Both with as many decimals as the finer has."""
    exponent = min(value.as_tuple().exponent for value in (one, other) if isinstance(value.as_tuple().exponent, int))
    unit = Decimal(1).scaleb(int(exponent))
    return one.quantize(unit), other.quantize(unit)
