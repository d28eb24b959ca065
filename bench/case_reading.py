"""What a case file gave when the product read it, and whether that holds the expected facts, key by key.

The keys are those of the cases' `expect` objects: `text_contains`, `rows`, `records`, `form`, `flags` and so on. Text
is compared without blanks, since where a blank stands is not what the cases are about.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from docmill.types import BlockKind, PreparedDocument, Table
from validation.dates import scan_dates
from validation.numbers import parse_number, scan_numbers

#: What a warning must say to count as the flag.
FLAG_WORDS: Final = {
    "unreliable_glyph_in_number": "unreliable|without a known meaning",
    "text_layer_disagrees_with_render": "text layer .*(other|disagree)",
    "ocr_layer_unverified": "nobody has verified",
}
#: The cases' words for errors, beside ours.
ERROR_CODES: Final = {
    "parse_error": {"corrupt_pdf"},
    "truncated": {"corrupt_pdf"},
    "resource_limit": {"parser_limit"},
    "page_too_large": {"no_text"},
    "not_a_pdf": {"not_a_pdf"},
}
_NOTE: Final = re.compile(r"\^[\d()*]+")


@dataclass(frozen=True, slots=True)
class Seen:
    """The outcome of reading a file: a document, or the code of the error; and what it took."""

    document: PreparedDocument | None
    error: str = ""
    seconds: float = 0.0
    rss_mb: float = 0.0
    shown: str = field(default="", compare=False)

    @property
    def warnings(self) -> tuple[str, ...]:
        return self.document.warnings if self.document else ()

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.document.tables if self.document else ()

    @property
    def plain(self) -> str:
        """What the model is shown, without blanks, page marks and raised notes' marks."""
        return bare(re.sub(r"^\[p\d+\]$", "", self.shown, flags=re.MULTILINE))


Check = Callable[[Seen, Any], Iterable[str]]


def bare(text: str) -> str:
    """The text without blanks."""
    return "".join(text.split())


def complaints(seen: Seen, expect: Mapping[str, Any]) -> Iterator[str]:
    """What is not as expected, one sentence each."""
    for key, wanted in expect.items():
        check = CHECKS.get(key)
        yield from [f"no check for {key!r}"] if check is None else check(seen, wanted)


def _status(seen: Seen, wanted: str) -> Iterator[str]:
    read = seen.document is not None
    allowed = {
        "ok": read,
        "ok_with_flag": read and bool(seen.warnings),
        "partial": read,
        "ok_or_error": read or bool(seen.error),
        "rejected": bool(seen.error),
    }
    if not allowed.get(wanted, False):
        yield f"status is {seen.error or 'read'} with {len(seen.warnings)} warnings, expected {wanted}"


def _error(seen: Seen, wanted: str) -> Iterator[str]:
    if seen.error and seen.error not in ERROR_CODES.get(wanted, {wanted}):
        yield f"error is {seen.error}, expected {wanted}"


def _contains(seen: Seen, wanted: list[str]) -> Iterator[str]:
    if seen.document is not None:
        yield from (f"{text!r} is not in the text" for text in wanted if bare(text) not in seen.plain)


def _lacks(seen: Seen, wanted: list[str]) -> Iterator[str]:
    yield from (f"{text!r} is in the text" for text in wanted if bare(text) in seen.plain or text in seen.shown)


def _once(seen: Seen, wanted: list[str]) -> Iterator[str]:
    counts = {text: seen.plain.count(bare(text)) for text in wanted}
    yield from (f"{text!r} is in the text {count} times" for text, count in counts.items() if count != 1)


def _normalized(seen: Seen, wanted: list[str]) -> Iterator[str]:
    folded = bare(unicodedata.normalize("NFKC", seen.plain))
    yield from (f"{text!r} is not in the normalised text" for text in wanted if bare(text) not in folded)


