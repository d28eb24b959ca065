"""Whether printed glyphs look like the characters that they are said to be.

A cheap first look, not a reading: small pictures of glyphs are compared with the same characters in fonts at hand. A
glyph speaks against its font if another character of the sample is clearly more like it than the claimed one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pymupdf

from docmill.types import BBox
from preprocess.packed import Glyph

Picture = np.ndarray[Any, np.dtype[np.float32]]

#: Pixels of a picture, enough to tell 3 from 8 and few enough to be quick.
_WIDE, _HIGH = 16, 24
_CJK: Final = 0x2E80
_LATIN_FONTS: Final = ("helv", "tiro", "hebo", "cour")
_CJK_FONTS: Final = ("china-s",)
_LATIN_END: Final = 0x250
_DIGITS: Final = "0123456789"
#: How much more like another character a glyph must be.
_CLEARLY: Final = 0.12
#: Pixels to a glyph's em when it is drawn.
_EM: Final = 32.0
_INK: Final = 0.5
#: A decorative font may have an odd glyph or two, but no odd digit.
_FEW_AGAINST: Final = 3
_SHARE_AGAINST: Final = 0.2
#: The median of honest fonts is 0.57 and more, of a brush script 0.26, of other characters than the printed 0.04.
_UNLIKE: Final = 0.18
#: Characters of one shape: none speaks against another.
_ALIKE: Final = (
    "0Oo",
    "1lI|i!",
    "cC",
    "sS",
    "vV",
    "wW",
    "xX",
    "zZ",
    "kK",
    "pP",
    "uU",
    "jJ",
    "5S",
    "8B",
    "2Z",
    "9g",
    "6b",
    "yY",
)


class Doubt(NamedTuple):
    """Glyphs that look like another character than they are said to be, the digits among them, all that were judged.

    `likeness` is that of the Chinese ones to the characters that they are said to be: too many look like none other.
    """

    against: int
    digits: int
    judged: int
    likeness: float = 1.0

    @property
    def is_serious(self) -> bool:
        """Whether it is worth reading some lines to know."""
        unlike = self.likeness < _UNLIKE
        return unlike or self.digits > 0 or self.against >= max(_FEW_AGAINST, _SHARE_AGAINST * self.judged)


def speak_against(drawn: Any, samples: Mapping[str, Glyph]) -> Doubt:
    """How the glyphs of a page (its display list) speak that are said to be these characters."""
    pictures = _pictures(drawn, samples)
    seen = {char: picture for char, picture in pictures.items() if picture is not None}
    candidates = dict.fromkeys([*seen, *(_DIGITS if any(char in _DIGITS for char in seen) else "")])
    names, shapes = _templates("".join(candidates))
    known = {char: picture for char, picture in seen.items() if char in names}
    if not known:
        return Doubt(0, 0, 0)
    likeness = np.stack([picture.ravel() for picture in known.values()]) @ shapes.T
    against = [char for row, char in zip(likeness, known, strict=True) if _is_other(char, row, names)]
    own = [row[names == char].max() for row, char in zip(likeness, known, strict=True) if ord(char) >= _CJK]
    alike = float(np.median(own)) if len(own) >= _FEW_AGAINST else 1.0
    return Doubt(len(against), sum(char in _DIGITS for char in against), len(known), alike)


def _is_other(char: str, likeness: Picture, names: np.ndarray[Any, Any]) -> bool:
    """Whether the glyph is clearly more like another character."""
    alike = np.isin(names, list({char}.union(*(group for group in _ALIKE if char in group))))
    own, others = likeness[names == char].max(), likeness[~alike]
    return bool(others.size and others.max() > own + _CLEARLY)


def _pictures(drawn: Any, samples: Mapping[str, Glyph]) -> dict[str, Picture | None]:
    """What is printed where each glyph stands; glyphs of one line are drawn in one go."""
    rows: dict[tuple[float, float, float], dict[str, Glyph]] = {}
    for char, glyph in samples.items():
        rows.setdefault((glyph.y0, glyph.y1, glyph.size), {})[char] = glyph
    pictures: dict[str, Picture | None] = {}
    for (top, bottom, size), glyphs in rows.items():
        left, right = min(glyph.x0 for glyph in glyphs.values()), max(glyph.x1 for glyph in glyphs.values())
        scale = _EM / max(1.0, size)
        strip = _drawn_in(drawn, BBox(left, top, right, bottom), scale)
        for char, glyph in glyphs.items():
            start, stop = round((glyph.x0 - left) * scale), round((glyph.x1 - left) * scale)
            pictures[char] = _cut(strip[:, start:stop])
    return pictures


def _drawn_in(drawn: Any, box: BBox, scale: float) -> Picture:
    """What is printed in the box, from 0 for black to 1 for white."""
    matrix = pymupdf.Matrix(scale, scale)
    pixmap = drawn.get_pixmap(matrix=matrix, colorspace=pymupdf.csGRAY, alpha=0, clip=pymupdf.Rect(box))
    if not pixmap.width or not pixmap.height:
        return np.ones((1, 1), np.float32)
    rows = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)[:, : pixmap.width]
    return rows.astype(np.float32) / 255.0


def _cut(gray: np.ndarray[Any, np.dtype[np.float32]]) -> Picture | None:
    """The ink of a gray picture (dark on light or light on dark) in a frame of fixed size, made comparable."""
    if not gray.size:
        return None
    low, high = float(gray.min()), float(gray.max())
    if high - low < 0.3:
        return None
    ink = (high - gray) / (high - low) if float(gray.mean()) > (low + high) / 2 else (gray - low) / (high - low)
    rows, columns = np.flatnonzero((ink > _INK).any(axis=1)), np.flatnonzero((ink > _INK).any(axis=0))
    if not rows.size or rows[-1] - rows[0] < 5:
        return None
    cut = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    slender = (cut.shape[1] / cut.shape[0]) ** 0.5
    framed = _resized(cut, _HIGH, max(4, min(_WIDE, round(_WIDE * slender))))
    picture = np.zeros((_HIGH, _WIDE), np.float32)
    left = (_WIDE - framed.shape[1]) // 2
    picture[:, left : left + framed.shape[1]] = framed
    picture -= picture.mean()
    return picture / max(1e-6, float(np.sqrt((picture**2).sum())))


def _resized(gray: np.ndarray[Any, Any], height: int, width: int) -> np.ndarray[Any, Any]:
    """The picture in another size, each pixel the mean of what it covers (or its nearest neighbour)."""
    return _along(_along(gray, height).T, width).T


def _along(gray: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    sums = np.vstack([np.zeros((1, gray.shape[1]), gray.dtype), np.cumsum(gray, axis=0)])
    edges = np.linspace(0, gray.shape[0], count + 1)
    whole = np.minimum(edges.astype(int), gray.shape[0] - 1)
    at: np.ndarray[Any, Any] = sums[whole] + (edges - whole)[:, None] * gray[whole]
    means: np.ndarray[Any, Any] = np.diff(at, axis=0) * (count / gray.shape[0])
    return means


_drawn: dict[tuple[str, str], Picture | None] = {}


def _templates(chars: str) -> tuple[np.ndarray[Any, Any], Picture]:
    """The characters in the fonts at hand that have them, a row for each; drawn once in a process."""
    wanted = [(char, name) for char in chars for name in _fonts_for(char)]
    for name in {name for key in wanted if key not in _drawn for name in key[1:]}:
        _draw([char for char, font in wanted if font == name and (char, name) not in _drawn], name)
    found = [(char, picture) for char, name in wanted if (picture := _drawn[char, name]) is not None]
    shapes = [picture.ravel() for _, picture in found]
    return np.array([char for char, _ in found]), np.stack(shapes) if shapes else np.zeros(
        (0, _HIGH * _WIDE), np.float32
    )


def _fonts_for(char: str) -> tuple[str, ...]:
    return _LATIN_FONTS if ord(char) < _LATIN_END else _CJK_FONTS if ord(char) >= _CJK else ()


def _draw(chars: Sequence[str], name: str) -> None:
    """Draw characters in a font, side by side on one page."""
    font, step = pymupdf.Font(name), 2 * _EM
    with pymupdf.open() as easel:
        page = easel.new_page(width=step * (len(chars) + 1), height=step)
        writer = pymupdf.TextWriter(page.rect)
        for place, char in enumerate(chars):
            if font.has_glyph(ord(char)):
                writer.append((step * place + 8, step * 0.7), char, font=font, fontsize=_EM)
        writer.write_text(page)
        drawn = page.get_displaylist()
        for place, char in enumerate(chars):
            box = BBox(step * place, 0, step * (place + 1), step)
            _drawn[char, name] = _cut(_drawn_in(drawn, box, 1.0)) if font.has_glyph(ord(char)) else None
