"""What a PDF's fonts claim their codes to mean, and which claims need a look at what is printed.

A text layer that lies does so by a font's /ToUnicode: wrong, or missing where nothing else tells. Most fonts cannot lie
unseen: a standard encoding, or a map in which digits and letters follow each other as in every font. The others are
looked at once in a document (see `layer.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pymupdf

from preprocess.pdf import MUPDF_ERRORS, raise_if_out_of_memory

#: Two subsets of a font are two fonts.
pymupdf.TOOLS.set_subset_fontnames(True)

#: MuPDF cuts the names of fonts in its text to so many characters.
_NAME_LENGTH: Final = 31

_SECTION: Final = re.compile(rb"begin(bfchar|bfrange)(.*?)end\1", re.DOTALL)
_CHAR: Final = re.compile(rb"<([0-9a-fA-F]+)>\s*<([0-9a-fA-F]+)>")
_RANGE: Final = re.compile(rb"<([0-9a-fA-F]+)>\s*<([0-9a-fA-F]+)>\s*(<[0-9a-fA-F]+>|\[[^\]]*\])")
_HEX: Final = re.compile(rb"<([0-9a-fA-F]+)>")
_DIFFERENCE: Final = re.compile(r"(\d+)|/([^\s/\[\]()<>]+)")
_LONGEST_RANGE: Final = 0x10000
_ENCODINGS: Final = {"WinAnsiEncoding": "cp1252", "MacRomanEncoding": "mac-roman", "StandardEncoding": "ascii"}
_STANDARD_14: Final = re.compile(r"^(Helvetica|Times|Courier|Arial|Symbol|ZapfDingbats)\b")
_RUNS: Final = ("0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
#: Characters that are known by nothing but their shape come from here on: a map of them is looked at.
_CJK: Final = 0x2E80


@dataclass(frozen=True, slots=True)
class FontFacts:
    """A font's claims: `look` is how many of its glyphs must be looked at to believe them; `recovered` are characters
    that its map makes control characters and its encoding tells (a minus that is mapped to U+0003)."""

    look: int
    recovered: frozenset[str] = frozenset()


#: Nothing but the map tells, but it is as orderly as fonts are: if it lies, then of every glyph.
_GLANCE: Final = 6
#: The map is out of order, contradicts the encoding, or there is none.
_CLOSE_LOOK: Final = 18
#: The share of neighbours that ascend in a map whose order is that of a font.
_ORDERLY: Final = 0.9
UNKNOWN_FONT: Final = FontFacts(_CLOSE_LOOK)


def facts_of_page(page: pymupdf.Page, names: Collection[str]) -> dict[str, FontFacts]:
    """The facts of fonts by the names that MuPDF's text has for them; the worse where two share one.

    A font that the page's resources call otherwise is one of which nothing is known.
    """
    keys = {_key(name) for name in names}
    facts: dict[str, FontFacts] = {}
    for xref, _, kind, name, _, encoding, *_ in page.get_fonts(full=False):
        key = _key(name)
        if key in keys:
            found = _facts(page.parent, xref, kind, encoding) if xref else UNKNOWN_FONT
            other = facts.get(key, found)
            facts[key] = FontFacts(max(found.look, other.look), found.recovered | other.recovered)
    return {name: facts.get(_key(name), UNKNOWN_FONT) for name in names}


def _key(name: str) -> str:
    """A font's name as it is spelt alike in its program and in its dictionary."""
    return "".join(char for char in name[:_NAME_LENGTH] if char.isalnum())


def _facts(document: pymupdf.Document, xref: int, kind: str, encoding: str) -> FontFacts:
    """What is odd about a font's dictionary; what cannot be read is doubtful."""
    try:
        claims = _to_unicode(document, xref)
        if kind == "Type0":
            return FontFacts(_look_of_composite(claims, encoding))
        return _simple(document, xref, kind, claims)
    except MUPDF_ERRORS as error:
        raise_if_out_of_memory(error)
        return UNKNOWN_FONT


def _look_of_composite(claims: Mapping[int, str], encoding: str) -> int:
    """Codes of a composite font are numbers of glyphs: nothing but its map tells their meaning."""
    if not claims:
        return _CLOSE_LOOK if encoding.startswith("Identity") else 0
    return _GLANCE if _in_order(claims) and _ascends(claims) else _CLOSE_LOOK