def _numbers(seen: Seen, wanted: list[str]) -> Iterator[str]:
    found = {(found.number.value, found.number.unit == "%") for found in scan_numbers(seen.shown)}
    found |= {(other.value, other.unit == "%") for f in scan_numbers(seen.shown) if (other := f.other)}
    for text in wanted:
        number = parse_number(text)
        if number is None or (number.value, number.unit == "%") not in found:
            yield f"the number {text} is not recognised"


def _dates(seen: Seen, wanted: list[str]) -> Iterator[str]:
    found = {day.isoformat() for dated in scan_dates(seen.shown) for day in dated.readings}
    yield from (f"the date {text} is not recognised" for text in wanted if text not in found)


def _furniture_apart(seen: Seen, wanted: list[str]) -> Iterator[str]:
    """Page numbers such as 1/5 are not in the body."""
    yield from (f"{text!r} is read as data" for text in wanted if bare(text) in seen.plain)


def _flags(seen: Seen, wanted: list[str]) -> Iterator[str]:
    for flag in wanted:
        page, _, name = flag.rpartition(":")
        pattern = (page.replace("page", "page ") + ":.*" if page else "") + FLAG_WORDS.get(name, re.escape(name))
        if not any(re.search(pattern, warning) for warning in seen.warnings):
            yield f"no warning says {flag}"


def _not_trusted(seen: Seen, wanted: bool) -> Iterator[str]:
    pages = seen.document.pages if seen.document else ()
    if wanted and all(page.source == "text" for page in pages):
        yield "the text layer is trusted"


def _pages_ocr(seen: Seen, wanted: list[int]) -> Iterator[str]:
    pages = seen.document.pages if seen.document else ()
    read = {page.number for page in pages if page.source.startswith("ocr")}
    told = {number for number in wanted if any(f"page {number}:" in warning for warning in seen.warnings)}
    yield from (f"page {number} is neither read by OCR nor told of" for number in set(wanted) - read - told if pages)


def _page_count(seen: Seen, wanted: int) -> Iterator[str]:
    count = len(seen.document.pages) if seen.document else 0
    if count != wanted:
        yield f"{count} pages, expected {wanted}"


# ---------------------------------------------------------------- tables


def _row_texts(table: Table, *, filled: bool) -> Iterator[list[str]]:
    """Each row from left to right; with `filled`, a cell that spans rows is in all of them."""
    for row in range(table.rows):
        cells = [c for c in table.cells if (c.row <= row < c.row + c.rowspan if filled else c.row == row)]
        texts = [""] * table.cols
        for cell in cells:
            texts[cell.col] = cell.text
        yield texts


def _all_rows(seen: Seen, *, filled: bool) -> list[list[str]]:
    return [[bare(text) for text in row] for table in seen.tables for row in _row_texts(table, filled=filled)]


def _rows(seen: Seen, wanted: list[list[str]], *, filled: bool = False) -> Iterator[str]:
    """A wanted row stands in one row of a table, its cells side by side."""
    if seen.document is None:
        return
    rows = _all_rows(seen, filled=filled)
    for row in wanted:
        parts = [bare(text) for text in row]
        if not any(parts == found[at : at + len(parts)] for found in rows for at in range(len(found))):
            yield f"no row {' | '.join(row)}"


def _filled_rows(seen: Seen, wanted: list[list[str]]) -> Iterator[str]:
    yield from _rows(seen, wanted, filled=True)


def value_at(seen: Seen, row: str, col: str) -> list[str]:
    """The cells in the row of these labels (several parted by /) under the head that says `col`."""
    labels = [bare(part) for part in row.split("/")]
    found = []
    for table in seen.tables:
        rows = list(_row_texts(table, filled=True))
        cols = {at for texts in rows for at, text in enumerate(texts) if bare(text) == bare(col)}
        for texts in rows:
            plain = [bare(_NOTE.sub("", text)) for text in texts]
            if all(label in plain for label in labels):
                found += [texts[at] for at in cols]
    return found


