"""PDFs whose text layer lies: a font's /ToUnicode says what the test wants it to say."""

from __future__ import annotations

from collections.abc import Mapping

import pymupdf

LATIN = ("helv", "tiro", "cour")
CHINESE = "cjk"
_HEAD = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def "
    b"1 begincodespacerange <%s><%s> endcodespacerange %d beginbfchar\n"
)
_TAIL = b"\nendbfchar endcmap end end"


def mapped_pdf(
    text: str, font: str, other: Mapping[str, str] | None = None, *, keep_map: bool = True, simple: bool = False
) -> bytes:
    """Lines of text whose layer says `other[char]` for a char; `simple` uses one-byte codes in WinAnsi encoding."""
    document = pymupdf.open()
    page = document.new_page()
    name = font
    if not simple:
        name = "F0"
        page.insert_font(fontname=name, fontbuffer=pymupdf.Font(font).buffer)
    for number, line in enumerate(text.split("\n")):
        page.insert_text((60, 80 + 20 * number), line, fontname=name, fontsize=11)
    xref = page.get_fonts()[0][0]
    document.xref_set_key(xref, "ToUnicode", "null")
    if keep_map:
        document.xref_set_key(xref, "ToUnicode", f"{_map(document, text, font, other or {}, simple=simple)} 0 R")
    return bytes(document.tobytes())


def _map(document: pymupdf.Document, text: str, font: str, other: Mapping[str, str], *, simple: bool) -> int:
    """A new /ToUnicode stream; returns its number."""
    known, width = pymupdf.Font(font), 2 if simple else 4
    codes = {char: ord(char) if simple else known.has_glyph(ord(char)) for char in sorted({*text} - {"\n"})}
    lines = [b"<%0*x><%04x>" % (width, code, ord(other.get(char, char))) for char, code in codes.items()]
    number = int(document.get_new_xref())
    document.update_object(number, "<<>>")
    document.update_stream(number, _HEAD % (b"0" * width, b"f" * width, len(lines)) + b"\n".join(lines) + _TAIL)
    return number
