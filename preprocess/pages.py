"""One page read: its characters or OCR, its tables, its notes; small enough to keep while the rest is read."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pymupdf

from docmill.errors import CorruptPdf, NoText, ParserCrashed
from docmill.types import Block, MissingPage
from preprocess.covered import set_covered_apart
from preprocess.glyphs import Reading, read_glyphs
from preprocess.grids import Plumber
from preprocess.layer import Layer
from preprocess.notes import hidden_blocks, take_notes
from preprocess.pdf import MUPDF_ERRORS, raise_if_out_of_memory
from preprocess.reading import Text, choose_text
from preprocess.scan import drawn_anew
from preprocess.tables import Look, find_tables, look_at
from preprocess.text import Item, in_reading_order
from preprocess.turn import Frame, at_page, turned

#: Shares of the time limit after which the costly readers are left out, so that the rest is still read.
MODELS_UNTIL: Final = 0.5
OCR_UNTIL: Final = 0.75
_OURS: Final = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class PageReading:
    """A page before headers, captions and continued tables are known.

    `confidence` is that of OCR, if it read the page. `width` and `height` are those of the page as read; `frame` says
    how it was turned, if it was. Notes and hidden text are where the page as seen has them.
    """

    number: int
    width: float
    height: float
    items: tuple[Item, ...] = ()
    notes: tuple[Block, ...] = ()
    hidden: tuple[Block, ...] = ()
    source: str = "empty"
    warnings: tuple[str, ...] = ()
    missing: MissingPage | None = None
    frame: Frame | None = None
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Tools:
    """What the readers of a document's pages share."""

    plumber: Plumber
    layer: Layer
    clock: Clock


class Clock:
    """How much of a document's time is used, by wall and by CPU, whichever is more."""

    def __init__(self, wall_seconds: float, cpu_seconds: float) -> None:
        self._wall, self._cpu = wall_seconds, cpu_seconds
        self._wall_start, self._cpu_start = time.monotonic(), time.process_time()

    @property
    def used(self) -> float:
        wall = (time.monotonic() - self._wall_start) / self._wall
        return max(wall, (time.process_time() - self._cpu_start) / self._cpu)


def read_page(document: pymupdf.Document, number: int, tools: Tools, *, ocr: bool) -> PageReading:
    """Page `number`, counted from 1. A page that cannot be read is missing; only memory stops the document."""
    try:
        page = document.load_page(number - 1)
        return _read(page, tools, ocr=ocr)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        return missing_page(_failed(number, error))


def _failed(number: int, error: BaseException) -> MissingPage:
    """A page on which the reading failed: the file's fault if MuPDF says so, ours if our own code does."""
    where = traceback.extract_tb(error.__traceback__)[-1]
    if Path(where.filename).parent != _OURS:
        return MissingPage(number, CorruptPdf.code, f"it is damaged ({error})")
    told = f"{type(error).__name__}: {error}, {Path(where.filename).name} line {where.lineno}"
    return MissingPage(number, ParserCrashed.code, f"the parser has a fault ({told}); report it with the file")


def missing_page(missing: MissingPage) -> PageReading:
    """The reading of a page that is not read."""
    told = f"page {missing.page}: not read, {missing.reason}"
    return PageReading(missing.page, 0.0, 0.0, warnings=(told,), missing=missing)


def _read(page: pymupdf.Page, tools: Tools, *, ocr: bool) -> PageReading:
    number, reading, log = page.number + 1, read_glyphs(page), page.get_bboxlog()
    set_covered_apart(page, reading, log)
    notes, hidden = tuple(take_notes(page, reading)), tuple(hidden_blocks(page, reading))
    frame = Frame(reading.turn, page.rect.width, page.rect.height)
    if not frame.turn:
        read = _upright(page, number, reading, look_at(page, log), frame=frame, tools=tools, ocr=ocr)
    else:
        with turned(page, frame) as other:
            read = _upright(other, number, read_glyphs(other), look_at(other), frame=frame, tools=tools, ocr=ocr)
    # A scan's own OCR layer is invisible and yet the page's text.
    return replace(read, notes=notes, hidden=() if read.source == "ocr_layer" else hidden)


def _upright(
    page: pymupdf.Page, number: int, reading: Reading, look: Look, *, frame: Frame, tools: Tools, ocr: bool
) -> PageReading:
    """A page whose text is upright, by the reader that suits it; the frame says how it was turned to be so."""
    why_no_ocr = _why_no_ocr(tools.clock, ocr=ocr)
    text = choose_text(page, number, reading, look=look, layer=tools.layer, why_no_ocr=why_no_ocr)
    if text.scan is not None:
        frame = frame if frame.turn else replace(frame, turn=text.scan.turn)
        with drawn_anew(text.scan, frame.size) as other:
            return _with_tables(other, number, text, look_at(other), frame, tools)
    return _with_tables(page, number, text, look, frame, tools)


def _with_tables(page: pymupdf.Page, number: int, text: Text, look: Look, frame: Frame, tools: Tools) -> PageReading:
    found = find_tables(page, text.lines, look, tools.plumber, models=tools.clock.used < MODELS_UNTIL)
    tables, told = found.tables, found.warning
    if page.number + 1 != number:
        tables = tuple(at_page(table, number) for table in tables)
        told = told.replace(f"page {page.number + 1}:", f"page {number}:")
    items = tuple(in_reading_order(found.rest, tables))
    warnings = (*text.warnings, told) if told else text.warnings
    missing = MissingPage(number, NoText.code, text.unread) if text.unread else None
    read = PageReading(number, *frame.size, items, source=text.source, warnings=warnings, missing=missing, frame=frame)
    return replace(read, confidence=text.scan.confidence) if text.scan else read


def _why_no_ocr(clock: Clock, *, ocr: bool) -> str:
    if not ocr:
        return "OCR is off; set ocr=True"
    return "no time is left; raise wall_seconds" if clock.used > OCR_UNTIL else ""
