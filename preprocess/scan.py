"""A scanned page drawn anew: what OCR reads as text, what looks like rules as lines, for the readers of tables.

So a table on a scan is found by the same code as any other; nothing else is taken from the new page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pymupdf

from docmill.types import BBox
from preprocess.glyphs import Line

Pixels = np.ndarray[Any, np.dtype[np.uint8]]

#: Points. A rule is at least so long, and no thicker.
_SHORTEST: Final = 24.0
_THICKEST: Final = 4.0
#: Darker than the paper by so much of the range from black to white is ink.
_INK: Final = 0.35
_FONT: Final = "china-s"
_RULE_WIDTH: Final = 0.7


@dataclass(frozen=True, slots=True)
class Scan:
    """What OCR sees on a page, in points of the page after `turn` (see `turn.py`)."""

    lines: Sequence[Line]
    rules: Sequence[BBox]
    turn: int = 0

    @property
    def confidence(self) -> float:
        """How sure OCR is of a character, on the whole."""
        total = sum(len(line.glyphs) for line in self.lines)
        return round(sum(line.confidence * len(line.glyphs) for line in self.lines) / max(1, total), 3)


def find_rules(image: Pixels, scale: float) -> list[BBox]:
    """The level and upright rules of a picture with `scale` pixels to a point."""
    import cv2  # comes with the OCR; loaded only with it

    gray = image.min(axis=2)
    paper = float(np.percentile(gray, 90))
    ink = (gray < paper * (1 - _INK)).astype(np.uint8)
    length = max(8, round(_SHORTEST * scale))
    rules = []
    for kernel in (np.ones((1, length), np.uint8), np.ones((length, 1), np.uint8)):
        strokes = cv2.morphologyEx(ink, cv2.MORPH_OPEN, kernel)
        strokes = cv2.dilate(strokes, np.ones((3, 3), np.uint8))
        _, _, stats, _ = cv2.connectedComponentsWithStats(strokes)
        rules += [_rule(stat, scale) for stat in stats[1:]]
    return [rule for rule in rules if min(rule.x1 - rule.x0, rule.y1 - rule.y0) <= _THICKEST]


def _rule(stat: Sequence[int], scale: float) -> BBox:
    """A stroke's box in points, without the pixel that was put around it."""
    x, y, width, height = (int(value) for value in stat[:4])
    return BBox((x + 1) / scale, (y + 1) / scale, (x + width - 1) / scale, (y + height - 1) / scale)


@contextmanager
def drawn_anew(scan: Scan, size: tuple[float, float]) -> Iterator[pymupdf.Page]:
    """A page of this size with the scan's rules and text; it has the number 0."""
    with pymupdf.open() as document:
        page = document.new_page(width=size[0], height=size[1])
        _draw_rules(page, scan.rules)
        writer = pymupdf.TextWriter(page.rect)
        for line in scan.lines:
            _write(writer, line)
        writer.write_text(page)
        yield page


def _draw_rules(page: pymupdf.Page, rules: Sequence[BBox]) -> None:
    shape = page.new_shape()
    for rule in rules:
        x, y = (rule.x0 + rule.x1) / 2, (rule.y0 + rule.y1) / 2
        level = rule.x1 - rule.x0 >= rule.y1 - rule.y0
        shape.draw_line((rule.x0, y) if level else (x, rule.y0), (rule.x1, y) if level else (x, rule.y1))
    if rules:
        shape.finish(width=_RULE_WIDTH)
        shape.commit()


def _write(writer: pymupdf.TextWriter, line: Line) -> None:
    """The line in letters as wide as it was seen."""
    text, box = line.text, line.bbox
    length = _font().text_length(text, fontsize=1.0)
    size = min(box.y1 - box.y0, (box.x1 - box.x0) / max(0.1, length))
    if text.strip() and size > 1.0:
        writer.append((box.x0, box.y1 - 0.2 * (box.y1 - box.y0)), text, font=_font(), fontsize=size)


@cache
def _font() -> pymupdf.Font:
    return pymupdf.Font(_FONT)
