"""Draws the sample pages: headings, paragraphs, label-value grids and tables, on as many pages as they need.

Same input, same bytes: nothing here reads a clock, draws a random number or depends on the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

import pymupdf

A4 = (595.0, 842.0)
A4_LANDSCAPE = (842.0, 595.0)
MARGIN = 56.0
#: Every sample carries this date, so that its bytes do not change with the day on which it was made.
MADE_ON = "D:20251110090000+08'00'"
#: A line of Chinese text does not begin with one of these.
NOT_FIRST = "，。；：、！？）》」”%％"

PAD_X, PAD_Y = 4.0, 3.0
GREY = (0.88, 0.90, 0.93)


@dataclass(frozen=True)
class Faces:
    """The fonts of a language; Chinese has one weight only, so its headings stand out by size."""

    body: str
    strong: str


FACES = {"en": Faces("helv", "hebo"), "zh": Faces("china-s", "china-s")}


@dataclass(frozen=True)
class Span:
    """A header cell over several columns."""

    text: str
    columns: int


Row = Sequence["str | Span"]


@dataclass(frozen=True)
class Grid:
    """How a table is drawn: `rules` is "grid", "three" (three-line table) or "none"; `align` has l, r or c a column."""

    widths: tuple[float, ...]
    align: str
    rules: str = "grid"
    header_rows: int = 1
    size: float = 9.0
    strong_last: bool = True


@cache
def font(name: str) -> pymupdf.Font:
    return pymupdf.Font(name)


@cache
def _advance_of(character: str, name: str) -> float:
    return font(name).text_length(character, fontsize=1.0)


def width_of(text: str, name: str, size: float) -> float:
    """How wide the text is set; remembers each character, since asking MuPDF is what takes the time here."""
    return size * sum(_advance_of(character, name) for character in text)


def money(value: Decimal | int | None, places: int = 2, *, brackets: bool = False) -> str:
    """1234567.8 → 1,234,567.80; None → an en dash; a negative in brackets where the report style asks for it."""
    if value is None:
        return "–"
    text = f"{abs(value):,.{places}f}"
    if value >= 0:
        return text
    return f"({text})" if brackets else f"-{text}"


def wrap(text: str, name: str, size: float, width: float) -> list[str]:
    """Lines that fit `width`: English breaks at spaces, Chinese between any two characters but before punctuation."""
    lines: list[str] = []
    line = ""
    for unit in _units(text):
        if line and width_of((line + unit).rstrip(), name, size) > width:
            lines.append(line.rstrip())
            line = ""
        line += unit
    return [*lines, line.rstrip()]


def _units(text: str) -> Iterator[str]:
    """The pieces between which a line may break: an English word with its space, or one Chinese character."""
    unit = ""
    for character in text:
        breaks_before = ord(character) > 0x2E7F and character not in NOT_FIRST
        if unit and (breaks_before or unit[-1] == " " or _breaks_after(unit[-1], character)):
            yield unit
            unit = ""
        unit += character
    yield unit


def _breaks_after(last: str, character: str) -> bool:
    return ord(last) > 0x2E7F and last not in "（《「“" and character not in NOT_FIRST


class Sheet:
    """A document that grows downwards, page after page."""

    def __init__(
        self, *, language: str, size: tuple[float, float] = A4, footer: str = "", header: str = "", columns: int = 1
    ) -> None:
        self._doc = pymupdf.open()
        self._faces = FACES[language]
        self._language = language
        self._size = size
        self._header, self._footer = header, footer
        self._columns, self._column = columns, 0
        self._indent = 2 if language == "zh" else 0
        self._open_page()

    # ------------------------------------------------------------ what a page is made of

    def title(self, text: str, *, size: float = 16.0) -> None:
        self._line(text, self._faces.strong, size, align="c")
        self.gap(size * 0.6)

    def heading(self, text: str, *, size: float = 12.0) -> None:
        self.gap(4)
        self._need(size * 4)
        self._lines(text, self._faces.strong, size)
        self.gap(4)

    def paragraph(self, text: str, *, size: float = 10.0, align: str = "l") -> None:
        indent = "　" * self._indent if align == "l" else ""
        self._lines(indent + text, self._faces.body, size, align=align)
        self.gap(size * 0.55)

    def note(self, text: str, *, align: str = "l") -> None:
        self._lines(text, self._faces.body, 8.5, align=align)
        self.gap(3)

    def pairs(self, pairs: Sequence[tuple[str, str]], *, label_width: float = 150.0, ruled: bool = False) -> None:
        """Labels and values, one pair a line."""
        rest = self.width - label_width
        grid = Grid((label_width, rest), "ll", "grid" if ruled else "none", header_rows=0, size=9.5, strong_last=False)
        self.table(list(pairs), grid)

    def gap(self, height: float) -> None:
        self.y += height

    def new_page(self) -> None:
        self._close_page()
        self._open_page()

    def next_column(self) -> None:
        self._advance()

    def table(self, rows: Sequence[Row], grid: Grid, *, caption: str = "", unit: str = "") -> None:
        """A table with its header repeated on each page that it reaches."""
        if caption:
            self._need(80)
            self._lines(caption, self._faces.strong, grid.size + 1)
        if unit:
            self._line(unit, self._faces.body, grid.size, align="r")
        self.gap(3)
        heads, body = rows[: grid.header_rows], rows[grid.header_rows :]
        self._heads(heads, grid)
        for index, row in enumerate(body):
            strong = grid.strong_last and index == len(body) - 1
            if self.y + self._height(row, grid, strong=strong) > self.bottom:
                self._rule(grid)
                self._advance()
                self._heads(heads, grid)
            self._row(row, grid, strong=strong, head=False)
        self._rule(grid)
        self.gap(8)

    def picture(self, data: bytes) -> None:
        """An image over the whole page, as a scanner makes it."""
        self._page.insert_image(self._page.rect, stream=data)

    def rotate(self, degrees: int) -> None:
        """Set /Rotate of the current page."""
        self._page.set_rotation(degrees)

    def to_bytes(self, *, title: str, compact: bool = False) -> bytes:
        """The finished PDF; `compact` packs the objects into streams, as PDF 1.5 writers do."""
        self._close_page()
        self._doc.subset_fonts()
        self._doc.set_metadata({"title": title, "creationDate": MADE_ON, "modDate": MADE_ON})
        return self._doc.tobytes(garbage=4, deflate=True, no_new_id=True, use_objstms=int(compact))

    # ------------------------------------------------------------ where things stand

    @property
    def width(self) -> float:
        gutter = 24.0 * (self._columns - 1)
        return (self._size[0] - 2 * MARGIN - gutter) / self._columns

    @property
    def left(self) -> float:
        return MARGIN + self._column * (self.width + 24.0)

    @property
    def bottom(self) -> float:
        return self._size[1] - MARGIN - 8

    def split(self, columns: int) -> None:
        """From here on the page has this many columns."""
        self._columns, self._column, self._top = columns, 0, self.y

    def _need(self, height: float) -> None:
        if self.y + height > self.bottom:
            self._advance()

    def _advance(self) -> None:
        if self._column + 1 < self._columns:
            self._column += 1
            self.y = self._top
        else:
            self.new_page()

    def _open_page(self) -> None:
        self._page = self._doc.new_page(width=self._size[0], height=self._size[1])
        self._ink = pymupdf.TextWriter(self._page.rect)
        self._shape = self._page.new_shape()
        self.y = self._top = MARGIN + (10 if self._header else 0)
        self._column = 0

    def _close_page(self) -> None:
        if self._header:
            self._put(self._header, MARGIN, MARGIN - 14, self._faces.body, 8)
        if self._footer:
            number = f"第 {self._doc.page_count} 页" if self._language == "zh" else f"Page {self._doc.page_count}"
            self._put(self._footer, MARGIN, self._size[1] - 34, self._faces.body, 8)
            width = width_of(number, self._faces.body, 8)
            self._put(number, self._size[0] - MARGIN - width, self._size[1] - 34, self._faces.body, 8)
        self._shape.commit(overlay=False)
        self._ink.write_text(self._page)

    # ------------------------------------------------------------ ink

    def _put(self, text: str, x: float, y: float, name: str, size: float) -> None:
        if text:
            self._ink.append((x, y), text, font=font(name), fontsize=size)

    def _lines(self, text: str, name: str, size: float, *, align: str = "l") -> None:
        for line in wrap(text, name, size, self.width):
            self._line(line, name, size, align=align)

    def _line(self, text: str, name: str, size: float, *, align: str = "l") -> None:
        self._need(size * 1.4)
        self.y += size * 1.4
        self._put(text, _start(text, name, size, self.left, self.width, align), self.y - size * 0.35, name, size)

    def _heads(self, heads: Sequence[Row], grid: Grid) -> None:
        self._rule(grid)
        for row in heads:
            self._row(row, grid, strong=True, head=True)
        if heads and grid.rules == "three":
            self._rule(grid)

    def _rule(self, grid: Grid) -> None:
        if grid.rules != "none":
            self._shape.draw_line((self.left, self.y), (self.left + sum(grid.widths), self.y))
            self._shape.finish(width=0.7)

    def _cells(self, row: Row, grid: Grid) -> Iterator[tuple[str, float, float, str]]:
        """Text, left edge, width and alignment of each cell."""
        column, x = 0, self.left
        for cell in row:
            count = cell.columns if isinstance(cell, Span) else 1
            width = sum(grid.widths[column : column + count])
            text, align = (cell.text, "c") if isinstance(cell, Span) else (cell, grid.align[column])
            yield text, x, width, align
            column, x = column + count, x + width

    def _height(self, row: Row, grid: Grid, *, strong: bool) -> float:
        name = self._faces.strong if strong else self._faces.body
        lines = max(len(wrap(text, name, grid.size, w - 2 * PAD_X)) for text, _, w, _ in self._cells(row, grid))
        return lines * grid.size * 1.3 + 2 * PAD_Y

    def _row(self, row: Row, grid: Grid, *, strong: bool, head: bool) -> None:
        height = self._height(row, grid, strong=strong)
        name = self._faces.strong if strong else self._faces.body
        for text, x, width, align in self._cells(row, grid):
            if grid.rules == "grid":
                self._box(x, width, height, shaded=head)
            for number, line in enumerate(wrap(text, name, grid.size, width - 2 * PAD_X)):
                baseline = self.y + PAD_Y + grid.size * (1.3 * number + 1.0)
                start = _start(line, name, grid.size, x + PAD_X, width - 2 * PAD_X, align)
                self._put(line, start, baseline, name, grid.size)
        self.y += height

    def _box(self, x: float, width: float, height: float, *, shaded: bool) -> None:
        self._shape.draw_rect(pymupdf.Rect(x, self.y, x + width, self.y + height))
        self._shape.finish(width=0.5, fill=GREY if shaded else None)


def _start(text: str, name: str, size: float, left: float, width: float, align: str) -> float:
    slack = width - width_of(text, name, size)
    return left + {"l": 0.0, "c": slack / 2, "r": slack}[align]
