"""What bytes are, by their content: a name never decides.

A table of our own: the libraries for this (puremagic, filetype) know hundreds of binary formats, but neither plain text
nor a bare `<html>`, which are what people upload by mistake, and they guess among the formats that are zip inside.
"""

from __future__ import annotations

#: Readers accept a PDF whose header stands anywhere in the first 1024 bytes (ISO 32000-1, annex H).
PDF_HEADER_WITHIN = 1024

#: How much of a text is looked at to call it text.
_TEXT_SAMPLE = 4096

_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"II*\x00", "a TIFF image"),
    (b"MM\x00*", "a TIFF image"),
    (b"BM", "a BMP image"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office file (Word, Excel or PowerPoint)"),
    (b"{\\rtf", "an RTF file"),
    (b"%!PS", "a PostScript file"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"MZ", "a Windows program"),
    (b"\x7fELF", "a Linux program"),
)

#: A zip archive keeps the names of its members readable, so the one that marks the format is searched for.
_ZIP_MEMBERS: tuple[tuple[bytes, str], ...] = (
    (b"word/document.xml", "a Word file"),
    (b"xl/workbook.xml", "an Excel file"),
    (b"ppt/presentation.xml", "a PowerPoint file"),
    (b"application/epub+zip", "an EPUB book"),
    (b"application/vnd.oasis.opendocument", "an OpenDocument file"),
)

_MARKUP: tuple[tuple[str, str], ...] = (
    ("<!doctype html", "an HTML page"),
    ("<html", "an HTML page"),
    ("<head", "an HTML page"),
    ("<svg", "an SVG image"),
    ("<?xml", "an XML file"),
    ("{", "JSON or plain text"),
    ("from:", "an e-mail message"),
    ("received:", "an e-mail message"),
    ("return-path:", "an e-mail message"),
    ("mime-version:", "an e-mail message"),
)


def is_pdf(data: bytes) -> bool:
    """Whether a PDF header stands where readers look for one; what follows the end of the PDF does not matter."""
    return b"%PDF-" in data[:PDF_HEADER_WITHIN]


def looks_like(data: bytes) -> str:
    """What the bytes are, in words that fit after "it is": "a PNG image", "an HTML page"."""
    if is_pdf(data):
        return "a PDF"
    if data.startswith(b"PK\x03\x04"):
        return next((kind for member, kind in _ZIP_MEMBERS if member in data), "a zip archive")
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "a WebP image"
    signature = next((kind for magic, kind in _SIGNATURES if data.startswith(magic)), None)
    return signature or _text_kind(data) or f"unknown binary data (first bytes {data[:8].hex(' ')})"


def _text_kind(data: bytes) -> str | None:
    text = _as_text(data[:_TEXT_SAMPLE])
    if text is None:
        return None
    start = text.lstrip("\ufeff \t\r\n").lower()
    if not start:
        return "nothing but blanks"
    return next((kind for mark, kind in _MARKUP if start.startswith(mark)), "plain text")


def _as_text(sample: bytes) -> str | None:
    """The sample decoded, or None if it is not text. GB18030 is tried last: it accepts much that is not text."""
    for encoding in ("utf-16",) if sample[:2] in (b"\xff\xfe", b"\xfe\xff") else ("utf-8", "gb18030"):
        # A sample may end inside a character: its last three bytes are not held against it.
        for end in range(len(sample), max(len(sample) - 4, 0), -1):
            text = _decoded(sample[:end], encoding)
            if text is not None:
                return text
    return "" if not sample else None


def _decoded(sample: bytes, encoding: str) -> str | None:
    try:
        text = sample.decode(encoding)
    except UnicodeDecodeError:
        return None
    return (
        text if all(character.isprintable() or character in "\t\r\n\f\ufeff\u3000\xa0" for character in text) else None
    )
