"""The lines drawn on a page, as an eye sees them: open rows closed, white lines on white paper left out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pymupdf

from docmill.types import BBox

#: A row is open if so many uprights end where no rule is.
_UPRIGHTS: Final = 3
#: A rule is there if it covers this share of the row.
_COVERED: Final = 0.5
#: Points by which lines that meet may miss each other.
_MEET: Final = 3.0
#: Channel values from here on are white to the eye (0 to 1).
_WHITE: Final = 0.95
#: A page with more strokes that are neither level nor upright is a map or a chart.
MANY_CURVES: Final = 500
#: Above so many paths nobody looks for white lines among them.
_MOST_PATHS: Final = 5_000

Stroke = tuple[tuple[float, float], tuple[float, float]]


def closing_lines(rules: Sequence[BBox], uprights: Sequence[BBox]) -> list[Stroke]:
    """The rules that are missing where the uprights of a ruled row go on and end (a row cut by the page's edge)."""
    lines = []
    for near, far in ((1, 3), (3, 1)):
        for ends in _by_level(uprights, far):
            left, right = min(one.x0 for one in ends), max(one.x1 for one in ends)
            level, other = ends[0][far], min((one[near] for one in ends), key=lambda y: abs(y - ends[0][far]))
            closed, tied = (_is_ruled(rules, y, left, right) for y in (level, other))
            if tied and not closed and len({round(one.x0) for one in ends}) >= _UPRIGHTS:
                lines.append(((left, level), (right, level)))
    return lines


def _by_level(uprights: Iterable[BBox], edge: int) -> list[list[BBox]]:
    levels: dict[int, list[BBox]] = defaultdict(list)
    for upright in uprights:
        levels[round(upright[edge] / _MEET)].append(upright)
    return list(levels.values())


def _is_ruled(rules: Iterable[BBox], y: float, left: float, right: float) -> bool:
    """Whether rules at this height cover enough of the way from left to right."""
    covered = sum(max(0.0, min(rule.x1, right) - max(rule.x0, left)) for rule in rules if abs(rule.y0 - y) <= _MEET)
    return covered >= _COVERED * (right - left)


def table_paths(page: pymupdf.Page, paths: int, curves: int) -> list[dict[str, Any]] | None:
    """The drawings among which rules of tables are looked for, if they are not all: None.

    White strokes on white paper are left out, and the strokes of a map or a chart, where there are many: the search
    takes time with the square of their number, and finds no grid among them.
    """
    many = curves > MANY_CURVES
    white = paths <= _MOST_PATHS and any(map(_is_white, page.get_cdrawings()))
    if not (many or white):
        return None
    drawings = page.get_drawings()
    dark = [drawing["rect"] for drawing in drawings if drawing["type"] != "s" and not _pale(drawing["fill"])]
    return [
        drawing
        for drawing in drawings
        if not (many and not _is_straight(drawing)) and not (_is_white(drawing) and not _lies_on(drawing["rect"], dark))
    ]


def _is_straight(drawing: dict[str, Any]) -> bool:
    """Whether a drawing is a level or upright line, or made of rectangles."""
    rect = drawing["rect"]
    return min(rect.width, rect.height) < _MEET or all(item[0] == "re" for item in drawing["items"])


def _is_white(drawing: dict[str, Any]) -> bool:
    return drawing["type"] == "s" and (_pale(drawing.get("color")) or drawing.get("stroke_opacity") == 0)


def _pale(color: Sequence[float] | None) -> bool:
    return color is not None and min(color) >= _WHITE


def _lies_on(rect: pymupdf.Rect, grounds: Iterable[pymupdf.Rect]) -> bool:
    middle = pymupdf.Point((rect.x0 + rect.x1) / 2, (rect.y0 + rect.y1) / 2)
    return any(ground.contains(middle) for ground in grounds)
