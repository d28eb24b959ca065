"""One page read: its characters or OCR, its tables, its notes; small enough to keep while the rest is read."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

import pymupdf

from docmill.errors import CorruptPdf
from docmill.types import BBox, Block, BlockKind, MissingPage, Printed
from preprocess.glyphs import UNKNOWN, Line, Reading, read_glyphs
from preprocess.grids import Plumber
from preprocess.join import row_characters
from preprocess.ocr import read_scan
from preprocess.pdf import MUPDF_ERRORS, raise_if_out_of_memory
from preprocess.tables import Look, find_tables, look_at
from preprocess.text import Item, in_reading_order

#: A page with fewer characters than this under an image that fills it is a scan with a stamp or a page number.
FEW_CHARACTERS: Final = 20
MOSTLY_IMAGE: Final = 0.5
SOME_IMAGE: Final = 0.005
#: Text drawn as outlines: no characters, no image, many paths.
OUTLINES: Final = 30

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


def read_page(document: pymupdf.Document, number: int, plumber: Plumber, clock: Clock, *, ocr: bool) -> PageReading:
    """Page `number`, counted from 1. A page that cannot be read is missing; only memory stops the document."""
    try:
        page = document.load_page(number - 1)
        return _read(page, plumber, clock, ocr=ocr)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        return missing_page(MissingPage(number, CorruptPdf.code, f"it is damaged ({error})"))


def missing_page(missing: MissingPage) -> PageReading:
    """The reading of a page that is not read."""
    told = f"page {missing.page}: not read, {missing.reason}"
    return PageReading(missing.page, 0.0, 0.0, warnings=(told,), missing=missing)


def _read(page: pymupdf.Page, plumber: Plumber, clock: Clock, *, ocr: bool) -> PageReading:
    number, width, height = page.number + 1, page.rect.width, page.rect.height
    reading, look = read_glyphs(page), look_at(page)
    notes = tuple(_notes(page, reading))
    lines, source, told = _lines(page, reading, look, clock, ocr=ocr)
    warnings = [told] if told else []
    if source == "text" and reading.unknown:
        warnings.append(f"page {number}: {reading.unknown} characters without a known meaning, shown as {UNKNOWN}")
    if source != "text":
        return PageReading(number, width, height, tuple(in_reading_order(lines, ())), notes, source, tuple(warnings))
    found = find_tables(page, lines, look, plumber, models=clock.used < MODELS_UNTIL)
    items = tuple(in_reading_order(found.rest, found.tables))
    warnings.extend([found.warning] if found.warning else [])
    return PageReading(number, width, height, items, notes, source, tuple(warnings))


def _lines(page: pymupdf.Page, reading: Reading, look: Look, clock: Clock, *, ocr: bool) -> tuple[list[Line], str, str]:
    """(lines, source, warning): the text layer if there is one, else an invisible layer, else OCR."""
    number = page.number + 1
    if not _is_scan(reading, look):
        return reading.visible, "text" if reading.visible else "empty", ""
    if reading.invisible and not reading.visible:
        return reading.invisible, "ocr", f"page {number}: read from the scan's own OCR layer, which nobody has verified"
    if not ocr:
        return reading.visible, _source(reading), f"page {number}: a scan, not read because OCR is off; set ocr=True"
    if clock.used > OCR_UNTIL:
        return (
            reading.visible,
            _source(reading),
            f"page {number}: a scan, not read in time; raise wall_seconds",
        )
    seen = read_scan(page)
    if not seen:
        return reading.visible, _source(reading), f"page {number}: an image in which OCR finds no text"
    return seen, "ocr", ""


def _source(reading: Reading) -> str:
    return "text" if reading.visible else "empty"


def _is_scan(reading: Reading, look: Look) -> bool:
    characters = sum(len(line.glyphs) for line in reading.visible)
    if characters >= FEW_CHARACTERS:
        return False
    if characters:
        return look.image_share > MOSTLY_IMAGE
    return look.image_share > SOME_IMAGE or look.paths > OUTLINES


def _notes(page: pymupdf.Page, reading: Reading) -> list[Block]:
    """Marks across the page, and notes whose words are not printed on it."""
    number = page.number + 1
    notes = [_block(number, line.bbox, Printed.of(row_characters([line]))) for line in reading.marks]
    printed = "".join("".join(line.text for line in reading.visible).split())
    for annotation in page.annots() or ():
        text = " ".join(str(annotation.info.get("content") or "").split())
        text = "".join(char for char in text if char.isprintable())
        if text and "".join(text.split()) not in printed:
            box = BBox(*(annotation.rect * page.rotation_matrix))
            notes.append(_block(number, box, Printed.of([(char, box) for char in text])))
    return [*notes, *_fields(page, printed)]


def _fields(page: pymupdf.Page, printed: str) -> list[Block]:
    """Filled form fields whose value is not printed in words: a ticked box, a hidden choice."""
    fields = []
    for widget in page.widgets() or ():
        value = str(widget.field_value or "").strip()
        if value and "".join(value.split()) not in printed:
            box = BBox(*(widget.rect * page.rotation_matrix))
            text = "".join(char for char in f"{widget.field_name}: {value}" if char.isprintable())
            block = _block(page.number + 1, box, Printed.of([(char, box) for char in text]))
            fields.append(replace(block, kind=BlockKind.FORM_FIELD))
    return fields


def _block(number: int, box: BBox, printed: Printed) -> Block:
    return Block(BlockKind.ANNOTATION, number, box, printed)
