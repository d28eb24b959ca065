"""Bytes become a Document, or an error that says what they are."""

import hashlib
import io
import zipfile

import pytest

from docmill.errors import EmptyFile, NotAPdf, TooLarge
from docmill.types import Document, Source
from ingest.accept import IngestConfig, accept, document_id_of, job_id_of
from ingest.sniff import is_pdf, looks_like

PDF = b"%PDF-1.7\n1 0 obj <<>> endobj\ntrailer <<>>\n%%EOF\n"


def accepted(data: bytes, *, name: str = "a.pdf", tenant: str = "acme", max_bytes: int = 1000) -> Document:
    return accept(data, name=name, tenant=tenant, source=Source.CLI, config=IngestConfig(max_bytes=max_bytes))


def zipped(member: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(member, "x" * 500)
    return buffer.getvalue()


def test_a_pdf_becomes_a_document_that_is_named_by_its_content() -> None:
    document = accepted(PDF, name="报告.pdf")
    assert document.sha256 == hashlib.sha256(PDF).hexdigest()
    assert (document.name, document.size_bytes, document.source) == ("报告.pdf", len(PDF), Source.CLI)
    assert document.document_id.startswith("doc_") and len(document.document_id) == 28


def test_the_same_bytes_are_the_same_document_under_any_name() -> None:
    assert accepted(PDF, name="a.pdf").document_id == accepted(PDF, name="b.pdf").document_id


def test_the_same_bytes_of_two_tenants_are_two_documents() -> None:
    assert accepted(PDF, tenant="acme").document_id != accepted(PDF, tenant="zenith").document_id


def test_tenant_and_hash_cannot_be_shifted_into_each_other() -> None:
    assert document_id_of("a", "bc") != document_id_of("ab", "c")


def test_the_document_id_is_the_one_that_is_written_down() -> None:
    digest = hashlib.sha256(b"acme\x00" + b"f" * 64).hexdigest()
    assert document_id_of("acme", "f" * 64) == "doc_" + digest[:24]


def test_a_job_is_one_document_read_by_one_version_of_a_profile() -> None:
    ids = {job_id_of("doc_1", "risk-report", "1"), job_id_of("doc_1", "risk-report", "2"), job_id_of("doc_2", "x", "1")}
    assert len(ids) == 3
    assert all(job.startswith("job_") and len(job) == 28 for job in ids)


def test_an_empty_file_is_refused_with_its_name_and_a_remedy() -> None:
    with pytest.raises(EmptyFile, match=r"'a.pdf' is empty.*upload it again"):
        accepted(b"")


def test_a_file_of_exactly_the_limit_is_accepted_and_one_byte_more_is_not() -> None:
    assert accepted(PDF, max_bytes=len(PDF)).size_bytes == len(PDF)
    with pytest.raises(TooLarge, match=f"{len(PDF)} bytes, the limit is {len(PDF) - 1}"):
        accepted(PDF, max_bytes=len(PDF) - 1)


def test_a_limit_that_accepts_nothing_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="max_bytes is 0"):
        IngestConfig(max_bytes=0)


def test_junk_before_the_header_and_after_the_end_is_fine() -> None:
    assert is_pdf(b"\r\n" * 500 + PDF)
    assert is_pdf(PDF + b"\0" * 300 + b"<html>")


def test_a_header_after_the_first_1024_bytes_is_no_pdf() -> None:
    assert not is_pdf(b"x" * 1024 + PDF)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"<!DOCTYPE html><html><body>404</body></html>", "an HTML page"),
        (b"\xef\xbb\xbf  \n<html lang=zh>", "an HTML page"),
        (b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG image"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG image"),
        (zipped("word/document.xml"), "a Word file"),
        (zipped("xl/workbook.xml"), "an Excel file"),
        (zipped("notes.txt"), "a zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 600, "an old Office file (Word, Excel or PowerPoint)"),
        (b"Return-Path: <a@example.com>\r\nSubject: x\r\n", "an e-mail message"),
        (b'{"error": "not found"}', "JSON or plain text"),
        ("客户名单".encode(), "plain text"),
        ("客户名单，共三页".encode("gb18030"), "plain text"),
        ("plain".encode("utf-16"), "plain text"),
        (("界" * 3000).encode()[:4097], "plain text"),
        (b" \n\t ", "nothing but blanks"),
        (b"\x00\x01\x02\x03\x04\x05\x06\x07\x08", "unknown binary data (first bytes 00 01 02 03 04 05 06 07)"),
    ],
)
def test_what_is_not_a_pdf_is_called_by_its_name(data: bytes, kind: str) -> None:
    assert looks_like(data) == kind


def test_an_image_named_pdf_is_refused_as_the_image_that_it_is() -> None:
    with pytest.raises(NotAPdf, match=r"'scan.pdf' is not a PDF, it is a PNG image"):
        accepted(b"\x89PNG\r\n\x1a\n" + b"\0" * 20, name="scan.pdf")
