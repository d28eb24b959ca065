"""A page's characters, each with its box as the page is seen: the one stream that text and tables are made of.

Visible text is kept apart from what a reader does not see (invisible render mode, white on white, tiny, off the page)
and from marks printed across the page (a watermark).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import Any, Final

import numpy as np
import pymupdf

from docmill.types import BBox
from preprocess.bidi import RTL, in_logical_order
from preprocess.packed import Glyph, Glyphs

#: Ligatures as printed (they are taken apart here), no images, unknown characters as U+FFFD rather than as their code.
FLAGS: Final = pymupdf.TEXT_PRESERVE_WHITESPACE | pymupdf.TEXT_PRESERVE_LIGATURES

UNKNOWN: Final = "�"
_SOFT_HYPHEN: Final = 0xAD
_NO_WIDTH: Final = 0.1
_FILLED_OR_STROKED: Final = 16 | 32
_BOLD: Final = 16
#: The other part of a unit vector up to which a line is level, or sideways, and not across the page.
_LEVEL: Final = 0.17
#: The share of characters that makes their direction the page's.
_MOSTLY: Final = 0.6

#: In units of the font size: a font that claims more height for its characters (Symbol does) is not believed.
TALL: Final = 1.6
#: Points. Nobody reads text below this; it is there for machines.
TINY: Final = 2.0
#: Channel values from here on are white to the eye.
WHITE: Final = 0xF0
#: From here on a text is a background; so is one that is more than half transparent.
PALE: Final = 0xB0
HALF_CLEAR: Final = 128

_DROPPED: Final = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
#: What `clean` may change.
_ODD: Final = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u2064\u3000\ud800-\uf8ff\ufeff\ufffd-\uffff"
    + "".join(chr(plane << 16 | end) for plane in range(1, 17) for end in (0xFFFE, 0xFFFF))
    + "]"
)
#: Ligatures, and the shapes that Hebrew and Arabic letters take in a word.
_FORMS: Final = re.compile("[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufdff\ufe70-\ufefc]")
_BULLETS: Final = dict.fromkeys((0xF0B7, 0xF0A7, 0xF06C, 0xF0D8, 0xF0FC), "•")


@dataclass(frozen=True, slots=True)
class Line:
    """Characters that the PDF sets in one go, in their order; `upright` reads from left to right as seen.

    `fonts` has each font's name with the number of its glyphs, in the glyphs' order. `confidence` is that of OCR.
    """

    glyphs: Glyphs
    bbox: BBox
    size: float
    bold: bool = False
    upright: bool = True
    rtl: bool = False
    pale: bool = False
    fonts: tuple[tuple[str, int], ...] = ()
    confidence: float = 1.0

    @property
    def text(self) -> str:
        return self.glyphs.text

    def part(self, glyphs: Iterable[Glyph]) -> Line:
        """The line with some of its glyphs only."""
        line = line_of(glyphs, bold=self.bold, upright=self.upright, rtl=self.rtl)
        return line if self.confidence == 1.0 else replace(line, confidence=self.confidence)


@dataclass(slots=True)
class Reading:
    """The lines of a page by who sees them; `off_page` may belong to a table that runs over the edge."""

    visible: list[Line] = field(default_factory=list)
    invisible: list[Line] = field(default_factory=list)
    off_page: list[Line] = field(default_factory=list)
    marks: list[Line] = field(default_factory=list)
    turns: Counter[int] = field(default_factory=Counter)

    @property
    def turn(self) -> int:
        """The turn (see `turn.py`) that most of the page's characters need to be upright; usually none."""
        turn, count = self.turns.most_common(1)[0] if self.turns else (0, 0)
        return turn if count >= _MOSTLY * self.turns.total() else 0

    @property
    def unknown(self) -> int:
        return sum(line.text.count(UNKNOWN) for line in self.visible)


def line_of(glyphs: Iterable[Glyph], *, bold: bool = False, upright: bool = True, rtl: bool = False) -> Line:
    """A line with the box and the size of its glyphs."""
    packed = Glyphs.of(glyphs)
    return Line(packed, packed.bbox, float(packed.sizes.max()), bold, upright, rtl)


def read_glyphs(page: pymupdf.Page) -> Reading:
    """All characters of a page, sorted by who sees them."""
    reading, paper = Reading(), _Paper(page)
    printed: dict[str, list[BBox]] = {}
    for block in page.get_text("rawdict", flags=FLAGS)["blocks"]:
        for raw in block.get("lines", ()):
            _sort_line(raw, paper, reading, printed)
    _set_marks_apart(reading)
    return reading


