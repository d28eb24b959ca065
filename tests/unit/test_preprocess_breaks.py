"""Sentences over page breaks are joined, what only looks like one is not; notes, fields and sideways pages."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from docmill.types import BBox, BlockKind
from preprocess.turn import Frame
from tests import pdfs
from tests.parsing import parsed, rows, shown

ROWS = [["Quarter", "Income", "Costs"], ["Q1", "1,001.10", "701.20"], ["Q2", "1,202.20", "866.30"]]


def two_pages(last: str, first: str) -> bytes:
    """Two pages with running lines around them, one ending with `last`, the next starting with `first`."""
    document = pdfs.new_document(2)
    for number, (page, text) in enumerate(zip(document, (f"Some words to begin.\n{last}", first), strict=True), 1):
        pdfs.write(page, 60, 40, "Annual report 2024", size=8)
        pdfs.write(page, 280, 815, f"{number} / 2", size=8)
        pdfs.write_lines(page, text, top=700 if number == 1 else 80)
    return pdfs.finish(document)


def test_a_chinese_sentence_goes_on_over_header_and_footer(tmp_path: Path) -> None:
    prepared = parsed(two_pages("截至报告期末，本集团的贷款余额为人民币", "1,234,567.89万元，未超过上限。"), tmp_path)
    assert "贷款余额为人民币1,234,567.89万元，未超过上限。" in shown(prepared)
    blocks = [block for page in prepared.pages for block in page.blocks if block.continues]
    assert [(block.page, block.printed.text[:9]) for block in blocks] == [(2, "1,234,567")]


def test_an_english_sentence_goes_on_and_its_hyphen_goes(tmp_path: Path) -> None:
    text = shown(parsed(two_pages("The borrower shall repay the accrued inter-", "est on the first day."), tmp_path))
    assert "the accrued interest on the first day." in text


@pytest.mark.parametrize(
    ("last", "first"),
    [
        ("The sentence has ended.", "and this is another one."),
        ("Loan 40 balance 40.50 of customer", "Loan 41 balance 41.50 of customer"),
        ("第36项，本集团信用风险敞口说明", "（37）本集团信用风险，敞口说明。"),
        ("本集团信用风险敞口说明第36项", "本集团信用风险敞口说明第37项"),
    ],
)
def test_what_starts_anew_is_not_joined(tmp_path: Path, last: str, first: str) -> None:
    prepared = parsed(two_pages(last, first), tmp_path)
    assert f"[p2]\n{first}" in shown(prepared)


def test_small_print_behind_a_mark_at_the_foot_is_a_footnote(tmp_path: Path) -> None:
    document = pdfs.new_document(2)
    pdfs.write_lines(document[0], "The board proposes a dividend of 0.10, which the", top=500)
    pdfs.write_lines(document[0], "1 Includes discontinued operations.", top=700, size=8)
    pdfs.write_lines(document[1], "general meeting will decide upon in May.")
    prepared = parsed(pdfs.finish(document), tmp_path)
    assert [block.kind for block in prepared.pages[0].blocks] == [BlockKind.PARAGRAPH, BlockKind.FOOTNOTE]
    assert "which the general meeting will decide" in shown(prepared)


def test_fields_are_told_by_name_and_a_tick_is_no_text(tmp_path: Path) -> None:
    document = pdfs.new_document()
    pdfs.write_lines(document[0], "Amount\nReported")
    for name, value, kind, top in (
        ("amt", "1,880,000.00", pymupdf.PDF_WIDGET_TYPE_TEXT, 60),
        ("rep", True, pymupdf.PDF_WIDGET_TYPE_CHECKBOX, 80),
    ):
        widget = pymupdf.Widget()
        widget.field_name, widget.field_value, widget.field_type = name, value, kind
        widget.rect = pymupdf.Rect(200, top, 320 if kind == pymupdf.PDF_WIDGET_TYPE_TEXT else 214, top + 14)
        document[0].add_widget(widget)
    blocks = parsed(pdfs.finish(document), tmp_path).pages[0].blocks
    fields = [(block.label, block.printed.text) for block in blocks if block.kind is BlockKind.FORM_FIELD]
    assert fields == [("amt", "amt: 1,880,000.00"), ("rep", "rep: Yes")]
    body = " ".join(block.printed.text for block in blocks if block.kind is not BlockKind.FORM_FIELD)
    assert body.split() == ["Amount", "1,880,000.00", "Reported"]


def test_a_typed_correction_is_a_note_with_its_kind_and_author(tmp_path: Path) -> None:
    document = pdfs.new_document()
    pdfs.write_lines(document[0], "Guarantee amount 500,000.00")
    note = document[0].add_freetext_annot(pymupdf.Rect(300, 45, 520, 75), "CORRECTED: 5,000,000.00", fontsize=10)
    note.set_info(title="compliance")
    note.update()
    blocks = parsed(pdfs.finish(document), tmp_path).pages[0].blocks
    told = [(block.kind, block.label, block.printed.text) for block in blocks]
    assert told == [
        (BlockKind.PARAGRAPH, "", "Guarantee amount 500,000.00"),
        (BlockKind.ANNOTATION, "FreeText, compliance", "CORRECTED: 5,000,000.00"),
    ]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_box_of_a_turned_page_is_turned_back(turn: int) -> None:
    page = pymupdf.Rect(0, 0, 600, 800)
    frame, seen = Frame(turn, page.width, page.height), BBox(10.0, 20.0, 110.0, 32.0)
    width, height = frame.size
    matrix = {
        90: pymupdf.Matrix(0, 1, -1, 0, width, 0),
        180: pymupdf.Matrix(-1, 0, 0, -1, width, height),
        270: pymupdf.Matrix(0, -1, 1, 0, 0, height),
    }[turn]
    assert frame.back(BBox(*(pymupdf.Rect(seen) * matrix))) == pytest.approx(seen)


@pytest.mark.parametrize("rotate", [90, 270])
def test_a_table_that_is_set_sideways_is_read_like_any_other(tmp_path: Path, rotate: int) -> None:
    """The page is stored sideways without the /Rotate that would turn it back."""
    document = pymupdf.open(stream=pdfs.table_pdf(ROWS, before="Figures by quarter", rotate=rotate), filetype="pdf")
    document[0].set_rotation(0)
    prepared = parsed(pdfs.finish(document), tmp_path)
    assert rows(prepared) == ROWS
    page, cell = prepared.pages[0], prepared.tables[0].cells[4]
    box = cell.printed.box()
    assert page.width > page.height and cell.text == "1,001.10"
    assert box is not None and box.y1 - box.y0 > box.x1 - box.x0
