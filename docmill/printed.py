"""Where text stands: boxes, and text in which every character has one."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import NamedTuple


class BBox(NamedTuple):
    """A box in points, origin at the top left of the page as seen."""

    x0: float
    y0: float
    x1: float
    y1: float

    def union(self, other: BBox) -> BBox:
        return BBox(min(self.x0, other.x0), min(self.y0, other.y0), max(self.x1, other.x1), max(self.y1, other.y1))


_FLOATS_PER_CHARACTER = 4


@dataclass(frozen=True, slots=True)
class Printed:
    """Text as printed, with one box for each character.

    `boxes` packs four little-endian float32 per character of `text` (16 bytes a character: a thousand pages stay
    below 100 MB). A character that stands on no page (a line break that was put in) has a box of zero size at 0,0.
    """

    text: str
    boxes: bytes = b""

    def __post_init__(self) -> None:
        if self.boxes and len(self.boxes) != 4 * _FLOATS_PER_CHARACTER * len(self.text):
            raise ValueError(
                f"{len(self.text)} characters need {16 * len(self.text)} bytes of boxes, got {len(self.boxes)}"
            )

    @classmethod
    def of(cls, characters: list[tuple[str, BBox | None]]) -> Printed:
        """Pack (character, box) pairs; None marks a character that stands on no page."""
        text = "".join(character for character, _ in characters)
        flat = [edge for _, box in characters for edge in (box or (0.0, 0.0, 0.0, 0.0))]
        return cls(text, struct.pack(f"<{len(flat)}f", *flat))

    def character_box(self, index: int) -> BBox | None:
        """The box of one character, or None where it stands on no page."""
        if not self.boxes:
            return None
        box = BBox(*struct.unpack_from("<4f", self.boxes, 16 * index))
        return None if box == (0.0, 0.0, 0.0, 0.0) else box

    def box(self, start: int = 0, stop: int | None = None) -> BBox | None:
        """The union of the boxes of `text[start:stop]`, or None if none of them stands on a page."""
        count = (len(self.text) if stop is None else stop) - start
        if count <= 0 or not self.boxes:
            return None
        edges = struct.unpack_from(f"<{4 * count}f", self.boxes, 16 * start)
        if 0.0 in edges:
            boxes = (edges[at : at + 4] for at in range(0, 4 * count, 4))
            edges = tuple(edge for box in boxes if any(box) for edge in box)
        return BBox(min(edges[::4]), min(edges[1::4]), max(edges[2::4]), max(edges[3::4])) if edges else None


class Region(NamedTuple):
    """A part of a page."""

    page: int
    bbox: BBox
