"""One page read: its characters or OCR, its tables, its notes; small enough to keep while the rest is read."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import pymupdf

from docmill.errors import CorruptPdf
from docmill.types import Block, MissingPage
from preprocess.glyphs import read_glyphs
from preprocess.grids import Plumber
from preprocess.layer import Layer
from preprocess.notes import take_notes
from preprocess.pdf import MUPDF_ERRORS, raise_if_out_of_memory
from preprocess.reading import choose_text
from preprocess.tables import find_tables, look_at
from preprocess.text import Item, in_reading_order

#: Shares of the time limit after which the costly readers are left out, so that the rest is still read.
MODELS_UNTIL: Final = 0.5
OCR_UNTIL: Final = 0.75


@dataclass(frozen=True, slots=True)
class PageReading:
    """A page before headers, captions and continued tables are known."""

    number: int
    width: float
    height: float
    items: tuple[Item, ...] = ()
    notes: tuple[Block, ...] = ()
    source: str = "empty"
    warnings: tuple[str, ...] = ()
    missing: MissingPage | None = None


class Clock:
    """How much of a document's time is used, by wall and by CPU, whichever is more."""

    def __init__(self, wall_seconds: float, cpu_seconds: float) -> None:
        self._wall, self._cpu = wall_seconds, cpu_seconds
        self._wall_start, self._cpu_start = time.monotonic(), time.process_time()

    @property
    def used(self) -> float:
        wall = (time.monotonic() - self._wall_start) / self._wall
        return max(wall, (time.process_time() - self._cpu_start) / self._cpu)


def read_page(
    document: pymupdf.Document, number: int, plumber: Plumber, layer: Layer, clock: Clock, *, ocr: bool
) -> PageReading:
    """Page `number`, counted from 1. A page that cannot be read is missing; only memory stops the document."""
    try:
        page = document.load_page(number - 1)
        return _read(page, plumber, layer, clock, ocr=ocr)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        return missing_page(MissingPage(number, CorruptPdf.code, f"it is damaged ({error})"))


def missing_page(missing: MissingPage) -> PageReading:
    """The reading of a page that is not read."""
    told = f"page {missing.page}: not read, {missing.reason}"
    return PageReading(missing.page, 0.0, 0.0, warnings=(told,), missing=missing)


def _read(page: pymupdf.Page, plumber: Plumber, layer: Layer, clock: Clock, *, ocr: bool) -> PageReading:
    number, width, height = page.number + 1, page.rect.width, page.rect.height
    reading, look = read_glyphs(page), look_at(page)
    notes = tuple(take_notes(page, reading))
    text = choose_text(page, reading, look, layer, ocr=_why_no_ocr(clock, ocr=ocr))
    if text.source != "text":
        items = tuple(in_reading_order(text.lines, ()))
        return PageReading(number, width, height, items, notes, text.source, text.warnings)
    found = find_tables(page, text.lines, look, plumber, models=clock.used < MODELS_UNTIL)
    items = tuple(in_reading_order(found.rest, found.tables))
    warnings = (*text.warnings, found.warning) if found.warning else text.warnings
    return PageReading(number, width, height, items, notes, text.source, warnings)


def _why_no_ocr(clock: Clock, *, ocr: bool) -> str:
    if not ocr:
        return "OCR is off; set ocr=True"
    return "no time is left; raise wall_seconds" if clock.used > OCR_UNTIL else ""
