"""Whether a page's text layer says what is printed: fonts under doubt are looked at, and some of their lines read.

Doubt is cheap and seldom (`fonts.py`, `shapes.py`), proof is by OCR, and each font of a document is judged once.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any, Final

import pymupdf

from preprocess.fonts import FontFacts, facts_of_page
from preprocess.glyphs import UNKNOWN, Line
from preprocess.ocr import read_line
from preprocess.packed import Glyph
from preprocess.shapes import speak_against

#: Fewer glyphs than this tell nothing.
FEWEST: Final = 3
#: Lines of a font that are read, up to so many glyphs of each.
PROOF_LINES: Final = 4
PROOF_GLYPHS: Final = 40
#: A reading that is less sure than this proves nothing.
SURE: Final = 0.8
#: Readings of an honest layer agree with it to 0.95 and more; two digits that are swapped leave 0.8 of the digits.
AGREES: Final = 0.7
DIGITS_AGREE: Final = 0.87
_FEW_TELL: Final = 3
#: A font that lies matters from this share of a page's text on.
MATTERS: Final = 0.1
#: From this share of characters without a meaning on, a page cannot be read by its layer.
UNREADABLE_SHARE: Final = 0.1
UNREADABLE_LEAST: Final = 5
#: With more letters than this of a script that OCR does not know, it would read less than there is.
OTHER_SCRIPTS: Final = 0.3
_LATIN_END: Final = 0x250
_CJK_START: Final = 0x2E80


class Layer:
    """What is known of a document's fonts, page after page."""

    def __init__(self) -> None:
        self._named: dict[str, FontFacts] = {}
        self._honest: set[str] = set()
        self._lying: set[str] = set()

    def lies(self, page: pymupdf.Page, lines: Sequence[Line]) -> bool:
        """Whether what the page's lines say, or their figures, is another text than the printed one."""
        fonts = {font for line in lines for font, _ in line.fonts}
        if new := fonts - self._named.keys():
            self._named |= facts_of_page(page, new)
        print_of = cache(page.get_displaylist)
        for font in sorted(fonts - self._honest - self._lying):
            self._judge(font, page, lines, print_of)
        return any(_matters(font, lines) for font in fonts & self._lying)

    def _judge(self, font: str, page: pymupdf.Page, lines: Sequence[Line], print_of: Callable[[], Any]) -> None:
        """Put the font with the honest or the lying ones; with neither, if the page has too little of it to tell."""
        if not self._named[font].look:
            self._honest.add(font)
            return
        samples = _samples(font, lines, self._named[font].look)
        if len(samples) < FEWEST:
            return
        doubt = speak_against(print_of(), samples)
        lying = doubt.is_serious and _is_disproved(font, page, lines, by_digits=doubt.digits > 0)
        (self._lying if lying else self._honest).add(font)

    def unreliable(self, lines: Sequence[Line]) -> list[str]:
        """Numbers that a character touches of which the layer says nothing: it may be their sign."""
        found = []
        for line in lines:
            odd = {UNKNOWN}.union(*(self._named[font].recovered for font, _ in line.fonts if font in self._named))
            if len(odd) > 1 or UNKNOWN in line.text:
                found += re.findall(
                    rf"[{re.escape(''.join(sorted(odd)))}]\d[\d.,]*|\d[\d.,]*{UNKNOWN}[\d.,]*", line.text
                )
        return found


def is_unreadable(lines: Sequence[Line]) -> bool:
    """Whether so many characters have no meaning that the printed page must be read instead."""
    text = "".join(line.text for line in lines)
    unknown = text.count(UNKNOWN)
    return unknown >= UNREADABLE_LEAST and unknown >= UNREADABLE_SHARE * len(text) and _ocr_can_read(text)


def _ocr_can_read(text: str) -> bool:
    """Whether the letters of a text are, but for a few, of the scripts that OCR knows: Latin and Chinese."""
    letters = [char for char in text if char.isalpha()]
    other = sum(_LATIN_END <= ord(char) < _CJK_START for char in letters)
    return other <= OTHER_SCRIPTS * len(letters)


def _set_in(font: str, line: Line) -> Iterator[Glyph]:
    """The line's glyphs of the font."""
    start = 0
    for name, count in line.fonts:
        if name == font:
            yield from line.glyphs[start : start + count]
        start += count


def _matters(font: str, lines: Sequence[Line]) -> bool:
    """Whether a page says much in the font, or figures; OCR cannot read a line in fancy script, and need not."""
    own = "".join(glyph.char for line in lines for glyph in _set_in(font, line))
    share = len(own) / max(1, sum(len(line.glyphs) for line in lines))
    return share >= MATTERS or sum(map(str.isdigit, own)) >= _FEW_TELL


def _samples(font: str, lines: Sequence[Line], count: int) -> dict[str, Glyph]:
    """Different characters of the font where they stand, of few lines; half of them digits if there are."""
    digits: dict[str, Glyph] = {}
    others: dict[str, Glyph] = {}
    own = [glyphs for line in lines if line.upright and (glyphs := list(_set_in(font, line)))]
    for glyphs in sorted(own, key=lambda glyphs: -sum(glyph.char.isdigit() for glyph in glyphs)):
        for glyph in glyphs:
            if glyph.char.isalnum():
                (digits if glyph.char.isdigit() else others).setdefault(glyph.char, glyph)
        if len(digits) + len(others) >= 2 * count:
            break
    most = max(count // 2, count - len(others))
    picked = [*list(digits.items())[:most], *others.items()]
    return dict(picked[:count])


def _is_disproved(font: str, page: pymupdf.Page, lines: Sequence[Line], *, by_digits: bool) -> bool:
    """Whether OCR of some lines of the font surely reads something else."""
    agreements = []
    for line in _telling_lines(font, lines, by_digits=by_digits):
        text, score = read_line(page, line.bbox)
        if score >= SURE:
            agreements.append(agreement(line.text, text))
    if not agreements:
        return False
    letters, digits = (sum(values) / len(agreements) for values in zip(*agreements, strict=True))
    return bool(letters < AGREES or digits < DIGITS_AGREE)


def _telling_lines(font: str, lines: Sequence[Line], *, by_digits: bool) -> list[Line]:
    """Lines of the font to read, those with the most digits first, or those with the most letters."""
    tells = str.isdigit if by_digits else str.isalpha
    own = [line.part(line.glyphs[:PROOF_GLYPHS]) for line in lines if line.upright and any(_set_in(font, line))]
    own.sort(key=lambda line: (-sum(map(tells, line.text)), -len(line.text)))
    return own[:PROOF_LINES]


def agreement(claimed: str, seen: str) -> tuple[float, float]:
    """How far two readings of a line are the same, from 0 to 1: their letters, and their digits."""
    one, other = _plain(claimed), _plain(seen)
    letters = _ratio(*("".join(char for char in text if not char.isdigit()) for text in (one, other)))
    digits = _ratio(*("".join(char for char in text if char.isdigit()) for text in (one, other)))
    return letters if _ocr_can_read(claimed) else 1.0, digits


def _ratio(one: str, other: str) -> float:
    tell = min(len(one), len(other)) >= _FEW_TELL
    return SequenceMatcher(None, one, other, autojunk=False).ratio() if tell else 1.0


def _plain(text: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
