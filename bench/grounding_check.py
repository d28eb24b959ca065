"""Whether a value is printed on the page, and in the box that is cited for it: from the PDF's characters alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, Final

import pymupdf

from bench.grounding_corpus import Planted
from docmill.types import BBox, Citation, Extraction
from inference.text import is_cjk
from validation.dates import parse_date, scan_dates
from validation.numbers import parse_number, scan_numbers

#: How far a character's middle may stand outside of a box, in points.
_SLACK: Final = 0.5
#: A box so much higher than its characters holds several lines.
_LINES: Final = 1.8
#: A quotation of fewer letters and digits bears nothing out.
_WORDS: Final = 6


@dataclass(frozen=True, slots=True)
class Sheet:
    """The characters of a document's pages in the order of the file, and the numbers and dates among them."""

    characters: tuple[tuple[int, str, BBox], ...]
    text: str
    numbers: frozenset[Decimal]
    dates: frozenset[date]


@dataclass(frozen=True, slots=True)
class Value:
    """One field of one answer. `unprinted`: the page does not have it as it is; `invented`: not in another form either.

    `boxed`: there is nothing to cite, or the cited box holds the value as printed.
    """

    document: str
    kind: str
    text: str | None
    right: bool
    unprinted: bool
    invented: bool
    boxed: bool

    @property
    def given(self) -> bool:
        return self.text is not None

    @property
    def rightly_null(self) -> bool:
        return self.text is None and self.right


def sheet_of(data: bytes) -> Sheet:
    with pymupdf.open(stream=data, filetype="pdf") as document:
        lines = list(_lines(document))
    characters = tuple(one for line in lines for one in line)
    text = "\n".join("".join(character for _, character, _ in line) for line in lines)
    numbers = frozenset(found.number.value for found in scan_numbers(text))
    days = frozenset(day for dated in scan_dates(text) for day in dated.readings)
    return Sheet(characters, text, numbers, days)


def _lines(document: pymupdf.Document) -> Iterator[list[tuple[int, str, BBox]]]:
    for number, page in enumerate(document, start=1):
        for block in page.get_text("rawdict")["blocks"]:
            for line in block.get("lines", ()):
                yield [(number, char["c"], BBox(*char["bbox"])) for span in line["spans"] for char in span["chars"]]


def judged(extraction: Extraction, schema: Mapping[str, Any], planted: Planted, sheet: Sheet) -> Iterator[Value]:
    """Every field of an answer; one that is null is right if the document does not have it."""
    cited = {citation.path: citation for citation in extraction.citations}
    for name, truth in planted.truth.items():
        kind, text = schema["properties"][name]["x-source"], extraction.result[name] or None
        unprinted = text is not None and not is_printed(text, sheet.text)
        invented = unprinted and not _in_another_form(kind, text or "", sheet)
        boxed = text is None or _boxed(text, cited.get(f"/{name}"), sheet)
        yield Value(planted.name, kind, text, _right(kind, text, truth), unprinted, invented, boxed)


# ---------------------------------------------------------------- printed


def is_printed(value: str, page: str) -> bool:
    """Whether the page has the value, line breaks and spacing aside, and not as a piece of a longer word or number."""
    pattern = r"\s*".join(map(re.escape, _tight(value)))
    found = re.finditer(pattern, page) if pattern else ()
    return any(not _continues(page, match.start()) and not _continues(page, match.end()) for match in found)


def _tight(text: str) -> str:
    return re.sub(r"\s+", "", text)


def _continues(text: str, at: int) -> bool:
    """Whether a word or number runs over this place."""
    before, after = text[max(0, at - 2) : at], text[at : at + 2]
    if not before or not after or is_cjk(before[-1]) != is_cjk(after[0]):
        return False
    if before[-1].isdigit() and (after[0].isdigit() or (after[0] in ".,，．" and after[1:].isdigit())):
        return True
    if after[0].isdigit() and before[-1] in ".,，．" and before[:-1].isdigit():
        return True
    return before[-1].isalnum() and after[0].isalnum() and not is_cjk(before[-1])


def _in_another_form(kind: str, value: str, sheet: Sheet) -> bool:
    """The benefit of the doubt: the same number, day or letters stand there in another spelling."""
    if kind in ("number", "amount"):
        number = parse_number(value)
        return number is not None and number.value in sheet.numbers
    if kind == "date":
        dated = parse_date(value)
        return dated is not None and not sheet.dates.isdisjoint(dated.readings)
    if kind == "id":
        return _bare(value) in map(_bare, sheet.text.split())
    return bool(_bare(value)) and _bare(value) in _bare(sheet.text)


def _bare(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _right(kind: str, text: str | None, truth: str | None) -> bool:
    if text is None or truth is None:
        return text is None and truth is None
    if kind == "quote":
        return len(_bare(text)) >= _WORDS and _bare(text) in _bare(truth)
    if kind in ("number", "amount"):
        wanted, given = parse_number(truth), parse_number(text)
        return wanted is not None and given is not None and wanted.value == given.value
    return _bare(text) == _bare(truth)


# ---------------------------------------------------------------- boxes


def _boxed(value: str, citation: Citation | None, sheet: Sheet) -> bool:
    """Whether the characters that stand in the box are the value; of a box over lines, whether they hold it."""
    if citation is None or _tight(citation.text) != _tight(value):
        return False
    inside = [(c, box) for page, c, box in sheet.characters if page == citation.page and _holds(citation.bbox, box)]
    text = _tight("".join(character for character, _ in inside))
    heights = [box.y1 - box.y0 for _, box in inside]
    if heights and citation.bbox.y1 - citation.bbox.y0 > _LINES * max(heights):
        return _tight(value) in text
    return text == _tight(value)


def _holds(outer: BBox, inner: BBox) -> bool:
    x, y = (inner.x0 + inner.x1) / 2, (inner.y0 + inner.y1) / 2
    return outer.x0 - _SLACK <= x <= outer.x1 + _SLACK and outer.y0 - _SLACK <= y <= outer.y1 + _SLACK
