"""What stands on a page beside its text: marks across it, annotations, and the values of form fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import pymupdf

from docmill.types import BBox, Block, BlockKind, Printed
from preprocess.glyphs import Line, Reading
from preprocess.join import row_printed, rows_printed

#: Fields whose printed sign (a tick in a dingbat font) is no text.
_TICKED: Final = frozenset(
    {pymupdf.PDF_WIDGET_TYPE_CHECKBOX, pymupdf.PDF_WIDGET_TYPE_RADIOBUTTON, pymupdf.PDF_WIDGET_TYPE_BUTTON}
)
_FREE_TEXT: Final = "FreeText"
#: Points around a field or a note within which its own text is drawn.
_AROUND: Final = 1.5


def take_notes(page: pymupdf.Page, reading: Reading) -> list[Block]:
    """The notes of a page; the text that is drawn as a part of them leaves the reading."""
    blocks = [_note(page, line.bbox, line.text, row_printed([line])) for line in reading.marks]
    for annotation in page.annots() or ():
        blocks.extend(_annotation(page, annotation, reading))
    for widget in page.widgets() or ():
        blocks.extend(_field(page, widget, reading))
    return blocks


def hidden_blocks(page: pymupdf.Page, reading: Reading) -> list[Block]:
    """The text that nobody sees on the page, line by line."""
    lines = [*reading.invisible, *reading.off_page]
    return [
        Block(BlockKind.PARAGRAPH, page.number + 1, line.bbox, printed, source="hidden")
        for line, printed in zip(lines, rows_printed([[line] for line in lines]), strict=True)
    ]


def _annotation(page: pymupdf.Page, annotation: Any, reading: Reading) -> Iterator[Block]:
    """An annotation's own words, with its kind and author as label."""
    text = _plain(annotation.info.get("content"))
    box = BBox(*(annotation.rect * page.rotation_matrix))
    if annotation.type[1] == _FREE_TEXT:
        drawn = _drawn_in(reading, box)
        said = "".join(text.split())
        _take(reading, [line for line in drawn if not said or "".join(line.text.split()) in said])
        text = text or " ".join(line.text for line in drawn)
    if text:
        author = _plain(annotation.info.get("title"))
        block = _note(page, box, text)
        yield replace(block, label=", ".join(part for part in (annotation.type[1], author) if part))


def _field(page: pymupdf.Page, widget: Any, reading: Reading) -> Iterator[Block]:
    """A filled field as `name: value`. What a text field prints stays in the text too, beside its printed label."""
    box = BBox(*(widget.rect * page.rotation_matrix))
    if widget.field_type in _TICKED:
        _take(reading, _drawn_in(reading, box))
    name, value = _plain(widget.field_name), _plain(widget.field_value)
    if value and (widget.field_type not in _TICKED or value != "Off"):
        yield replace(_note(page, box, f"{name}: {value}"), kind=BlockKind.FORM_FIELD, label=name)


def _plain(text: object) -> str:
    """A string of the PDF without line breaks and control characters."""
    return "".join(char for char in " ".join(str(text or "").split()) if char.isprintable())


def _note(page: pymupdf.Page, box: BBox, text: str, printed: Printed | None = None) -> Block:
    """A note's text; where it is not printed on the page, each character has the whole note's box."""
    return Block(BlockKind.ANNOTATION, page.number + 1, box, printed or Printed.of([(char, box) for char in text]))


def _drawn_in(reading: Reading, box: BBox) -> list[Line]:
    return [line for line in reading.visible if _is_within(line.bbox, box)]


def _is_within(inner: BBox, outer: BBox) -> bool:
    x, y = (inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2
    wide = inner.x1 - inner.x0 <= outer.x1 - outer.x0 + 2 * _AROUND
    return wide and outer.x0 - _AROUND <= x <= outer.x1 + _AROUND and outer.y0 - _AROUND <= y <= outer.y1 + _AROUND


def _take(reading: Reading, lines: list[Line]) -> None:
    gone = set(map(id, lines))
    reading.visible = [line for line in reading.visible if id(line) not in gone]