def _sort_line(raw: dict[str, Any], paper: _Paper, reading: Reading, printed: dict[str, list[BBox]]) -> None:
    """The parts of a line that are seen, and those that are not, into their drawers."""
    turn, diagonal = _direction(raw["dir"], paper)
    for hidden, spans in _by_visibility(raw["spans"], paper):
        line = _line(spans, paper, upright=turn == 0)
        if line is not None and not (hidden or diagonal or raw["wmode"]):
            reading.turns[turn] += len(line.glyphs)
        if line is not None and not _is_second_print(line, printed, hidden=hidden):
            _drawer(line, diagonal=diagonal, hidden=hidden, paper=paper, reading=reading).append(line)


def _set_marks_apart(reading: Reading) -> None:
    """A pale text that is printed over other text is a watermark, wherever else on the page it is repeated."""
    pale = [line for line in reading.visible if line.pale]
    dark = [line for line in reading.visible if not line.pale] if pale else []
    marks = {line.text for line in pale if any(_cross(line.bbox, other.bbox) for other in dark)}
    if marks:
        reading.marks.extend(line for line in pale if line.text in marks)
        reading.visible = [line for line in reading.visible if not (line.pale and line.text in marks)]


def _cross(one: BBox, other: BBox) -> bool:
    return min(one.x1, other.x1) > max(one.x0, other.x0) and min(one.y1, other.y1) > max(one.y0, other.y0)


def _line(spans: list[dict[str, Any]], paper: _Paper, *, upright: bool) -> Line | None:
    parts = [_glyphs(span, paper) for span in spans]
    glyphs = Glyphs.joined(parts)
    if not glyphs.text.strip(" "):
        return None
    bold = sum(len(span["chars"]) for span in spans if span["flags"] & _BOLD) * 2 > len(glyphs)
    rtl = False
    if upright and RTL.search(glyphs.text):
        glyphs, rtl = in_logical_order(glyphs)
    fonts = tuple((span["font"], len(part)) for span, part in zip(spans, parts, strict=True))
    pale = all(_is_pale(span) for span in spans)
    return replace(line_of(glyphs, bold=bold, upright=upright, rtl=rtl), pale=pale, fonts=fonts)


def _is_pale(span: dict[str, Any]) -> bool:
    color = span["color"]
    return bool(min(color >> 16 & 0xFF, color >> 8 & 0xFF, color & 0xFF) >= PALE or span["alpha"] < HALF_CLEAR)


def _is_second_print(line: Line, printed: dict[str, list[BBox]], *, hidden: bool) -> bool:
    """Whether the same text is seen on the same place already: fake bold, or a second layer."""
    others, shift = printed.setdefault(line.text, []), 0.15 * line.size
    for other in others:
        if abs(other.x0 - line.bbox.x0) < shift and abs(other.y0 - line.bbox.y0) < shift:
            return True
    if not hidden:
        others.append(line.bbox)
    return False


def _drawer(line: Line, *, diagonal: bool, hidden: bool, paper: _Paper, reading: Reading) -> list[Line]:
    if hidden:
        return reading.invisible
    if not paper.holds(line.bbox):
        return reading.off_page
    return reading.marks if diagonal else reading.visible


def _by_visibility(spans: list[dict[str, Any]], paper: _Paper) -> Iterator[tuple[bool, list[dict[str, Any]]]]:
    """Runs of spans that are all hidden or all visible."""
    run: list[dict[str, Any]] = []
    state = False
    for span in spans:
        hidden = _is_hidden(span, paper)
        if run and hidden != state:
            yield state, run
            run = []
        state = hidden
        run.append(span)
    if run:
        yield state, run


def _is_hidden(span: dict[str, Any], paper: _Paper) -> bool:
    if not span["char_flags"] & _FILLED_OR_STROKED or span["alpha"] == 0:
        return True
    if span["size"] < TINY and min(span["bbox"][3] - span["bbox"][1], span["bbox"][2] - span["bbox"][0]) < TINY:
        return True
    color = span["color"]
    white = min(color >> 16 & 0xFF, color >> 8 & 0xFF, color & 0xFF) >= WHITE
    return white and paper.is_white(span["bbox"])


def _direction(raw: tuple[float, float], paper: _Paper) -> tuple[int, bool]:
    """(the turn that makes it upright, neither level nor sideways) of a writing direction, as the page is seen."""
    a, b, c, d = paper.turning
    x, y = raw[0] * a + raw[1] * c, raw[0] * b + raw[1] * d
    if abs(x) >= abs(y):
        return 0 if x > 0 else 180, abs(y) > _LEVEL
    return 90 if y < 0 else 270, abs(x) > _LEVEL


def _glyphs(span: dict[str, Any], paper: _Paper) -> Glyphs:
    """The characters of a span; one that is printed twice on the spot (fake bold) is kept once."""
    size, chars = float(span["size"]), span["chars"]
    text = "".join([raw["c"] for raw in chars])
    tall = span["bbox"][3] - span["bbox"][1] > TALL * size
    boxes = [_on_line(raw, size) if tall else raw["bbox"] for raw in chars]
    if paper.rotated:
        boxes = [tuple(pymupdf.Rect(box) * paper.matrix) for box in boxes]
    edges = np.fromiter(chain.from_iterable(boxes), np.float64, 4 * len(boxes)).reshape(-1, 4)
    glyphs = Glyphs(text, edges, np.full(len(text), size))
    if _ODD.search(text):
        glyphs = _cleaned(glyphs)
    glyphs = _without_doubles(glyphs, 0.15 * size)
    return _taken_apart(glyphs) if _FORMS.search(glyphs.text) else glyphs