def _records(seen: Seen, wanted: list[dict[str, str]]) -> Iterator[str]:
    for record in wanted:
        found = value_at(seen, record["row"], record["col"])
        if bare(record["value"]) not in map(bare, found):
            yield f"{record['row']} / {record['col']} is {found or 'not found'}, expected {record['value']}"


def _canonical(seen: Seen, wanted: list[dict[str, str]]) -> Iterator[str]:
    for record in wanted:
        found = _values(seen, record)
        if parse_number(record["value"]) not in found:
            yield f"{record['row']} / {record['col']} is {found or 'not found'}, expected {record['value']}"


def _not_equal(seen: Seen, wanted: list[dict[str, str]]) -> Iterator[str]:
    for record in wanted:
        if parse_number(record["value"]) in _values(seen, record):
            yield f"{record['row']} / {record['col']} is {record['value']}, which is wrong"


def _values(seen: Seen, record: Mapping[str, str]) -> list[Any]:
    return [parse_number(_NOTE.sub("", text)) for text in value_at(seen, record["row"], record["col"])]


def _footnotes(seen: Seen, wanted: dict[str, str]) -> Iterator[str]:
    for place, note in wanted.items():
        row, _, col = place.rpartition("/")
        if not any(text.endswith((f"^{note}", f"^({note})")) for text in value_at(seen, row, col)):
            yield f"{place} has no footnote {note}"


def _not_in_cells(seen: Seen, wanted: list[str]) -> Iterator[str]:
    texts = "\n".join(bare(cell.text) for table in seen.tables for cell in table.cells)
    yield from (f"{text!r} is in a cell" for text in wanted if text in texts)


# ---------------------------------------------------------------- forms, notes, limits


def _blocks(seen: Seen, kind: BlockKind) -> list[str]:
    pages = seen.document.pages if seen.document else ()
    return [block.printed.text for page in pages for block in page.blocks if block.kind is kind]


def _form(seen: Seen, wanted: dict[str, str]) -> Iterator[str]:
    fields = _blocks(seen, BlockKind.FORM_FIELD)
    yield from (f"no field {key}: {value}" for key, value in wanted.items() if f"{key}: {value}" not in fields)


def _annotations(seen: Seen, wanted: list[str]) -> Iterator[str]:
    notes = _blocks(seen, BlockKind.ANNOTATION)
    yield from (f"no note says {text!r}" for text in wanted if not any(text in note for note in notes))


def _at_most(what: str) -> Check:
    def check(seen: Seen, wanted: float) -> Iterator[str]:
        value = getattr(seen, what)
        if value > wanted:
            yield f"{what} is {value:.0f}, the limit is {wanted}"

    return check


def _told_elsewhere(seen: Seen, wanted: Any) -> tuple[str, ...]:
    """A fact about the run as a whole, which `bench.cases` looks at where it runs."""
    return ()


CHECKS: Final[Mapping[str, Check]] = {
    "status": _status,
    "error": _error,
    "text_contains": _contains,
    "text_contains_after_ocr": _contains,
    "true_numbers": _contains,
    "text_not_contains": _lacks,
    "text_once": _once,
    "normalized_contains": _normalized,
    "ids": _normalized,
    "canonical_numbers": _numbers,
    "canonical_dates": _dates,
    "numbers_not": _furniture_apart,
    "flags": _flags,
    "must_not_trust_text_layer": _not_trusted,
    "pages_needing_ocr": _pages_ocr,
    "pages": _page_count,
    "rows": _rows,
    "filled_rows": _filled_rows,
    "records": _records,
    "canonical": _canonical,
    "must_not_equal": _not_equal,
    "footnotes": _footnotes,
    "text_in_cells_not": _not_in_cells,
    "form": _form,
    "annotations": _annotations,
    "max_seconds": _at_most("seconds"),
    "max_rss_mb": _at_most("rss_mb"),
    "max_attempts": _told_elsewhere,
    "others_finish": _told_elsewhere,
}
