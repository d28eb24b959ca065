"""Pages without a text layer, read by rapidocr: its models come in its wheel, nothing is fetched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, Final

import numpy as np
import pymupdf

from docmill.types import BBox
from preprocess.glyphs import Line, line_of
from preprocess.join import is_cjk
from preprocess.packed import Glyph
from preprocess.scan import Pixels, Scan, find_rules

#: Enough for 8-point print; more costs time and reads no better.
DPI: Final = 150
#: A 14,400-point page would need gigabytes at that resolution: it is drawn smaller.
MOST_PIXELS: Final = 4_000_000
#: Below this the reading is noise.
LEAST_SCORE: Final = 0.5
#: The height at which a single line is read.
_LINE_PIXELS: Final = 48
#: A line this much higher than wide stands; a page read with less than this of certainty may be upside down.
_STANDS: Final = 1.5
_DOUBT: Final = 0.7
#: The gap between two lines that are found beside each other, in units of their height: a space.
_APART: Final = 0.24
#: Pixels of paper left around the ink, and how much darker ink is.
_MARGIN: Final = 40
_CONTRAST: Final = 80

_WIDE_IN_NUMBER: Final = re.compile(r"(?<=\d)[，．](?=\d)")
_NARROW: Final = {"，": ",", "．": "."}


def read_scan(page: pymupdf.Page) -> Scan:
    """What OCR sees on a page, turned so that the text is upright; each character's box is its share of its line's."""
    scale = min(DPI / 72, (MOST_PIXELS / max(1.0, abs(page.rect))) ** 0.5)
    pixels = _pixels(page, scale)
    turn, lines = max(_readings(pixels, scale), key=lambda reading: _weight(reading[1]))
    rules = find_rules(np.rot90(pixels, -turn // 90), scale) if lines else []
    return Scan(lines, rules, turn)


def _readings(pixels: Pixels, scale: float) -> Iterator[tuple[int, list[Line]]]:
    """The page as it is, and turned if it reads badly so: most boxes of words stand upright, or OCR is in doubt."""
    lines = _read(pixels, scale)
    yield 0, lines
    turns: tuple[int, ...] = ()
    if lines and sum(_stands(line) for line in lines) > len(lines) / 2:
        turns = (90, 270)
    elif lines and _weight(lines) < _DOUBT * sum(len(line.glyphs) for line in lines):
        turns = (180,)
    for turn in turns:
        yield turn, _read(np.ascontiguousarray(np.rot90(pixels, -turn // 90)), scale)


def _stands(line: Line) -> bool:
    """Whether the line is higher than it is wide."""
    return line.bbox.y1 - line.bbox.y0 > _STANDS * (line.bbox.x1 - line.bbox.x0)


def _weight(lines: Sequence[Line]) -> float:
    """How much OCR has surely read."""
    return sum(line.confidence**2 * len(line.glyphs) for line in lines if not _stands(line))


def _read(pixels: Pixels, scale: float) -> list[Line]:
    pixels, left, top = _inked(pixels)
    found = _engine()(pixels, use_det=True, use_cls=False)
    if found.boxes is None or found.txts is None:
        return []
    sure = [place for place, score in enumerate(found.scores) if score >= LEAST_SCORE and found.txts[place].strip()]
    boxes = _parted([_box(found.boxes[place] + np.array([left, top]), scale) for place in sure])
    return [
        replace(_line(box, _narrowed(found.txts[place].strip())), confidence=round(float(found.scores[place]), 3))
        for place, box in zip(sure, boxes, strict=True)
    ]


def _box(corners: np.ndarray[Any, Any], scale: float) -> BBox:
    """The upright box around the corners of a line, in points."""
    (x0, y0), (x1, y1) = corners.min(axis=0) / scale, corners.max(axis=0) / scale
    return BBox(float(x0), float(y0), float(x1), float(y1))


def _parted(boxes: Sequence[BBox]) -> list[BBox]:
    """The boxes of lines with a word's gap to their neighbour: the detector draws them wider than the print."""
    parted = list(boxes)
    for one, other in combinations(sorted(range(len(boxes)), key=lambda place: boxes[place].x0), 2):
        left, right = parted[one], parted[other]
        height = min(left.y1 - left.y0, right.y1 - right.y0)
        beside = min(left.y1, right.y1) - max(left.y0, right.y0) > height / 2
        if beside and left.x0 < right.x0 < left.x1 + _APART * height and left.x1 < right.x1:
            middle, half = (left.x1 + right.x0) / 2, _APART * height / 2
            parted[one] = left._replace(x1=max(left.x0, middle - half))
            parted[other] = right._replace(x0=min(right.x1, middle + half))
    return parted