def _cleaned(glyphs: Glyphs) -> Glyphs:
    """The characters as they may be stored, without those that say nothing."""
    texts = [clean(char) for char in glyphs.text]
    widths = glyphs.edges[:, 2] - glyphs.edges[:, 0]
    kept = [
        place
        for place, (char, width) in enumerate(zip(texts, widths.tolist(), strict=True))
        if char and not (char == UNKNOWN and width <= _NO_WIDTH)
    ]
    return Glyphs("".join([texts[place] for place in kept]), glyphs.edges[kept], glyphs.sizes[kept])


def _taken_apart(glyphs: Glyphs) -> Glyphs:
    """Ligatures as their letters, each with the box of the whole; letters in the shape that they have in no word."""
    texts = [unicodedata.normalize("NFKC", c).strip() if _FORMS.match(c) else c for c in glyphs.text]
    places = [place for place, text in enumerate(texts) for _ in text]
    return Glyphs("".join(texts), glyphs.edges[places], glyphs.sizes[places])


def _without_doubles(glyphs: Glyphs, shift: float) -> Glyphs:
    """Without the characters that stand where the same one stands already."""
    starts, text = glyphs.edges[:, :2], glyphs.text
    close = np.abs(starts[1:, 0] - starts[:-1, 0]) < shift
    if not close.any() or not (np.abs(starts[1:, 1] - starts[:-1, 1])[close] < shift).any():
        return glyphs
    kept, last = [0], 0
    for place in range(1, len(text)):
        x, y = np.abs(starts[place] - starts[last])
        if text[place] != text[last] or x >= shift or y >= shift:
            kept.append(place)
            last = place
    return glyphs.picked(kept)


def _on_line(raw: dict[str, Any], size: float) -> tuple[float, float, float, float]:
    """The box of a level character as high as its size, where the font claims a height that other lines stand in."""
    box, line = raw["bbox"], raw["origin"][1]
    if not box[1] < line < box[3]:
        return (box[0], box[1], box[2], box[3])
    return box[0], line - 0.8 * size, box[2], line + 0.2 * size


@cache
def clean(char: str) -> str:
    """The character as it may be stored: no control character, unknown glyphs as U+FFFD, spaces plain."""
    code = ord(char[0])
    if char.isspace():
        return " "
    if code in _BULLETS:
        return _BULLETS[code]
    if code == _SOFT_HYPHEN:
        return "-"
    return UNKNOWN if _is_unreadable(code) else _DROPPED.sub("", char)


def _is_unreadable(code: int) -> bool:
    """Control characters, surrogates, private use, non-characters."""
    return code < 0x20 or 0x7F <= code < 0xA0 or 0xD800 <= code < 0xF900 or code & 0xFFFE == 0xFFFE


class _Paper:
    """The page as an eye sees it, drawn only when white text asks for it."""

    #: Enough pixels to see a dark field behind a word, few enough to be free.
    _PIXELS = 1_000_000

    def __init__(self, page: pymupdf.Page) -> None:
        self._page, self._rect = page, page.rect
        self.matrix, self.rotated = page.rotation_matrix, bool(page.rotation)
        self.turning = (self.matrix.a, self.matrix.b, self.matrix.c, self.matrix.d)
        self._image: np.ndarray[Any, np.dtype[np.uint8]] | None = None
        self._scale = min(1.0, (self._PIXELS / max(1.0, abs(self._rect))) ** 0.5)

    def holds(self, box: BBox) -> bool:
        """Whether the middle of the box is on the page."""
        x, y, rect = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2, self._rect
        return bool(rect.x0 <= x <= rect.x1 and rect.y0 <= y <= rect.y1)

    def is_white(self, box: tuple[float, float, float, float]) -> bool:
        """Whether nothing but white is printed in the box (given before /Rotate)."""
        seen = pymupdf.Rect(box) * self.matrix
        x0, y0, x1, y1 = (int(edge * self._scale) for edge in seen)
        field_ = self._drawn()[max(0, y0) : y1 + 1, max(0, x0) : x1 + 1]
        return field_.size == 0 or int(field_.min()) >= WHITE

    def _drawn(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        if self._image is None:
            pixels = self._page.get_pixmap(
                matrix=pymupdf.Matrix(self._scale, self._scale), colorspace=pymupdf.csGRAY, alpha=False
            )
            rows = np.frombuffer(pixels.samples, np.uint8).reshape(pixels.height, pixels.stride)
            self._image = rows[:, : pixels.width]
        return self._image
