"""Whose text of a page is believed: its text layer, a scan's own OCR layer, or OCR of what is printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pymupdf

from preprocess.glyphs import UNKNOWN, Line, Reading
from preprocess.layer import Layer, is_unreadable
from preprocess.ocr import read_scan
from preprocess.scan import Scan
from preprocess.tables import Look

#: A page with fewer characters than this under an image that fills it is a scan with a stamp or a page number.
FEW_CHARACTERS: Final = 20
MOSTLY_IMAGE: Final = 0.5
SOME_IMAGE: Final = 0.005
#: Text drawn as outlines: no characters, no image, many paths.
OUTLINES: Final = 30

#: Numbers that are named in a warning.
_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Text:
    """The lines of a page to work with; `source` as in `docmill.types.Page`. `unread`: why a scan was not read."""

    lines: Sequence[Line]
    source: str
    warnings: tuple[str, ...] = ()
    scan: Scan | None = None
    unread: str = ""


def choose_text(
    page: pymupdf.Page, number: int, reading: Reading, *, look: Look, layer: Layer, why_no_ocr: str
) -> Text:
    """The text of a page (the document's page `number`) by the reader that can be trusted."""
    told = _why_not_layer(page, reading, look, layer)
    if told is None:
        return Text(reading.visible, "text" if reading.visible else "empty", tuple(_doubts(number, reading, layer)))
    if reading.invisible and not reading.visible:
        why = f"page {number}: read from the scan's own OCR layer, which nobody has verified"
        return Text(reading.invisible, "ocr_layer", (why,))
    layered = Text(reading.visible, "text" if reading.visible else "empty")
    if why_no_ocr:
        why = f"page {number}: {told or 'a scan'}, not read because {why_no_ocr}"
        return Text(layered.lines, layered.source, (why,), unread="" if told else f"a scan, and {why_no_ocr}")
    scan = read_scan(page)
    if not scan.lines:
        return Text(layered.lines, layered.source, (f"page {number}: an image in which OCR finds no text",))
    return Text(scan.lines, "ocr", (f"page {number}: {told}, read by OCR instead",) if told else (), scan)


def _why_not_layer(page: pymupdf.Page, reading: Reading, look: Look, layer: Layer) -> str | None:
    """Why the text layer cannot be used: in words, or "" for a scan, which has none; None if it can be."""
    if _is_scan(reading, look):
        return ""
    if is_unreadable(reading.visible):
        return "its text layer has no meaning for many of the characters"
    if layer.lies(page, reading.visible):
        return "its text layer says other than what is printed"
    return None


def _is_scan(reading: Reading, look: Look) -> bool:
    characters = sum(len(line.glyphs) for line in reading.visible)
    if characters >= FEW_CHARACTERS:
        return False
    if characters:
        return look.image_share > MOSTLY_IMAGE
    return look.image_share > SOME_IMAGE or look.paths > OUTLINES


def _doubts(number: int, reading: Reading, layer: Layer) -> list[str]:
    """What is odd about a text layer that is used."""
    doubts = []
    if reading.unknown:
        doubts.append(f"page {number}: {reading.unknown} characters without a known meaning, shown as {UNKNOWN}")
    numbers = layer.unreliable(reading.visible)
    if numbers:
        named = ", ".join(dict.fromkeys(numbers[:_NAMED]))
        doubts.append(
            f"page {number}: an unreliable character touches {len(numbers)} numbers ({named}): the text layer gives it "
            "no meaning; compare them with the page"
        )
    return doubts
