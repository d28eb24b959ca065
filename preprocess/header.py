"""The header of a table without drawn cells: wrapped titles made whole, and the columns that each title is over."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from docmill.types import BBox
from preprocess.grids import Slot
from preprocess.lattice import Lattice
from preprocess.titles import INSIDE, titles_of
from preprocess.units import unit_of
from preprocess.words import Word, baselines, chunks

#: In units of the font size: a title stands over the middle of its columns to this.
_CENTRED: Final = 1.2
#: A rule, or a title, is over a column if it covers this share of it.
_OVER: Final = 0.5
#: Points between pieces of one rule, and by which a rule may lie inside a title's box.
_RULE_GAP: Final = 1.5
_RULE_BELOW_EMS: Final = 0.9


_FIELD: Final = re.compile(r"^[^:：()（）]{1,14}[:：](?!$)")


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: the edges of its cells, and those of the text in them."""

    left: float
    right: float
    start: float
    end: float

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class _Title:
    """A header cell: its text's box, and its columns (first, last)."""

    word: Word
    cols: tuple[int, int]

    def over(self, other: _Title) -> bool:
        return self.cols[0] <= other.cols[1] and other.cols[0] <= self.cols[1]


def header_slots(lattice: Lattice, words: Sequence[Word], rules: Sequence[BBox]) -> tuple[Slot, ...]:
    """The header's cells; empty if the grid's own are better kept (no header, or titles that lie across each other)."""
    inside = [word for word in words if word.y < lattice.ys[lattice.header_rows]]
    if not lattice.header_rows or not inside or _is_form(inside):
        return ()
    columns = _columns(lattice, words)
    lines = titles_of(inside, lattice, _pieces(rules, lattice))
    titles = _placed(lines, columns, rules=_joined_rules(rules, lattice))
    levels = _levels(titles)
    return () if levels is None else tuple(_slots(lattice, titles, levels))


def _is_form(words: Sequence[Word]) -> bool:
    """Whether what stands above the figures is a form (Name: Li, Ward: 3), and no titles."""
    return sum(1 for row in baselines(words) for chunk in chunks(row) if _FIELD.match(chunk.text)) > 1


def _columns(lattice: Lattice, words: Sequence[Word]) -> list[_Column]:
    """The columns, with where their text lies below the header; an empty column's text fills it."""
    reach: dict[int, list[float]] = defaultdict(list)
    for word in words:
        if word.y >= lattice.ys[lattice.header_rows]:
            reach[lattice.col_at(word.x)].extend((max(word.x0, lattice.xs[lattice.col_at(word.x)]), word.x1))
    columns = []
    for col, (left, right) in enumerate(pairwise(lattice.xs)):
        text = (min(reach[col]), min(max(reach[col]), right)) if reach[col] else (left, right)
        columns.append(_Column(left, right, *text))
    return columns


# ---------------------------------------------------------------- rules


def _pieces(rules: Sequence[BBox], lattice: Lattice) -> list[BBox]:
    """The level rules between the top of the header and its bottom, the bottom left out."""
    top, bottom = lattice.ys[0] - INSIDE, lattice.ys[lattice.header_rows] - INSIDE
    return [rule for rule in rules if top < rule.y0 < bottom and rule.x1 > lattice.xs[0] and rule.x0 < lattice.xs[-1]]


def _joined_rules(rules: Sequence[BBox], lattice: Lattice) -> list[BBox]:
    """Rules drawn in pieces, as whole ones."""
    whole: list[BBox] = []
    for piece in sorted(_pieces(rules, lattice), key=lambda rule: (round(rule.y0), rule.x0)):
        last = whole[-1] if whole else None
        if last and abs(last.y0 - piece.y0) < _RULE_GAP and piece.x0 - last.x1 < _RULE_GAP:
            whole[-1] = last.union(piece)
        else:
            whole.append(piece)
    return whole


# ---------------------------------------------------------------- columns and levels


