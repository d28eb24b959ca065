"""The tables of a page as data, each by the reader that suits it, and the text that is left when they are taken out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pymupdf

from docmill.types import BBox, Table
from preprocess.agreement import agreement
from preprocess.cells import fill, is_sound, is_value, table_of
from preprocess.covered import PaintLog
from preprocess.drawn import MANY_CURVES, closing_lines, table_paths
from preprocess.glyphs import Line
from preprocess.grids import Grid, Plumber, layout_grids, ruled_grids
from preprocess.join import rows_of, rows_printed
from preprocess.mend import mend
from preprocess.trim import is_chart, stacked, without_frame

#: A map or a drawing: the search for tables among so many paths takes minutes and finds none.
MOST_PATHS: Final = 20_000
#: A ruled table has at least so many strokes or fills.
FEWEST_PATHS: Final = 3
#: Points. A path so thin and so long is a rule, or an upright.
RULE_WEIGHT: Final = 2.5
RULE_LENGTH: Final = 8.0
_TABULAR_ROWS: Final = 3
_PROSE_SEGMENT: Final = 28


@dataclass(frozen=True, slots=True)
class Look:
    """A cheap look at a page, which decides who reads it."""

    paths: int
    image_share: float
    rules: tuple[BBox, ...] = ()
    uprights: tuple[BBox, ...] = ()
    curves: tuple[BBox, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The tables of a page, the lines outside them, and what should be told of the search."""

    tables: tuple[Table, ...] = ()
    rest: tuple[Line, ...] = ()
    warning: str = ""


def look_at(page: pymupdf.Page, log: PaintLog | None = None) -> Look:
    """Count the paths, measure what share of the page images cover, and sort what is drawn by its shape.

    `log` is what the page paints, where that is known already.
    """
    paths, covered = 0, 0.0
    drawn: dict[str, list[BBox]] = {"rules": [], "uprights": [], "curves": []}
    for kind, box in page.get_bboxlog() if log is None else log:
        if kind.endswith("path"):
            paths += 1
            if shape := _shape(kind, box):
                drawn[shape].append(BBox(*box))
        elif kind == "fill-image" or kind == "fill-imgmask":
            covered += abs(pymupdf.Rect(box) & page.rect)
    share = covered / max(1.0, abs(page.rect))
    return Look(paths, share, **{shape: tuple(boxes) for shape, boxes in drawn.items()})


def _shape(kind: str, box: Sequence[float]) -> str:
    """What a path is by its box: a level rule, an upright, another stroke; empty for a field of colour or a dot."""
    width, height = abs(box[2] - box[0]), abs(box[3] - box[1])
    if height <= RULE_WEIGHT:
        return "rules" if width >= RULE_LENGTH else ""
    if width <= RULE_WEIGHT:
        return "uprights" if height >= RULE_LENGTH else ""
    return "curves" if kind == "stroke-path" else ""


def find_tables(
    page: pymupdf.Page, lines: Sequence[Line], look: Look, plumber: Plumber, *, models: bool = True
) -> Found:
    """Tables by the cheapest reader that reads the page well. `models=False` spares the layout model's time."""
    number = page.number + 1
    if look.paths > MOST_PATHS:
        told = f"page {number}: {look.paths} drawn paths, over the limit of {MOST_PATHS}: not searched for tables"
        return Found(rest=tuple(lines), warning=told)
    turned = _read_turned(page, lines, plumber) if page.rotation else None
    if turned is not None:
        return turned
    drawn = _ruled(page, look) if look.paths >= FEWEST_PATHS else []
    ruled = _share_out([grid for grid in drawn if not is_chart(grid, lines, look.curves)], lines, number)
    if len(look.curves) > MANY_CURVES and not looks_tabular(ruled.rest):
        told = f"page {number}: {len(look.curves)} strokes of a drawing were left out of the search for tables"
        return Found(ruled.tables, ruled.rest, told)
    if ruled.sound and not looks_tabular(ruled.rest):
        return Found(ruled.tables, ruled.rest)
    grids = layout_grids(page) if models else None
    if grids is None:
        why = "the layout model failed" if models else "no time was left for the layout model"
        return Found(ruled.tables, ruled.rest, f"page {number}: {why}; borderless tables may be missing")
    shared = _share_out([mend(grid, lines, look.rules) for grid in stacked(grids)], lines, number)
    return Found(shared.tables, shared.rest)


def _ruled(page: pymupdf.Page, look: Look) -> list[Grid]:
    """Ruled grids by the lines that are seen, rows that are left open closed."""
    return ruled_grids(page, closing_lines(look.rules, look.uprights), table_paths(page, look.paths, len(look.curves)))


def _read_turned(page: pymupdf.Page, lines: Sequence[Line], plumber: Plumber) -> Found | None:
    """A page with /Rotate by pdfplumber, which also sees the columns that run over the page's edge."""
    grids, beyond = plumber.read(page.number + 1, page)
    shared = _share_out(grids, [*lines, *beyond], page.number + 1)
    if not shared.tables and looks_tabular(lines):
        return None
    outside = set(map(id, beyond))
    return Found(shared.tables, tuple(line for line in shared.rest if id(line) not in outside))


@dataclass(frozen=True, slots=True)
class _Shared:
    """Tables and left-over lines of one reader; `sound` is false when its rules part only some of the cells."""

    tables: tuple[Table, ...]
    rest: tuple[Line, ...]
    sound: bool


def _share_out(grids: Iterable[Grid], lines: Sequence[Line], page: int) -> _Shared:
    tables: list[Table] = []
    rest, sound = list(lines), True
    for grid in grids:
        filled = without_frame(fill(grid, rest))
        table = table_of(filled, page, f"p{page}t{len(tables) + 1}")
        if table is not None:
            tables.append(replace(table, confidence=agreement(table, rest)))
            rest = filled.rest
            sound = sound and is_sound(filled)
    return _Shared(tuple(tables), tuple(rest), sound)


def looks_tabular(lines: Sequence[Line]) -> bool:
    """Whether some rows near each other have columns that are no columns of running text."""
    near = missed = 0
    for row in rows_printed(rows_of([line for line in lines if line.upright]), segment="\t"):
        if _is_tabular(row.text):
            near, missed = near + 1, 0
        else:
            missed += 1
            near = near if missed <= 2 else 0
        if near >= _TABULAR_ROWS:
            return True
    return False


def _is_tabular(row: str) -> bool:
    segments = row.split("\t")
    if len(segments) < 2:
        return False
    if any(is_value(segment.strip()) for segment in segments[1:]):
        return True
    return len(segments) > 2 and sorted(map(len, segments))[len(segments) // 2] < _PROSE_SEGMENT
