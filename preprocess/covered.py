"""Text under a picture: it is in the file, and no reader of the page sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pymupdf

from docmill.types import BBox
from preprocess.glyphs import Reading

#: What a page paints, in order: (what, where).
PaintLog = Sequence[tuple[str, tuple[float, float, float, float]]]

#: Points by which a covered text may stand out of its picture.
_OUT: Final = 1.0


def set_covered_apart(page: pymupdf.Page, reading: Reading, log: PaintLog) -> None:
    """Move the lines that a later, opaque picture covers to those that nobody sees."""
    pictures = [(place, box) for place, (kind, box) in enumerate(log) if kind == "fill-image"]
    if not pictures or not any(kind.endswith("text") for kind, _ in log[: pictures[-1][0]]):
        return
    texts = [(place, BBox(*box)) for place, (kind, box) in enumerate(log) if kind.endswith("text")]
    opaque = {tuple(map(round, info["bbox"])) for info in page.get_image_info() if not info.get("has-mask")}
    covers = [(place, BBox(*box)) for place, box in pictures if tuple(map(round, box)) in opaque]
    seen = page.rotation_matrix
    under: list[BBox] = []
    over: list[BBox] = []
    for at, box in texts:
        hidden = any(place > at and _holds(cover, box) for place, cover in covers)
        (under if hidden else over).append(BBox(*(pymupdf.Rect(box) * seen)))
    unseen = [line for line in reading.visible if _in_one(line.bbox, under) and not _in_one(line.bbox, over)]
    if unseen:
        gone = set(map(id, unseen))
        reading.visible = [line for line in reading.visible if id(line) not in gone]
        reading.invisible += unseen


def _in_one(box: BBox, others: Sequence[BBox]) -> bool:
    """Whether the middle of the box is in one of the others."""
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    return any(other.x0 <= x <= other.x1 and other.y0 <= y <= other.y1 for other in others)


def _holds(outer: BBox, inner: BBox) -> bool:
    left, top = outer.x0 - _OUT <= inner.x0, outer.y0 - _OUT <= inner.y0
    return left and top and inner.x1 <= outer.x1 + _OUT and inner.y1 <= outer.y1 + _OUT
