"""The story of a parse, told in the child process: open, read each page, put the document together, render it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import pymupdf

from docmill.errors import CorruptPdf, NoText, ParserCrashed, ParserLimit
from docmill.types import Block, MissingPage, Page, PreparedDocument
from preprocess.breaks import mark_continued
from preprocess.captions import tie_captions
from preprocess.dedup import comparable_text, signature
from preprocess.footnotes import mark_footnotes
from preprocess.furniture import Furniture, furniture_blocks
from preprocess.grids import Plumber
from preprocess.joins import join_pages
from preprocess.layer import Layer
from preprocess.overrun import bell
from preprocess.pages import Clock, PageReading, Tools, missing_page, read_page
from preprocess.pdf import open_pdf, unpacks_over
from preprocess.prepare import PrepareConfig
from preprocess.render import render
from preprocess.text import Row, Setting, blocks_of
from preprocess.tokens import counter
from preprocess.turn import Frame, turn_back
from preprocess.version import PARSER

#: MuPDF keeps what it decoded; a long document must not fill the memory with it.
_SHRINK_EVERY: Final = 25
#: Share of the time limit after which no page is begun: the rest is for what only the whole document tells.
_BEGIN_UNTIL: Final = 0.8

#: Told of the page that is begun, and of how many there are.
Begin = Callable[[int, int], None]


def parse(
    data: bytes,
    document_id: str,
    config: PrepareConfig,
    left_out: Sequence[MissingPage] = (),
    begin: Begin = lambda page, of: None,
) -> PreparedDocument:
    """Read a PDF in this process, without the pages that are to be left out. Raises an InputError if it cannot be read.

    `begin` is told of each page before it is read, and of page 0 after the last.
    """
    readings = list(_readings(data, config, {page.page: page for page in left_out}, begin))
    begin(0, len(readings))
    warnings = tuple(warning for reading in readings for warning in reading.warnings)
    missing = tuple(reading.missing for reading in readings if reading.missing is not None)
    pages = assemble(readings)
    _refuse_unreadable(pages, missing, warnings)
    chunks = render(pages, counter(config.tokenizer))
    tokens = sum(chunk.tokens for chunk in chunks)
    sketch = signature(comparable_text(pages))
    return PreparedDocument(document_id, pages, chunks, tokens, sketch, PARSER, warnings, missing)


def _readings(
    data: bytes, config: PrepareConfig, left_out: Mapping[int, MissingPage], begin: Begin
) -> Iterator[PageReading]:
    clock = Clock(config.wall_seconds, config.cpu_seconds)
    tools = Tools(Plumber(data), Layer(), clock)
    with open_pdf(data, config.max_pages) as document:
        for number in range(1, document.page_count + 1):
            begin(number, document.page_count)
            missing = left_out.get(number) or _too_costly(document, number, clock, config)
            yield missing_page(missing) if missing else _bounded(document, number, tools, ocr=config.ocr)
            if number % _SHRINK_EVERY == 0:
                pymupdf.TOOLS.store_shrink(100)
    pymupdf.TOOLS.store_shrink(100)


def _bounded(document: pymupdf.Document, number: int, tools: Tools, *, ocr: bool) -> PageReading:
    """A page, or what is said of it when its time is up."""
    return bell.hear(
        lambda: read_page(document, number, tools, ocr=ocr),
        lambda reason: missing_page(MissingPage(number, ParserLimit.code, reason)),
    )


def _too_costly(document: pymupdf.Document, number: int, clock: Clock, config: PrepareConfig) -> MissingPage | None:
    """Why a page is not even begun: no time is left, or it unpacks to more than any honest page."""
    if clock.used > _BEGIN_UNTIL:
        return MissingPage(number, ParserLimit.code, "no time was left for it; split the file or raise wall_seconds")
    if unpacks_over(document, number, config.page_content_bytes):
        limit = f"{config.page_content_bytes // 1024**2} MiB"
        return MissingPage(number, ParserLimit.code, f"its content unpacks to over {limit}; raise page_content_bytes")
    return None


def assemble(readings: Sequence[PageReading]) -> tuple[Page, ...]:
    """What only the whole document tells: running headers, continued tables, the size of running text."""
    furniture = Furniture([(reading.items, reading.height) for reading in readings])
    taken = [furniture.take(reading.items, reading.height, reading.number) for reading in readings]
    joined = join_pages([items for items, _ in taken])
    body_size = _body_size(readings)
    settings = [
        Setting(reading.number, reading.width, body_size, reading.source, reading.confidence) for reading in readings
    ]
    bodies = mark_continued(
        [
            mark_footnotes(tie_captions(blocks_of(items, setting)), reading.height)
            for items, setting, reading in zip(joined, settings, readings, strict=True)
        ]
    )
    frames = {reading.number: reading.frame for reading in readings if reading.frame and reading.frame.turn}
    pages = []
    for reading, body, (_, apart) in zip(readings, bodies, taken, strict=True):
        headers, footers = furniture_blocks(apart, reading.number, reading.source)
        pages.append(_page(reading, [*headers, *body], footers, frames))
    return tuple(pages)


def _page(reading: PageReading, above: list[Block], below: list[Block], frames: Mapping[int, Frame]) -> Page:
    """A page as it is seen, with the notes before its footers."""
    frame = frames.get(reading.number)
    width, height = (frame.width, frame.height) if frame else (reading.width, reading.height)
    body, footers = (turn_back(blocks, frames) if frames else blocks for blocks in (above, below))
    return Page(reading.number, width, height, (*body, *reading.notes, *footers), reading.source, reading.hidden)


def _body_size(readings: Sequence[PageReading]) -> float:
    sizes: Counter[float] = Counter()
    for reading in readings:
        for item in reading.items:
            if isinstance(item, Row):
                sizes[round(item.size * 2) / 2] += len(item.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def _refuse_unreadable(pages: Sequence[Page], missing: Sequence[MissingPage], warnings: Sequence[str]) -> None:
    if any(block.printed.text.strip() or block.table for page in pages for block in page.blocks):
        return
    why = "; ".join(warnings[:3]) or "no page has any text or image"
    if any(page.code == ParserLimit.code for page in missing):
        raise ParserLimit(f"nothing on the PDF's {len(pages)} pages was read ({why}); split it or raise the limit")
    if pages and sum(page.code in (CorruptPdf.code, ParserCrashed.code) for page in missing) == len(pages):
        raise CorruptPdf(f"none of the PDF's {len(pages)} pages can be read ({why}); export it again")
    raise NoText(f"nothing on the PDF's {len(pages)} pages can be read ({why}); submit a better scan")
