"""Columns that a model merged, or made of the header alone, mended from the words in them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from preprocess.cells import is_value
from preprocess.lattice import Lattice, Place, merge_columns, split_column
from preprocess.words import Word, baselines

#: A column is split if so many of its filled rows, and at least so many rows, hold as many figures side by side.
_SPLIT_SHARE: Final = 0.6
_SPLIT_ROWS: Final = 3
#: In units of the font size: the least gutter between figures, and between a label and a figure.
_FIGURE_GUTTER: Final = 0.2
_LABEL_GUTTER: Final = 0.8
_SIGN: Final = re.compile(r"^(US|HK|R|S|A|C|NT|CN)?[$€£¥￥]$|^(RMB|CNY|USD|EUR|HKD|GBP)$")
_MARK: Final = re.compile(r"^[(（]?\d{1,2}[)）]$|^[*†‡]+$")


def split_columns(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """Columns that hold several figures side by side, or labels and figures, are several columns."""
    columns = _filled_rows(lattice, words)
    for col in range(lattice.cols - 1, -1, -1):  # from the right: the columns not yet seen keep their numbers
        edges = _column_edges(columns[col])
        if edges:
            lattice = split_column(lattice, col, edges)
    return lattice


def _filled_rows(lattice: Lattice, words: Sequence[Word]) -> dict[int, list[list[Word]]]:
    """The filled rows of each column below the header, words from left to right; a wrapped cell counts as none."""
    columns: dict[int, list[list[Word]]] = defaultdict(list)
    for (row, col), inside in sorted(lattice.cells(words).items()):
        if row >= lattice.header_rows and len(baselines(inside)) == 1:
            columns[col].append(inside)
    return columns


def _column_edges(rows: Sequence[Sequence[Word]]) -> list[float]:
    """Where a column should be split; empty if it should not."""
    shapes = Counter(_shape(row) for row in rows)
    if not shapes:
        return []
    shape, count = shapes.most_common(1)[0]
    if len(shape) < 2 or count < max(_SPLIT_ROWS, _SPLIT_SHARE * len(rows)):
        return []
    alike = [_parts(row) for row in rows if _shape(row) == shape]
    edges = [_gutter([(row[i], row[i + 1]) for row in alike], shape[i]) for i in range(len(shape) - 1)]
    found = [edge for edge in edges if edge is not None]
    return found if len(found) == len(edges) else []


def _parts(row: Sequence[Word]) -> list[Word]:
    """A row of a column as its label, if it starts with one, and its figures."""
    parts: list[Word] = []
    for word in row:
        figure = is_value(word.text) and not (parts and _is_mark(word))
        if parts and figure and _SIGN.match(parts[-1].text):
            parts[-1] = replace(word, x0=parts[-1].x0)
        elif parts and not figure and (not is_value(parts[-1].text) or _is_mark(word)) and not _SIGN.match(word.text):
            parts[-1] = _with(parts[-1], word)
        else:
            parts.append(word)
    return parts


def _is_mark(word: Word) -> bool:
    """A footnote mark: (1), *."""
    return bool(_MARK.match(word.text))


def _with(one: Word, other: Word) -> Word:
    text = one.text if is_value(one.text) else f"{one.text} {other.text}"
    return replace(one, text=text, x1=other.x1)


def _shape(row: Sequence[Word]) -> str:
    """`f` for a figure, `t` for text, in order: `tf` is a label and its figure."""
    shape = "".join("f" if is_value(part.text) else "t" for part in _parts(row))
    return shape if "t" not in shape[1:] else ""


def _gutter(pairs: Sequence[tuple[Word, Word]], left: str) -> float | None:
    """The middle of the space between two parts that all rows keep free; None if it is no gutter."""
    low, high = max(one.x1 for one, _ in pairs), min(other.x0 for _, other in pairs)
    least = _FIGURE_GUTTER if left == "f" else _LABEL_GUTTER
    return (low + high) / 2 if high - low > least * pairs[0][0].size else None


def join_header_columns(lattice: Lattice, words: Sequence[Word]) -> Lattice:
    """A column that only the header fills is the rest of its neighbour's header."""
    for col in range(lattice.cols - 1, 0, -1):
        cells = lattice.cells(words)
        filled = {row for row, at in cells if at == col}
        if filled and max(filled) < lattice.header_rows and _is_set_close(lattice, cells, col):
            lattice = merge_columns(lattice, col - 1)
    return lattice


def _is_set_close(lattice: Lattice, cells: dict[Place, list[Word]], col: int) -> bool:
    """Whether each header word of a column continues a word of the column to its left."""
    for row in range(lattice.header_rows):
        for word in cells.get((row, col), ())[:1]:
            before = cells.get((row, col - 1))
            if not before or word.x0 - before[-1].x1 > 1.5 * word.gap:
                return False
    return True
