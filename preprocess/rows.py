"""Rows that a model merged, or split where a cell is wrapped, mended from their words; and how many are header."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from docmill.types import BBox
from preprocess.cells import is_value
from preprocess.join import is_cjk
from preprocess.lattice import Lattice, merge_rows, split_row
from preprocess.words import Word, baselines

_MOST_HEADER_ROWS: Final = 6
#: Points between a rule and the row that it closes.
_ON_EDGE: Final = 9.0
#: In units of the font size: lines of one cell are no further apart, and by so much closer than rows are.
_TIGHT: Final = 0.35
_CLOSER: Final = 0.3
#: A label that reaches this share of its column's width may go on below.
_FULL: Final = 0.6
_GOES_ON: Final = re.compile(r"^[a-z(（,，)）]")
_OPEN_END: Final = re.compile(r"[,，、\-‐–(（]$|\b(and|or|of|the|in|for|to|with|by|from)$")

Row = dict[int, list[Word]]


def count_header_rows(lattice: Lattice, words: Sequence[Word], rules: Sequence[BBox]) -> int:
    """How many rows head the columns: those that the model names, and more that stand above the first figures."""
    cells = lattice.cells(words)
    rows: dict[int, dict[int, str]] = defaultdict(dict)
    for (row, col), inside in sorted(cells.items()):
        rows[row][col] = " ".join(word.text for word in inside)
    titles = 0
    while titles < lattice.rows and not _has_figures(rows[titles]):
        titles += 1
    count = max(titles if titles < lattice.rows else 0, lattice.header_rows)
    while count > 1 and (_is_section(rows[count - 1]) or _is_alike(rows[count - 1], rows[count])):
        count -= 1
    count = count if count <= _MOST_HEADER_ROWS else lattice.header_rows
    return next((row for row in range(1, count) if 0 in rows[row] and _is_ruled_below(lattice, row, rules)), count)


def _is_ruled_below(lattice: Lattice, row: int, rules: Sequence[BBox]) -> bool:
    """Whether one rule as long as the table is wide runs over the row."""
    left, right = (lattice.xs[0] + lattice.xs[1]) / 2, (lattice.xs[-2] + lattice.xs[-1]) / 2
    near = [rule for rule in rules if abs(rule.y0 - lattice.ys[row]) < _ON_EDGE]
    return any(rule.x0 < left and rule.x1 > right for rule in near)


def _has_figures(row: Mapping[int, str]) -> bool:
    """Whether a row holds data; numbers that count the columns (1, 2, 3) do not."""
    figures = [text for text in row.values() if is_value(text)]
    counting = [int(text) for text in figures if text.isdigit()]
    counts = len(counting) > 2 and all(b - a == 1 for a, b in pairwise(counting))
    return bool(figures) and not counts


def _is_section(row: Mapping[int, str]) -> bool:
    """Whether a row names what follows: only its first cell is filled."""
    return set(row) == {0}


def _is_alike(row: Mapping[int, str], below: Mapping[int, str]) -> bool:
    """Whether most cells of a row say what the cells below them say, with other digits."""
    both = [(row[col], below[col]) for col in row if col in below and col]
    with_words = [(one, other) for one, other in both if any(map(str.isdigit, one)) and any(map(str.isalpha, one))]
    alike = [one for one, other in with_words if _wording(one) == _wording(other)]
    return len(both) > 1 and len(alike) * 2 > len(both)


def _wording(text: str) -> str:
    return re.sub(r"[\d.,%]+", "0", text)


def split_rows(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """Rows in which several columns hold the same number of figures under each other are several rows."""
    inside: dict[int, list[Word]] = defaultdict(list)
    for word in words:
        inside[lattice.row_at(word.y)].append(word)
    for row in range(lattice.rows - 1, lattice.header_rows - 1, -1):  # from below: rows above keep their numbers
        if any(at[0] <= row < at[0] + span[0] and span[0] > 1 for at, span in lattice.spans.items()):
            continue
        edges = _row_edges(inside[row], lattice)
        if edges:
            lattice = split_row(lattice, row, edges)
    return lattice


def _row_edges(words: Sequence[Word], lattice: Lattice) -> list[float]:
    rows = baselines(words)
    figures = [{lattice.col_at(word.x) for word in row if is_value(word.text)} for row in rows]
    with_figures = [index for index, cols in enumerate(figures) if cols]
    filled = [figures[index] for index in with_figures]
    shared, all_of_them = set[int]().union(*filled[:1]).intersection(*filled), set[int]().union(*filled)
    if len(filled) < 2 or len(shared) < 2 or len(all_of_them) > 2 * len(shared):
        return []
    return [_between(rows[above], rows[below]) for above, below in pairwise(with_figures) if below - above == 1]


def _between(above: Sequence[Word], below: Sequence[Word]) -> float:
    return (max(word.y1 for word in above) + min(word.y0 for word in below)) / 2


def merge_wrapped(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """Rows that go on with the text of the row above are one row with it."""
    gaps = _row_gaps(lattice, words)
    usual = median(gaps.values()) if gaps else 0.0
    rows: dict[int, Row] = defaultdict(dict)
    for (row, col), inside in lattice.cells(words).items():
        rows[row][col] = inside
    for row in range(lattice.rows - 1, lattice.header_rows, -1):
        above, below = rows[row - 1], rows[row]
        if above and below and _goes_on(above, below, gaps.get(row, usual), usual, lattice):
            lattice = merge_rows(lattice, row - 1)
            rows[row - 1] = {col: [*above.get(col, ()), *below.get(col, ())] for col in {*above, *below}}
    return lattice


def _row_gaps(lattice: Lattice, words: Sequence[Word]) -> dict[int, float]:
    """The space between each row's text and that of the row above it, in points, by row."""
    tops: dict[int, float] = {}
    bottoms: dict[int, float] = {}
    for word in words:
        row = lattice.row_at(word.y)
        tops[row] = min(tops.get(row, word.y0), word.y0)
        bottoms[row] = max(bottoms.get(row, word.y1), word.y1)
    first = max(1, lattice.header_rows + 1)
    return {
        row: tops[row] - bottoms[row - 1] for row in range(first, lattice.rows) if row in tops and row - 1 in bottoms
    }


def _goes_on(above: Row, below: Row, gap: float, usual: float, lattice: Lattice) -> bool:
    """Whether the row below is the second line of the row above: not both have figures, and the text reads on."""
    over, under = _has_figure(above), _has_figure(below)
    if (
        (over and under)
        or (not under and not set(below) <= set(above))
        or (len(below) > 1 and set(below) == set(above))
    ):
        return False
    size = below[min(below)][0].size
    if 0 not in below or 0 not in above:
        return not under and gap < _TIGHT * size < usual
    if is_cjk(below[0][0].text[0]):
        return not under and _fills(above[0], lattice) and gap < usual - _CLOSER * size
    if not (over or under) or (under and not _fills(above[0], lattice)):
        return False
    reads_on = bool(_GOES_ON.match(below[0][0].text)) or bool(_OPEN_END.search(above[0][-1].text))
    return reads_on and gap < max(usual, _TIGHT * size) + 1.0


def _has_figure(row: Row) -> bool:
    return any(is_value(word.text) for cell in row.values() for word in cell)


def _fills(label: Sequence[Word], lattice: Lattice) -> bool:
    """Whether a label ends near the right edge of the first column, so that more of it has to stand below."""
    left, right = lattice.xs[0], lattice.xs[1]
    return left + _FULL * (right - left) <= label[-1].x1 <= right
