"""Scanned pages are read by OCR, marked as such, each character with a box."""

from __future__ import annotations

from pathlib import Path

import pymupdf

from tests import pdfs
from tests.parsing import parsed, shown


def test_a_scanned_page_among_text_pages_is_read(tmp_path: Path) -> None:
    document = pymupdf.open(stream=pdfs.text_pdf("First page of text, with some words."), filetype="pdf")
    document.insert_pdf(
        pymupdf.open(stream=pdfs.scan_pdf("Contingent liability\n或有负债 7,654,321.00"), filetype="pdf")
    )
    prepared = parsed(pdfs.finish(document), tmp_path, ocr=True)
    assert [page.source for page in prepared.pages] == ["text", "ocr"]
    assert "7,654,321.00" in shown(prepared)
    block = prepared.pages[1].blocks[0]
    assert block.source == "ocr"
    where = block.printed.box()
    assert where is not None and 40 < where.x0 < 80 and 50 < where.y0 < 90


def test_the_ocr_layer_of_a_scan_is_used_but_told_to_be_unverified(tmp_path: Path) -> None:
    document = pymupdf.open(stream=pdfs.scan_pdf("Penalty interest 3,883.08"), filetype="pdf")
    pdfs.write(document[0], 60, 80, "Penalty interest 3,883.08", render_mode=3)
    prepared = parsed(pdfs.finish(document), tmp_path, ocr=True)
    assert prepared.pages[0].source == "ocr_layer"
    assert "nobody has verified" in prepared.warnings[0]