def _placed(lines: Sequence[Sequence[Word]], columns: Sequence[_Column], rules: Sequence[BBox]) -> list[_Title]:
    """Each title with the columns that it is over, from the bottom line up."""
    placed: list[_Title] = []
    natural = [[_Title(word, _natural(word, columns)) for word in line] for line in lines]
    every = [title.word for line in natural for title in line]
    for line in reversed(natural):
        ruled = [_by_rule(title.word, every, columns, rules) for title in line]
        placed.extend([_widened(*pair, line, placed, columns) for pair in zip(line, ruled, strict=True)])
    return placed


def _natural(word: Word, columns: Sequence[_Column]) -> tuple[int, int]:
    """The columns whose text a title covers; at least the one nearest to its middle."""
    nearest = min(range(len(columns)), key=lambda col: _distance(word.x, columns[col]))
    over = [col for col, column in enumerate(columns) if _share(word, column) >= _OVER] or [nearest]
    return min(over), max(over)


def _distance(x: float, column: _Column) -> float:
    return max(column.start - x, 0.0, x - column.end)


def _share(word: Word, column: _Column) -> float:
    return (min(word.x1, column.end) - max(word.x0, column.start)) / max(0.1, column.end - column.start)


def _widened(
    title: _Title,
    ruled: tuple[int, int] | None,
    line: Sequence[_Title],
    below: Sequence[_Title],
    columns: Sequence[_Column],
) -> _Title:
    """The title with all its columns: those of the rule under it, else those around whose middle it is set."""
    others = [other for other in line if other is not title]
    under = [other for other in below if other.word.y0 > title.word.y]
    if not others and not under and _is_unit(title.word.text):
        return replace(title, cols=_all_figures(title.word, columns))
    if not any(title.over(other) for other in under):
        return replace(title, cols=_leaf(title, [*others, *below], columns))
    if ruled is None and not others and _is_over_all(title.word, below, columns):
        return replace(title, cols=(0, len(columns) - 1))
    return replace(title, cols=ruled or _by_middle(title, others, under, columns))


def _is_unit(text: str) -> bool:
    return text[0] in "([（【" or unit_of(text) is not None


def _all_figures(word: Word, columns: Sequence[_Column]) -> tuple[int, int]:
    """The columns of a line that states the unit of the figures under it: those around whose middle it is set."""
    last = len(columns) - 1
    first = min((0, 1), key=lambda col: _off_middle(word.x, min(col, last), last, columns))
    centred = _off_middle(word.x, min(first, last), last, columns) < _CENTRED * word.size
    return (min(first, last), last) if centred else _natural(word, columns)


def _is_over_all(word: Word, below: Sequence[_Title], columns: Sequence[_Column]) -> bool:
    """Whether a title stands above all others, at the middle of the table."""
    above = all(word.y1 <= other.word.y0 + INSIDE for other in below)
    return above and _off_middle(word.x, 0, len(columns) - 1, columns) < _CENTRED * word.size


def _leaf(title: _Title, others: Sequence[_Title], columns: Sequence[_Column]) -> tuple[int, int]:
    """A title with nothing below it is over one column, and over more only if they have no title of their own."""
    first, last = title.cols
    if not any(other.over(title) for other in others):
        return first, last
    nearest = min(range(first, last + 1), key=lambda col: abs(title.word.x - columns[col].middle))
    return nearest, nearest


def _by_rule(
    word: Word, every: Sequence[Word], columns: Sequence[_Column], rules: Sequence[BBox]
) -> tuple[int, int] | None:
    """The columns over the rule that is drawn under a title; titles that share a rule share its columns out."""
    low, high = word.y1 - INSIDE, word.y1 + _RULE_BELOW_EMS * word.size
    near = [rule for rule in rules if low <= rule.y0 <= high]
    under = [rule for rule in near if abs(rule.y0 - near[0].y0) < _RULE_GAP]
    whole = any(rule.x0 <= columns[0].middle < word.x0 for rule in under)  # it parts the whole header, not one title
    if whole or not any(rule.x0 <= word.x <= rule.x1 for rule in under):
        return None
    cols = [col for col, one in enumerate(columns) if any(rule.x0 <= one.middle <= rule.x1 for rule in under)]
    same = [one for one in every if abs(one.y1 - word.y1) <= INSIDE + 0.5 * word.size]
    sharing = sorted(one.x for one in same if under[0].x0 <= one.x <= under[-1].x1)
    return _shares(sharing, cols, columns)[sharing.index(word.x)] if len(cols) >= len(sharing) else None


