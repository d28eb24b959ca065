"""Two independent readings of a table: the grid that a reader gives, and where its figures stand in print.

The second reading knows neither rules nor model: figures on one line of print are one row, figures that stand under
each other are one column. How far the two agree is the table's confidence.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from statistics import median
from typing import Final

from docmill.types import BBox, Cell, Table
from preprocess.cells import is_value
from preprocess.glyphs import Line
from preprocess.words import Word, baselines, joined, words_in

#: A table with fewer figures says too little to be compared.
_FEWEST: Final = 4
#: In units of the font size: two figures of one column may lie so far apart.
_BESIDE: Final = 0.5
#: A figure that is printed in groups: 12 345.6.
_GROUPS: Final = re.compile(r"^\D?\d{1,3}(?: \d{3})+(?:[.,]\d+)?[)）%]?$")


def agreement(table: Table, lines: Sequence[Line]) -> float | None:
    """The share of figures on which both readings agree, 0 to 1: the least of digits, rows and columns.

    `lines` are all lines around the table on its page. None if the table has too few figures to tell.
    """
    cells = [cell for cell in table.cells if cell.bbox is not None and cell.text]
    words = [word for word in words_in(lines, table.regions[0].bbox) if _is_figure(word.text)]
    figures, owners = _figures(words, cells)
    if len(figures) < _FEWEST:
        return None
    return round(min(_digits(figures, cells), _rows(figures, owners), _columns(figures, owners)), 3)


def _is_figure(text: str) -> bool:
    """Whether a word is a number; one inside a cell of text says nothing of rows and columns, and is left out later."""
    return is_value(text) and any(map(str.isdigit, text))


def _figures(words: Iterable[Word], cells: Sequence[Cell]) -> tuple[list[Word], list[Cell | None]]:
    """The figures and their cells; a figure printed in groups (12 345) is one, one among words is left out."""
    figures: list[Word] = []
    owners: list[Cell | None] = []
    for row in baselines(words):
        for word in row:
            owner = _owner(word, cells)
            same = owner is not None and bool(owners) and owners[-1] is owner
            if same and _GROUPS.match(f"{figures[-1].text} {word.text}"):
                figures[-1] = joined(figures[-1], word)
            elif owner is None or is_value(owner.text):
                figures.append(word)
                owners.append(owner)
    return figures, owners


def _owner(word: Word, cells: Iterable[Cell]) -> Cell | None:
    """The cell in whose box the word's middle is; of several the smallest, as a title's box may reach over others."""
    around = [cell for cell in cells if cell.bbox is not None and _holds(cell.bbox, word)]
    return min(around, key=_size, default=None)


def _holds(box: BBox, word: Word) -> bool:
    return box.x0 <= word.x <= box.x1 and box.y0 <= word.y <= box.y1


def _size(cell: Cell) -> float:
    return 0.0 if cell.bbox is None else (cell.bbox.x1 - cell.bbox.x0) * (cell.bbox.y1 - cell.bbox.y0)


def _digits(figures: Sequence[Word], cells: Iterable[Cell]) -> float:
    """The share of printed digits that the cells hold, each once."""
    printed = Counter(char for word in figures for char in word.text if char.isdigit())
    held = Counter(char for cell in cells for char in cell.text if char.isdigit())
    return (printed & held).total() / printed.total()


def _rows(figures: Sequence[Word], owners: Sequence[Cell | None]) -> float:
    """The share of figures whose line of print is one row of the table, and whose row is one line of print."""
    line_of = {id(word): number for number, line in enumerate(baselines(figures)) for word in line}
    pairs = [(line_of[id(word)], owner.row) for word, owner in zip(figures, owners, strict=True) if owner]
    return _one_to_one(pairs) * len(pairs) / len(figures)


def _one_to_one(pairs: Sequence[tuple[Hashable, Hashable]]) -> float:
    """The share of pairs that go with the most frequent partner on both sides."""
    left: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    right: dict[Hashable, Counter[Hashable]] = defaultdict(Counter)
    for one, other in pairs:
        left[one][other] += 1
        right[other][one] += 1
    good = sum(1 for a, b in pairs if left[a].most_common(1)[0][0] == b and right[b].most_common(1)[0][0] == a)
    return good / len(pairs) if pairs else 0.0


def _columns(figures: Sequence[Word], owners: Sequence[Cell | None]) -> float:
    """The share of figures that stand under those of their own column, and not under those of another."""
    by_col: dict[int, list[Word]] = defaultdict(list)
    for word, owner in zip(figures, owners, strict=True):
        if owner is not None:
            by_col[owner.col].append(word)
    bands = {col: (median(w.x0 for w in words), median(w.x1 for w in words)) for col, words in by_col.items()}
    stands = [
        _stands_in(word, bands[col]) and not any(_stands_in(word, band) for at, band in bands.items() if at != col)
        for col, words in by_col.items()
        for word in words
    ]
    return sum(stands) / len(figures)


def _stands_in(word: Word, band: tuple[float, float]) -> bool:
    near = _BESIDE * word.size
    return word.x0 < band[1] + near and word.x1 > band[0] - near and band[0] - near < word.x < band[1] + near
