"""Open a PDF safely: what MuPDF would open leniently, and what it only half opens, ends in a typed error."""

from __future__ import annotations

import re
from typing import Final

import pymupdf

from docmill.errors import CorruptPdf, Encrypted, NotAPdf, TooManyPages
from preprocess.sniff import HEADER, HEADER_WITHIN

pymupdf.TOOLS.mupdf_display_errors(False)
pymupdf.TOOLS.mupdf_display_warnings(False)

#: What MuPDF and its Python layer raise on damaged content; FzErrorBase covers errors that the layer lets through.
MUPDF_ERRORS: Final = (
    RuntimeError,
    ValueError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    AssertionError,
    OverflowError,
    ZeroDivisionError,
    OSError,
    pymupdf.mupdf.FzErrorBase,
)

#: MuPDF says this when RLIMIT_AS stops an allocation.
_NO_MEMORY: Final = re.compile(r"malloc|realloc|calloc|out of memory|allocat", re.IGNORECASE)

#: A reader looks for `startxref ... %%EOF` near the end of the file.
_TAIL_BYTES: Final = 2048
_LINEARIZED_LENGTH: Final = re.compile(rb"/Linearized\b[^>]{0,200}?/L\s+(\d+)")


def open_pdf(data: bytes, max_pages: int) -> pymupdf.Document:
    """The open document, unlocked if its user password is empty. Raises an InputError that says what is wrong."""
    document = _open(data)
    if document.needs_pass and not document.authenticate(""):
        raise Encrypted("the PDF needs a password, and an empty one does not open it; submit a copy without a password")
    if document.is_repaired:
        _refuse_half_written(data)
    _check_pages(document, max_pages)
    return document


def _open(data: bytes) -> pymupdf.Document:
    if HEADER not in data[:HEADER_WITHIN]:
        raise NotAPdf(f"no %PDF- header in the first {HEADER_WITHIN} bytes; submit a PDF")
    try:
        return pymupdf.open(stream=data, filetype="pdf")
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        raise CorruptPdf(f"the PDF of {len(data)} bytes cannot be opened ({error}); export or copy it again") from error


def _check_pages(document: pymupdf.Document, max_pages: int) -> None:
    try:
        pages = document.page_count
        if 0 < pages <= max_pages:
            document.load_page(0)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        raise CorruptPdf(f"the PDF's page tree cannot be walked ({error}); export it again") from error
    if pages == 0:
        raise CorruptPdf("the PDF has no page; export it again")
    if pages > max_pages:
        raise TooManyPages(f"the PDF has {pages} pages, the limit is {max_pages}; split it or raise max_pages")


def _refuse_half_written(data: bytes) -> None:
    """MuPDF opens the first half of a file as if it were whole, with pages missing."""
    promised = _LINEARIZED_LENGTH.search(data[:_TAIL_BYTES])
    if promised and int(promised[1]) > len(data):
        raise CorruptPdf(f"the PDF ends after {len(data)} of {int(promised[1])} bytes; submit it once it is complete")
    if b"%%EOF" not in data and b"startxref" not in data[-_TAIL_BYTES:]:
        raise CorruptPdf(f"the PDF of {len(data)} bytes ends before its %%EOF mark; submit it once it is complete")


def unpacks_over(document: pymupdf.Document, number: int, limit: int) -> bool:
    """Whether the drawing instructions of page `number` (counted from 1) unpack to more than `limit` bytes.

    A few kilobytes of deflate can hold gigabytes of instructions; counting them is a hundred times cheaper than
    carrying them out. What is damaged is for the one who reads the page to tell.
    """
    try:
        return _left_of(limit, document[number - 1]) < 0
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        return False


def _left_of(limit: int, page: pymupdf.Page) -> int:
    """What the page's content leaves of a limit in bytes; below 0 if it is over."""
    left = limit
    for xref in page.get_contents():
        stream = pymupdf.mupdf.pdf_open_stream_number(pymupdf.mupdf.pdf_specifics(page.parent), xref)
        left -= int(pymupdf.mupdf.fz_skip(stream, left + 1))
        if left < 0:
            break
    return left


def raise_if_out_of_memory(error: BaseException) -> None:
    """Turn MuPDF's allocation failure into Python's, so that one place answers for the memory limit."""
    if isinstance(error, MemoryError) or _NO_MEMORY.search(str(error)):
        raise MemoryError(str(error)) from error
