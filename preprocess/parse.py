"""The story of a parse, told in the child process: open, read each page, put the document together, render it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pymupdf

from docmill.errors import CorruptPdf, NoText
from docmill.types import Block, Page, PreparedDocument
from preprocess.captions import tie_captions
from preprocess.dedup import comparable_text, signature
from preprocess.furniture import Furniture, furniture_blocks
from preprocess.grids import Plumber
from preprocess.joins import join_pages
from preprocess.pages import Clock, PageReading, read_page
from preprocess.pdf import open_pdf
from preprocess.prepare import PrepareConfig
from preprocess.render import render
from preprocess.text import Row, Setting, blocks_of
from preprocess.tokens import counter
from preprocess.version import PARSER

#: MuPDF keeps what it decoded; a long document must not fill the memory with it.
_SHRINK_EVERY = 25


def parse(data: bytes, document_id: str, config: PrepareConfig) -> PreparedDocument:
    """Read a PDF in this process. Raises an InputError if it cannot be read."""
    readings = list(_readings(data, config))
    warnings = tuple(warning for reading in readings for warning in reading.warnings)
    pages = assemble(readings)
    _refuse_unreadable(pages, warnings)
    chunks = render(pages, counter(config.tokenizer))
    tokens = sum(chunk.tokens for chunk in chunks)
    return PreparedDocument(document_id, pages, chunks, tokens, signature(comparable_text(pages)), PARSER, warnings)


def _readings(data: bytes, config: PrepareConfig) -> Iterator[PageReading]:
    clock, plumber = Clock(config.wall_seconds, config.cpu_seconds), Plumber(data)
    with open_pdf(data, config.max_pages) as document:
        for number in range(1, document.page_count + 1):
            yield read_page(document, number, plumber, clock, ocr=config.ocr)
            if number % _SHRINK_EVERY == 0:
                pymupdf.TOOLS.store_shrink(100)
    pymupdf.TOOLS.store_shrink(100)


def assemble(readings: Sequence[PageReading]) -> tuple[Page, ...]:
    """What only the whole document tells: running headers, continued tables, the size of running text."""
    furniture = Furniture([(reading.items, reading.height) for reading in readings])
    taken = [furniture.take(reading.items, reading.height, reading.number) for reading in readings]
    joined = join_pages([items for items, _ in taken])
    body_size = _body_size(readings)
    pages = []
    for reading, items, (_, apart) in zip(readings, joined, taken, strict=True):
        headers, footers = furniture_blocks(apart, reading.number, reading.source)
        setting = Setting(reading.number, reading.width, body_size, reading.source)
        body = tie_captions(blocks_of(items, setting))
        blocks: tuple[Block, ...] = (*headers, *body, *reading.notes, *footers)
        pages.append(Page(reading.number, reading.width, reading.height, blocks, reading.source))
    return tuple(pages)


def _body_size(readings: Sequence[PageReading]) -> float:
    sizes: Counter[float] = Counter()
    for reading in readings:
        for item in reading.items:
            if isinstance(item, Row):
                sizes[round(item.size * 2) / 2] += len(item.text)
    return sizes.most_common(1)[0][0] if sizes else 10.0


def _refuse_unreadable(pages: Sequence[Page], warnings: Sequence[str]) -> None:
    if any(block.printed.text.strip() or block.table for page in pages for block in page.blocks):
        return
    why = "; ".join(warnings[:3]) or "no page has any text or image"
    if pages and all(page.width == 0 for page in pages):
        raise CorruptPdf(f"none of the PDF's {len(pages)} pages can be read ({why}); export it again")
    raise NoText(f"nothing on the PDF's {len(pages)} pages can be read ({why}); submit a better scan")
