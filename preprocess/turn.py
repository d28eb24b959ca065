"""Pages that are read sideways: they are turned, read like any other, and their boxes are turned back.

A turn is how far, in degrees clockwise, a page as seen must be turned for its text to be upright: 0, 90, 180 or 270.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pymupdf

from docmill.types import BBox, Block, Cell, Printed, Region, Table

_FLOAT: Final = np.dtype("<f4")
_TABLE_ID: Final = re.compile(r"^p\d+(?=t)")


@dataclass(frozen=True, slots=True)
class Frame:
    """How a page was turned to be read; width and height are those of the page as seen."""

    turn: int
    width: float
    height: float

    @property
    def size(self) -> tuple[float, float]:
        """Width and height of the turned page."""
        return (self.height, self.width) if self.turn % 180 else (self.width, self.height)

    def back(self, box: BBox) -> BBox:
        """A box of the turned page where it stands on the page as seen."""
        x0, y0, x1, y1 = box
        match self.turn:
            case 90:
                return BBox(y0, self.height - x1, y1, self.height - x0)
            case 180:
                return BBox(self.width - x1, self.height - y1, self.width - x0, self.height - y0)
            case 270:
                return BBox(self.width - y1, x0, self.width - y0, x1)
            case _:
                return box


@contextmanager
def turned(page: pymupdf.Page, frame: Frame) -> Iterator[pymupdf.Page]:
    """The page as a page of its own that is upright to read; it has the number 0, and no annotations."""
    with pymupdf.open() as document:
        width, height = frame.size
        upright = document.new_page(width=width, height=height)
        # show_pdf_page turns against the clock, and starts from the page without its /Rotate.
        upright.show_pdf_page(upright.rect, page.parent, page.number, rotate=-(page.rotation + frame.turn) % 360)
        yield upright


def at_page(table: Table, number: int) -> Table:
    """A table that was read on a page by itself, on the page of the document where it stands."""
    return replace(
        table,
        table_id=_TABLE_ID.sub(f"p{number}", table.table_id),
        cells=tuple(replace(cell, page=number) for cell in table.cells),
        regions=tuple(Region(number, region.bbox) for region in table.regions),
    )


def turn_back(blocks: Sequence[Block], frames: Mapping[int, Frame]) -> list[Block]:
    """The blocks of a page with all boxes on the pages as seen; `frames` has the pages that were turned."""
    return [_block_back(block, frames) for block in blocks]


def _block_back(block: Block, frames: Mapping[int, Frame]) -> Block:
    table = None if block.table is None else _table_back(block.table, frames)
    frame = frames.get(block.page)
    if frame is None:
        return block if table is block.table else replace(block, table=table)
    return replace(block, bbox=frame.back(block.bbox), printed=_printed_back(block.printed, frame), table=table)


def _table_back(table: Table, frames: Mapping[int, Frame]) -> Table:
    if frames.keys().isdisjoint(table.pages):
        return table
    regions = tuple(_region_back(region, frames) for region in table.regions)
    return replace(table, cells=tuple(_cell_back(cell, frames) for cell in table.cells), regions=regions)


def _cell_back(cell: Cell, frames: Mapping[int, Frame]) -> Cell:
    frame, also = frames.get(cell.page), tuple(_region_back(rest, frames) for rest in cell.also)
    if frame is None:
        return replace(cell, also=also)
    bbox = None if cell.bbox is None else frame.back(cell.bbox)
    return replace(cell, printed=_printed_back(cell.printed, frame), bbox=bbox, also=also)


def _region_back(region: Region, frames: Mapping[int, Frame]) -> Region:
    frame = frames.get(region.page)
    return region if frame is None else Region(region.page, frame.back(region.bbox))


def _printed_back(printed: Printed, frame: Frame) -> Printed:
    """The text with its characters' boxes turned back; a character that stands nowhere stays there."""
    if not printed.boxes:
        return printed
    boxes: np.ndarray[Any, Any] = np.frombuffer(printed.boxes, _FLOAT).reshape(-1, 4)
    back = np.stack(frame.back(BBox(*boxes.T)), axis=1)
    back[~boxes.any(axis=1)] = 0.0
    return Printed(printed.text, back.astype(_FLOAT).tobytes())
