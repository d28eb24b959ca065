"""What is no readable PDF ends in an error that names the thing, the limit and the remedy."""

from __future__ import annotations

from pathlib import Path

import pymupdf
import pytest

from docmill.errors import CorruptPdf, EmptyFile, Encrypted, InputError, NotAPdf, NoText, ParserLimit, TooManyPages
from preprocess import pages
from preprocess.overrun import Bell
from preprocess.pdf import open_pdf
from preprocess.sniff import check_bytes
from preprocess.tables_form import tables_form
from tests import pdfs
from tests.parsing import parsed, shown


def test_a_file_of_zero_bytes_is_empty() -> None:
    with pytest.raises(EmptyFile, match="0 bytes"):
        check_bytes(b"")


@pytest.mark.parametrize(
    "data",
    [b"<html><body>Log in: 1,000.00</body></html>", b"\x89PNG\r\n\x1a\n" + b"\0" * 64, b"PK\x03\x04word/document.xml"],
    ids=["html", "png", "docx"],
)
def test_another_kind_of_file_is_not_a_pdf_whatever_its_name(data: bytes) -> None:
    with pytest.raises(NotAPdf, match="submit a PDF"):
        check_bytes(data)


def test_junk_before_the_header_and_after_the_end_is_forgiven(tmp_path: Path) -> None:
    data = b"HTTP/1.1 200 OK\r\n\r\n" + pdfs.text_pdf("Balance 9,900.00") + b"\n-- trailing junk --\n"
    check_bytes(data)
    assert "9,900.00" in shown(parsed(data, tmp_path))


def test_a_password_protected_file_is_refused_as_encrypted() -> None:
    with pytest.raises(Encrypted, match="password"):
        open_pdf(pdfs.encrypted_pdf("secret"), 10)


def test_an_empty_user_password_opens_the_file(tmp_path: Path) -> None:
    assert "For your eyes only." in shown(parsed(pdfs.encrypted_pdf(""), tmp_path))


def test_a_half_written_file_is_corrupt_though_mupdf_would_open_it() -> None:
    with pytest.raises(CorruptPdf, match="EOF"):
        open_pdf(pdfs.half_written_pdf(), 10)


@pytest.mark.parametrize("data", [pdfs.no_pages_pdf(), pdfs.page_loop_pdf(), b"%PDF-1.7\nnothing more"])
def test_no_pages_a_page_tree_that_loops_and_a_bare_header_are_corrupt(data: bytes) -> None:
    with pytest.raises(CorruptPdf, match="export"):
        open_pdf(data, 10)


def test_a_file_over_the_page_limit_is_refused_with_both_numbers() -> None:
    with pytest.raises(TooManyPages, match=r"3 pages.*limit is 2"):
        open_pdf(pdfs.text_pdf("one", "two", "three"), 2)


def test_a_document_of_blank_pages_has_no_text(tmp_path: Path) -> None:
    with pytest.raises(NoText, match="2 pages"):
        parsed(pdfs.finish(pdfs.new_document(2)), tmp_path)


def test_a_scan_without_ocr_has_no_text_and_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoText, match="OCR is off"):
        parsed(pdfs.scan_pdf("Total 42"), tmp_path)


def test_a_page_that_unpacks_to_too_much_costs_that_page_only(tmp_path: Path) -> None:
    document = pdfs.new_document(2)
    for page in document:
        pdfs.write_lines(page, "Balance 1,234.50")
    document.update_stream(document[0].get_contents()[0], b"q 0 0 m 1 1 l S Q\n" * 10_000, compress=True)
    prepared = parsed(pdfs.finish(document), tmp_path, page_content_bytes=100_000)
    assert [(one.page, one.code) for one in prepared.missing] == [(1, "parser_limit")]
    assert (prepared.partial, tables_form(prepared)["missing"][0]["page"]) == (True, 1)
    assert shown(prepared) == "[p2]\nBalance 1,234.50\n"


def test_a_document_whose_only_page_unpacks_to_too_much_is_over_the_limit(tmp_path: Path) -> None:
    with pytest.raises(ParserLimit, match="raise page_content_bytes"):
        parsed(pdfs.text_pdf("Balance 1,234.50"), tmp_path, page_content_bytes=10)


def test_pages_for_which_no_time_is_left_are_named(tmp_path: Path) -> None:
    with pytest.raises(ParserLimit, match="page 1: not read, no time was left"):
        parsed(pdfs.text_pdf("one", "two"), tmp_path, wall_seconds=1e-6)


def test_a_scan_among_text_pages_that_is_not_read_is_a_missing_page(tmp_path: Path) -> None:
    document = pymupdf.open(stream=pdfs.text_pdf("Balance 1,234.50"))
    with pymupdf.open(stream=pdfs.scan_pdf("Total 42")) as scan:
        document.insert_pdf(scan)
    prepared = parsed(pdfs.finish(document), tmp_path)
    assert [(one.page, one.code) for one in prepared.missing] == [(2, "no_text")]
    assert "OCR is off" in prepared.missing[0].reason


@pytest.mark.parametrize("cut", [0.1, 0.35, 0.5, 0.65, 0.8, 0.95])
def test_wherever_a_file_is_cut_it_ends_in_a_typed_error(cut: float) -> None:
    data = pdfs.table_pdf([["Item", "2024"], ["Cash", "1,234.50"]])
    with pytest.raises(InputError):
        open_pdf(data[: int(len(data) * cut)], 10)


def test_the_bell_ends_the_page_that_is_read_and_nothing_else() -> None:
    bell = Bell()
    bell.ring("too early")

    def endless() -> str:
        while True:
            bell.ring("its time is up")

    assert bell.hear(endless, lambda reason: reason) == "its time is up"
    bell.ring("too late")
    assert bell.hear(lambda: "read", lambda reason: reason) == "read"


def test_a_fault_of_the_parser_is_not_called_damage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def faulty(*_: object) -> None:
        raise IndexError("list index out of range")

    monkeypatch.setattr(pages, "_OURS", Path(__file__).parent)
    monkeypatch.setattr(pages, "set_covered_apart", faulty)
    with pytest.raises(CorruptPdf, match=r"the parser has a fault .IndexError"):
        parsed(pdfs.text_pdf("One page."), tmp_path)
