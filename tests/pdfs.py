"""Small PDFs for tests, made on the spot: every test writes the document that it reads.

    text_pdf("First page.", "Second page.")                      pages of lines
    table_pdf([["Item", "2024"], ["Cash", "1,234.50"]])          a ruled table, or borderless with ruled=False
    encrypted_pdf("secret"), scan_pdf("Total 42"), half_written_pdf(), no_pages_pdf()

Chinese is set in the built-in font "china-s", everything else in Helvetica.
"""

from __future__ import annotations

from collections.abc import Sequence

import pymupdf

PAGE = pymupdf.Rect(0, 0, 595, 842)
MARGIN = 60.0
LEADING = 1.5
ROW_HEIGHT = 20.0

Rows = Sequence[Sequence[str]]


def font_for(text: str) -> str:
    """The built-in font that can set the text."""
    return "china-s" if any(ord(character) > 0x2E7F for character in text) else "helv"


def write(page: pymupdf.Page, x: float, y: float, text: str, *, size: float = 11, **options: object) -> None:
    """One line of text with its baseline at y."""
    options.setdefault("fontname", font_for(text))
    page.insert_text((x, y), text, fontsize=size, **options)


def write_lines(page: pymupdf.Page, text: str, *, x: float = MARGIN, top: float = MARGIN, size: float = 11) -> float:
    """Lines from the top; returns the y below the last."""
    y = top + size
    for line in text.split("\n"):
        write(page, x, y, line, size=size)
        y += size * LEADING
    return y


def new_document(pages: int = 1) -> pymupdf.Document:
    """An open document with blank A4 pages, for tests that draw by themselves."""
    document = pymupdf.open()
    for _ in range(pages):
        document.new_page(width=PAGE.width, height=PAGE.height)
    return document


def finish(document: pymupdf.Document, **options: object) -> bytes:
    """The document as bytes; it is closed."""
    data = document.tobytes(garbage=1, deflate=True, **options)
    document.close()
    return bytes(data)


def text_pdf(*pages: str) -> bytes:
    """One page for each text, lines as given."""
    document = new_document(len(pages))
    for page, text in zip(document, pages, strict=True):
        write_lines(page, text)
    return finish(document)


def draw_table(
    page: pymupdf.Page,
    rows: Rows,
    *,
    top: float = 120.0,
    left: float = MARGIN,
    widths: Sequence[float] = (),
    ruled: bool = True,
) -> float:
    """A table, first column to the left and the others to the right; returns the y below it."""
    widths = widths or [475.0 / len(rows[0])] * len(rows[0])
    edges = [left + sum(widths[:index]) for index in range(len(widths) + 1)]
    bottom = top + ROW_HEIGHT * len(rows)
    for number, row in enumerate(rows):
        _draw_row(page, row, edges, top + ROW_HEIGHT * number)
    if ruled:
        for x in edges:
            page.draw_line((x, top), (x, bottom))
        for number in range(len(rows) + 1):
            page.draw_line((left, top + ROW_HEIGHT * number), (edges[-1], top + ROW_HEIGHT * number))
    return bottom


def _draw_row(page: pymupdf.Page, row: Sequence[str], edges: Sequence[float], top: float) -> None:
    for column, text in enumerate(row):
        font, baseline = font_for(text), top + ROW_HEIGHT - 6
        x = edges[column] + 4
        if column:
            x = edges[column + 1] - 4 - pymupdf.get_text_length(text, fontname=font, fontsize=10)
        write(page, x, baseline, text, size=10)


def table_pdf(rows: Rows, *, ruled: bool = True, before: str = "", after: str = "", rotate: int = 0) -> bytes:
    """One page: lines, a table, lines. `rotate` stores the page turned, so that it looks the same as without."""
    document = new_document()
    page = document[0]
    bottom = draw_table(page, rows, top=write_lines(page, before) + 4 if before else 80.0, ruled=ruled)
    if after:
        write_lines(page, after, top=bottom + 14)
    return finish(_turned(document, rotate) if rotate else document)


def _turned(upright: pymupdf.Document, degrees: int) -> pymupdf.Document:
    """The same look, but drawn sideways and turned back by /Rotate."""
    turned = pymupdf.open()
    rect = upright[0].rect
    width, height = (rect.height, rect.width) if degrees % 180 else (rect.width, rect.height)
    page = turned.new_page(width=width, height=height)
    page.show_pdf_page(page.rect, upright, 0, rotate=degrees)
    page.set_rotation(degrees)
    return turned


def encrypted_pdf(user_password: str, text: str = "For your eyes only.") -> bytes:
    """AES-256; an empty user password leaves the file open to read."""
    document = new_document()
    write_lines(document[0], text)
    return finish(document, encryption=pymupdf.PDF_ENCRYPT_AES_256, owner_pw="owner", user_pw=user_password)


def scan_pdf(*texts: str, size: float = 18, dpi: int = 150) -> bytes:
    """Pages that are images of text, with no text layer."""
    source = pymupdf.open(stream=text_pdf(*texts) if size == 11 else _large_text(texts, size), filetype="pdf")
    document = new_document(len(texts))
    for page, drawn in zip(document, source, strict=True):
        page.insert_image(page.rect, pixmap=drawn.get_pixmap(dpi=dpi, colorspace=pymupdf.csGRAY))
    return finish(document)


def _large_text(texts: Sequence[str], size: float) -> bytes:
    document = new_document(len(texts))
    for page, text in zip(document, texts, strict=True):
        write_lines(page, text, size=size)
    return finish(document)


def half_written_pdf() -> bytes:
    """The first part of a file of six pages, as a copy in progress leaves it; MuPDF opens it after repair."""
    data = text_pdf(*(f"Page {number} of the report.\n" + "Some words. " * 6 for number in range(1, 7)))
    return data[: data.index(b"xref\n")]


def no_pages_pdf() -> bytes:
    """A well-formed file whose page tree is empty."""
    return _raw_pdf("<< /Type /Pages /Kids [] /Count 0 >>")


def page_loop_pdf() -> bytes:
    """A page tree that contains itself."""
    return _raw_pdf("<< /Type /Pages /Kids [2 0 R] /Count 3 >>")


def _raw_pdf(pages: str) -> bytes:
    bodies = ["<< /Type /Catalog /Pages 2 0 R >>", pages]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(bodies, start=1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    trailer = f"<< /Size {len(bodies) + 1} /Root 1 0 R >>"
    xref = f"xref\n0 {len(bodies) + 1}\n0000000000 65535 f \n{table}"
    return out + f"{xref}trailer\n{trailer}\nstartxref\n{len(out)}\n%%EOF\n".encode()
