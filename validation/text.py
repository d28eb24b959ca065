"""Text as printed, made comparable.

`half` keeps the length, so that a place in its answer is the same place in the printed text. `fold` drops what a
comparison must not see (blanks, width, ligatures, kinds of dashes and quotes); `fold_places` leads back. Both look a
long text up in an array of code points: `str.translate` takes ten times as long on a text that is not all ASCII.
"""

from __future__ import annotations

import re
import unicodedata

import numpy as np
from numpy.typing import NDArray

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"
_SINGLE_QUOTES = "\u2018\u2019\u02bc\u2032\u00b4\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\uff02"
#: Blanks that printers put between groups of digits; an ordinary space stays one.
_JOINING_SPACES = "\u00a0\u2007\u2009\u202f"
JOINED = "\u00a0"

_HALF = (
    {0xFF01 + offset: 0x21 + offset for offset in range(0x5E)}
    | dict.fromkeys(map(ord, _DASHES), "-")
    | dict.fromkeys(map(ord, _SINGLE_QUOTES), "'")
    | dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"')
    | dict.fromkeys(map(ord, _JOINING_SPACES), JOINED)
    | {0x3000: " ", 0xFFE5: "¥", 0xFFE1: "£"}
)
#: What `half` changes: most texts have none of it, and a search is quicker than a translation.
_WIDE = re.compile(f"[{re.escape(''.join(map(chr, _HALF)))}]")

#: Above this length an array pays.
_LONG = 200
_POINTS = 0x110000
_UNKNOWN, _NONE, _SEVERAL = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


class _Fold(dict[int, str]):
    """One character to its comparable form, worked out when first met (`str.translate` looks it up in C)."""

    def __missing__(self, code: int) -> str:
        self[code] = folded = _fold_character(chr(code))
        return folded


def _fold_character(character: str) -> str:
    shown = half(character)
    # A superscript is a footnote mark: made a plain digit it would lengthen the number before it.
    if not unicodedata.decomposition(character).startswith("<super>"):
        shown = unicodedata.normalize("NFKD", shown)
    return "".join(part for part in shown if not part.isspace() and unicodedata.category(part) not in ("Cc", "Cf"))


_FOLD = _Fold()
_HALF_POINTS: NDArray[np.uint32] = np.arange(_POINTS, dtype=np.uint32)
for _code, _shown in _HALF.items():
    _HALF_POINTS[_code] = ord(_shown) if isinstance(_shown, str) else _shown
_FOLD_POINTS: NDArray[np.uint32] = np.full(_POINTS, _UNKNOWN, dtype=np.uint32)


def half(text: str) -> str:
    """Full-width forms, dashes and quotes as ASCII; of the same length as the text."""
    if text.isascii() or not _WIDE.search(text):
        return text
    if len(text) < _LONG:
        return text.translate(_HALF)
    return _text(_HALF_POINTS[_points(text)])


def fold(text: str, *, keep: str = "") -> str:
    """The text without what differs between two printings of the same words; `keep` is a character to leave alone."""
    if keep:
        return _fold_keeping(text, ord(keep))
    return text.translate(_FOLD)


def fold_places(text: str) -> list[int]:
    """For each character of `fold(text)`, the index in `text` that it comes from."""
    return [index for index, character in enumerate(text) for _ in _FOLD[ord(character)]]


def _fold_keeping(text: str, kept: int) -> str:
    points = _points(text)
    for code in set(points[_FOLD_POINTS[points] == _UNKNOWN].tolist()):
        shown = _FOLD[code]
        _FOLD_POINTS[code] = ord(shown) if len(shown) == 1 else _SEVERAL if shown else _NONE
    folded = np.where(points == kept, np.uint32(kept), _FOLD_POINTS[points])
    if (folded == _SEVERAL).any():
        return chr(kept).join(part.translate(_FOLD) for part in text.split(chr(kept)))
    return _text(folded[folded != _NONE])


def _points(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


def _text(points: NDArray[np.uint32]) -> str:
    return points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