def read_line(page: pymupdf.Page, box: BBox) -> tuple[str, float]:
    """(what OCR reads in the box of a printed line, how sure it is)."""
    scale = _LINE_PIXELS / max(1.0, box.y1 - box.y0)
    pixmap = page.get_pixmap(
        matrix=pymupdf.Matrix(scale, scale),
        colorspace=pymupdf.csRGB,
        alpha=False,
        clip=pymupdf.Rect(box.x0 - 2, box.y0 - 1, box.x1 + 2, box.y1 + 1),
    )
    found = _engine()(_array(pixmap), use_det=False, use_cls=False)
    return (found.txts[0], float(found.scores[0])) if found.txts else ("", 0.0)


@lru_cache(maxsize=1)
def _engine() -> Any:
    """Loaded when the first scan comes, once in a process. One thread: the machine has other work."""
    from rapidocr import RapidOCR

    threads = "EngineConfig.onnxruntime.{}_op_num_threads"
    return RapidOCR(params={"Global.log_level": "critical", threads.format("intra"): 1, threads.format("inter"): 1})


def _pixels(page: pymupdf.Page, scale: float) -> Pixels:
    return _array(page.get_pixmap(matrix=pymupdf.Matrix(scale, scale), colorspace=pymupdf.csRGB, alpha=False))


def _array(pixmap: pymupdf.Pixmap) -> Pixels:
    rows = np.frombuffer(pixmap.samples, np.uint8).reshape(pixmap.height, pixmap.stride)
    rgb = rows[:, : pixmap.width * 3].reshape(pixmap.height, pixmap.width, 3)
    return np.ascontiguousarray(rgb[:, :, ::-1])


def _inked(image: Pixels) -> tuple[Pixels, int, int]:
    """The part of the page that has ink, and where it starts: on a wide page the detector misses a short line."""
    dark = image.min(axis=2) < int(image.max()) - _CONTRAST
    rows, columns = np.flatnonzero(dark.any(axis=1)), np.flatnonzero(dark.any(axis=0))
    if not rows.size:
        return image, 0, 0
    top, left = max(0, int(rows[0]) - _MARGIN), max(0, int(columns[0]) - _MARGIN)
    return np.ascontiguousarray(image[top : rows[-1] + _MARGIN, left : columns[-1] + _MARGIN]), left, top


def _narrowed(text: str) -> str:
    """OCR writes the comma of a number wide beside Chinese; print has it narrow."""
    return _WIDE_IN_NUMBER.sub(lambda match: _NARROW[match[0]], text)


def _line(box: BBox, text: str) -> Line:
    """A line of text, each character with its share of the box."""
    widths = [_share(char) for char in text]
    step, edge, size = (box.x1 - box.x0) / sum(widths), box.x0, (box.y1 - box.y0) * 0.8
    glyphs = []
    for char, width in zip(text, widths, strict=True):
        stop = edge + step * width
        glyphs.append(Glyph(" " if char.isspace() else char, edge, box.y0, stop, box.y1, size))
        edge = stop
    return line_of(glyphs)


@cache
def _share(char: str) -> float:
    """The usual width of a character in units of the font size; Chinese is square."""
    return 1.0 if is_cjk(char) else max(0.2, float(_latin().glyph_advance(ord(char))))


@cache
def _latin() -> pymupdf.Font:
    return pymupdf.Font("helv")
