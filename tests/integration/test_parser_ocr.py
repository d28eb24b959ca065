"""Pages without a text layer that can be believed are read by OCR, marked as such, each character with a box."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from tests import pdfs
from tests.fonts import mapped_pdf
from tests.parsing import parsed, rows, shown

TABLE = [["Segment", "Revenue", "Staff"], ["Retail", "1,234.50", "560"], ["Wealth", "987.00", "41"]]
DIGITS = dict(zip("0123456789", "7390182564", strict=True))


def scanned(data: bytes, *, turned: int = 0, dpi: int = 150) -> bytes:
    """The first page of a file as a picture, laid on the scanner turned by so many degrees."""
    source = pymupdf.open(stream=data, filetype="pdf")[0]
    source.set_rotation(turned)
    document = pymupdf.open()
    page = document.new_page(width=source.rect.width, height=source.rect.height)
    page.insert_image(page.rect, pixmap=source.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY))
    return pdfs.finish(document)


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
    assert block.confidence is not None and block.confidence > 0.8
    where = block.printed.box()
    assert where is not None and 40 < where.x0 < 80 and 50 < where.y0 < 90


def test_the_ocr_layer_of_a_scan_is_used_but_told_to_be_unverified(tmp_path: Path) -> None:
    document = pymupdf.open(stream=pdfs.scan_pdf("Penalty interest 3,883.08"), filetype="pdf")
    pdfs.write(document[0], 60, 80, "Penalty interest 3,883.08", render_mode=3)
    prepared = parsed(pdfs.finish(document), tmp_path, ocr=True)
    assert prepared.pages[0].source == "ocr_layer"
    assert "nobody has verified" in prepared.warnings[0]


def test_a_ruled_table_on_a_scan_is_a_table(tmp_path: Path) -> None:
    prepared = parsed(scanned(pdfs.table_pdf(TABLE, before="Results of the segments")), tmp_path, ocr=True)
    assert rows(prepared) == TABLE
    block = next(block for block in prepared.pages[0].blocks if block.table)
    assert block.source == "ocr" and block.confidence is not None and block.confidence > 0.8
    cell = next(cell for cell in prepared.tables[0].cells if cell.text == "1,234.50")
    where = cell.printed.box()
    assert cell.bbox is not None and where is not None
    assert cell.bbox.x0 <= where.x0 < where.x1 <= cell.bbox.x1 + 1


@pytest.mark.parametrize("turned", [90, 180])
def test_a_scan_that_lies_sideways_or_upside_down_is_read(tmp_path: Path, turned: int) -> None:
    words = "Contingent liabilities at the end of the year\nGuarantees given 7,654,321.00\nPending claims 12,000.00"
    prepared = parsed(scanned(pdfs.text_pdf(words), turned=turned), tmp_path, ocr=True)
    assert "Guarantees given 7,654,321.00" in shown(prepared).replace("  ", " ")
    box = prepared.pages[0].blocks[0].bbox
    wide = box.x1 - box.x0 > box.y1 - box.y0
    assert wide == (turned == 180)


def test_a_page_whose_layer_says_other_digits_is_read_by_ocr(tmp_path: Path) -> None:
    data = mapped_pdf("Total exposure at default: USD 1,482,930.55\nas of 2024-06-30", "helv", DIGITS)
    prepared = parsed(data, tmp_path, ocr=True)
    assert "1,482,930.55" in shown(prepared)
    assert "says other than what is printed" in prepared.warnings[0]


def test_an_honest_page_in_a_font_under_doubt_keeps_its_text(tmp_path: Path) -> None:
    prepared = parsed(mapped_pdf("Total exposure 1,482,930.55 as of 2024-06-30", "helv"), tmp_path, ocr=True)
    assert (prepared.pages[0].source, prepared.warnings) == ("text", ())