def _in_order(claims: Mapping[int, str]) -> bool:
    """Whether digits, and letters, follow each other as they do in every font that is not renumbered."""
    codes = {text: code for code, text in claims.items()}
    return (
        all(len({codes[char] - place for place, char in enumerate(run) if char in codes}) <= 1 for run in _RUNS)
        and len(codes) > len(claims) / 2
    )


def _ascends(claims: Mapping[int, str]) -> bool:
    """Whether Chinese characters follow each other as in Unicode, give or take a few."""
    chars = [ord(text[0]) for _, text in sorted(claims.items()) if ord(text[0]) >= _CJK]
    return sum(one < other for one, other in pairwise(chars)) >= _ORDERLY * (len(chars) - 1)


def _simple(document: pymupdf.Document, xref: int, kind: str, claims: Mapping[int, str]) -> FontFacts:
    """A font of one-byte codes: its encoding and its map must say the same of letters and digits."""
    base = _base_encoding(document, xref, kind)
    if not claims:
        return FontFacts(0 if base else _CLOSE_LOOK)
    other = base or {code: chr(code) for code in range(0x20, 0x7F)}
    wrong = [code for code, text in claims.items() if _contradict(text, other.get(code, text))]
    recovered = frozenset(base[code] for code, text in claims.items() if text < " " and base.get(code, " ") > " ")
    unseen = kind == "Type3" or any(ord(text[0]) >= _CJK for text in claims.values())
    return FontFacts(_CLOSE_LOOK if len(wrong) > 1 or unseen else 0 if base else _GLANCE, recovered)


def _contradict(one: str, other: str) -> bool:
    return one != other and other.isascii() and other.isalnum() and (one > " ")


def _base_encoding(document: pymupdf.Document, xref: int, kind: str) -> dict[int, str]:
    """The meaning of codes by the font's own encoding; empty if it has none that is known."""
    what, value = document.xref_get_key(xref, "Encoding")
    name, differences = value.strip("/"), ""
    if what in ("xref", "dict"):
        where = int(value.split()[0]) if what == "xref" else xref
        prefix = "" if what == "xref" else "Encoding/"
        name = document.xref_get_key(where, f"{prefix}BaseEncoding")[1].strip("/")
        differences = document.xref_get_key(where, f"{prefix}Differences")[1]
    if name not in _ENCODINGS:
        font = document.xref_get_key(xref, "BaseFont")[1].strip("/")
        name = "StandardEncoding" if kind == "Type1" and (differences or _STANDARD_14.match(font)) else name
    codec = _ENCODINGS.get(name)
    codes = {} if codec is None else {code: bytes([code]).decode(codec, "replace") for code in range(0x20, 0x100)}
    return codes | dict(_named(differences)) if codes or kind != "Type3" else {}


def _named(differences: str) -> Iterator[tuple[int, str]]:
    """The codes that an encoding gives glyphs by name, where the name is one that everybody knows."""
    code = 0
    for number, name in _DIFFERENCE.findall(differences):
        if number:
            code = int(number)
            continue
        known = pymupdf.glyph_name_to_unicode(name)
        if known and known != 0xFFFD:
            yield code, chr(known)
        code += 1


def _to_unicode(document: pymupdf.Document, xref: int) -> dict[int, str]:
    """The font's /ToUnicode as code → text."""
    what, value = document.xref_get_key(xref, "ToUnicode")
    stream = document.xref_stream(int(value.split()[0])) if what == "xref" else None
    claims: dict[int, str] = {}
    for kind, body in _SECTION.findall(stream or b""):
        claims.update(_chars(body) if kind == b"bfchar" else _ranges(body))
    return claims


def _chars(body: bytes) -> Iterator[tuple[int, str]]:
    return ((int(code, 16), text) for code, to in _CHAR.findall(body) if (text := _text(to)))


def _ranges(body: bytes) -> Iterator[tuple[int, str]]:
    for low, high, to in _RANGE.findall(body):
        first, last = int(low, 16), min(int(high, 16), int(low, 16) + _LONGEST_RANGE)
        texts = [_text(text) for text in _HEX.findall(to)]
        if to.startswith(b"["):
            yield from ((first + step, text) for step, text in enumerate(texts) if text)
        elif texts and texts[0]:
            head, tail = texts[0][:-1], ord(texts[0][-1])
            yield from ((code, head + chr(min(0x10FFFF, tail + code - first))) for code in range(first, last + 1))


def _text(digits: bytes) -> str:
    even = digits if len(digits) % 2 == 0 else digits + b"0"
    raw = bytes.fromhex(even.decode())
    return raw.decode("utf-16-be", "replace") if len(raw) > 1 else chr(raw[0])