def _shares(middles: Sequence[float], cols: Sequence[int], columns: Sequence[_Column]) -> list[tuple[int, int]]:
    """The columns `cols` dealt out in order to titles at `middles`, so that each is as near its middle as can be."""

    def off(title: int, start: int, end: int) -> float:
        return _off_middle(middles[title], cols[start], cols[end - 1], columns)

    best: dict[int, tuple[float, list[tuple[int, int]]]] = {0: (0.0, [])}
    for title in range(len(middles)):
        left = len(middles) - title - 1
        ends = [len(cols)] if not left else range(title + 1, len(cols) - left + 1)
        best = {
            end: min(
                (cost + off(title, start, end), [*runs, (cols[start], cols[end - 1])])
                for start, (cost, runs) in best.items()
                if start < end
            )
            for end in ends
            if any(start < end for start in best)
        }
    return best[len(cols)][1]


def _by_middle(
    title: _Title, others: Sequence[_Title], under: Sequence[_Title], columns: Sequence[_Column]
) -> tuple[int, int]:
    """The widest run of titled columns around the title whose middle is the title's."""
    free = [
        any(other.cols[0] <= col <= other.cols[1] for other in under)
        and not any(other.cols[0] <= col <= other.cols[1] for other in others)
        for col in range(len(columns))
    ]
    low, high = title.cols
    best, nearest = title.cols, _off_middle(title.word.x, low, high, columns)
    for first in range(low, -1, -1):
        if not free[first] and first < low:
            break
        for last in range(high, len(columns)):
            if not free[last] and last > high:
                break
            off = _off_middle(title.word.x, first, last, columns)
            if off < max(nearest - 0.1, 0.5 * title.word.size) and off < _CENTRED * title.word.size:
                best, nearest = (first, last), min(off, nearest)
    return best


def _off_middle(x: float, first: int, last: int, columns: Sequence[_Column]) -> float:
    """How far x is from the middle of a run of columns: of their text, or of their cells, whichever is nearer."""
    text, cells = columns[first].start + columns[last].end, columns[first].left + columns[last].right
    return min(abs(x - text / 2), abs(x - cells / 2))


def _levels(titles: Sequence[_Title]) -> dict[int, int] | None:
    """{index of title: its row}; None if two titles stand side by side over one column."""
    order = sorted(range(len(titles)), key=lambda index: titles[index].word.y)
    levels: dict[int, int] = {}
    for index in order:
        above = [other for other in levels if titles[other].over(titles[index])]
        if any(titles[index].word.y - titles[other].word.y < 0.5 * titles[other].word.size for other in above):
            return None
        levels[index] = max((levels[other] + 1 for other in above), default=0)
    return levels


def _slots(lattice: Lattice, titles: Sequence[_Title], levels: dict[int, int]) -> list[Slot]:
    """Cells that cover the header: each title from below the one above it to above the one below it."""
    rows = max(levels.values()) + 1
    slots = []
    for index, title in enumerate(titles):
        first, last = title.cols
        below = [other for other in levels if levels[other] > levels[index] and titles[other].over(title)]
        above = [other for other in levels if levels[other] < levels[index] and titles[other].over(title)]
        end = min((levels[other] for other in below), default=rows)
        top = max(((titles[o].word.y1 + title.word.y0) / 2 for o in above), default=lattice.ys[0])
        bottom = min(((titles[o].word.y0 + title.word.y1) / 2 for o in below), default=lattice.ys[lattice.header_rows])
        box = BBox(min(lattice.xs[first], title.word.x0), top, max(lattice.xs[last + 1], title.word.x1), bottom)
        slots.append(Slot(levels[index], first, end - levels[index], last - first + 1, box))
    return slots
