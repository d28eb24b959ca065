"""What is rendered parses back, by a real Markdown or HTML parser, to the cells that were rendered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from html.parser import HTMLParser

from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from docmill.types import BBox, Block, BlockKind, Cell, Page, Printed, Region, Table
from preprocess.markup import html_cell, markdown_cell
from preprocess.render import render
from preprocess.render_table import spans_matter
from preprocess.split import split

BOX = BBox(0, 0, 10, 10)
quick = settings(max_examples=40, deadline=None)
pipe_parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])

odd = st.sampled_from(
    ["*", "_", "`", "|", "\\", "<", ">", "&", "~", "[", "]", "(", ")", "!", "#", "-", "amp;", "b>", " "]
)
words = st.sampled_from(["现金", "Cash", "1,234.50", "(3.2)", "注1", "p", "x"])
texts = st.lists(st.one_of(words, words, odd), max_size=5).map(lambda parts: " ".join("".join(parts).split()))


def count(parts: Sequence[str]) -> list[int]:
    return [len(part) for part in parts]


@dataclass
class _Slot:
    rowspan: int
    colspan: int
    text: str = ""


class _Rows(HTMLParser):
    """The cells of an HTML table, placed as a browser places them."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.rows: list[list[_Slot]] = []
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            spans = dict(attrs)
            self.rows[-1].append(_Slot(int(spans.get("rowspan") or 1), int(spans.get("colspan") or 1)))

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1].text += data

    def slots(self, cols: int) -> list[list[str]]:
        grid: dict[tuple[int, int], str] = {}
        for row, cells in enumerate(self.rows):
            for cell in cells:
                col = next(col for col in range(cols) if (row, col) not in grid)
                area = [(row + down, col + across) for down in range(cell.rowspan) for across in range(cell.colspan)]
                grid |= dict.fromkeys(area, cell.text.strip())
        return [[grid[row, col] for col in range(cols)] for row in range(len(self.rows))]


def markdown_rows(markup: str) -> list[list[str]]:
    """The cells of a pipe table as a reader of Markdown sees them."""
    rows: list[list[str]] = []
    for token in pipe_parser.parse(markup):
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline" and rows:
            assert all(child.type in ("text", "text_special") for child in token.children or ())
            rows[-1].append("".join(child.content for child in token.children or ()))
    return rows


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """A table with spans anywhere: each free place in turn starts a cell of a random size that fits."""
    rows, cols = draw(st.integers(2, 5)), draw(st.integers(2, 4))
    header = draw(st.integers(0, min(2, rows - 1)))
    free = {(row, col) for row in range(rows) for col in range(cols)}
    cells = []
    for row in range(rows):
        for col in range(cols):
            if (row, col) not in free:
                continue
            width, height = draw(st.sampled_from([(1, 1)] * 6 + [(2, 1), (1, 2), (2, 2), (cols, 1)]))
            last = header if row < header else rows
            area = {(r, c) for r in range(row, row + height) for c in range(col, col + width)}
            if not area <= free or row + height > last:
                width, height, area = 1, 1, {(row, col)}
            free -= area
            cells.append(Cell(row, col, Printed(draw(texts)), 1, BOX, rowspan=height, colspan=width))
    return Table("t1", tuple(cells), rows, cols, (Region(1, BOX),), "ruled", header_rows=header)


def rendered(table: Table) -> str:
    page = Page(1, 100, 100, (Block(BlockKind.TABLE, 1, BOX, Printed(""), table),))
    return "".join(chunk.text for chunk in render([page], count)).removeprefix("[p1]\n")


def slots(table: Table) -> list[list[str]]:
    grid = [[""] * table.cols for _ in range(table.rows)]
    for cell in table.cells:
        for row in range(cell.row, cell.row + cell.rowspan):
            for col in range(cell.col, cell.col + cell.colspan):
                grid[row][col] = cell.text
    return grid


@quick
@given(tables())
def test_a_table_parses_back_to_the_same_cells(table: Table) -> None:
    markup = rendered(table)
    if spans_matter(table):
        assert _Rows(markup).slots(table.cols) == slots(table)
        return
    read = markdown_rows(markup)
    if not table.header_rows:
        assert set(read.pop(0)) == {""}
    expected = slots(table)
    for cell in table.cells:  # what covers columns of the body, or the whole width, is shown once
        if cell.colspan > 1 and (cell.row >= table.header_rows or cell.colspan == table.cols):
            for row in range(cell.row, cell.row + cell.rowspan):
                expected[row][cell.col + 1 : cell.col + cell.colspan] = [""] * (cell.colspan - 1)
    assert read == expected


@quick
@given(texts)
@example("a|b")
@example("a\\|b")
@example("ends with \\")
@example("*1,234* and _x_")
@example("AT&amp;T <b>&copy;")
@example("[1](2) `code`")
def test_no_text_of_a_cell_is_taken_for_markup(text: str) -> None:
    assert markdown_rows(f"|h|\n|---|\n|{markdown_cell(text)}|\n")[1] == [text]
    assert _Rows(f"<tr><td>{html_cell(text)}\n").slots(1) == [[text]]


def spanning(rows: int) -> Table:
    """A figure beside two rows, and many rows below."""
    cells = [Cell(0, col, Printed(text), 1, BOX, header=True) for col, text in enumerate(["Item", "2024", "2023"])]
    cells.append(Cell(1, 1, Printed("7.50"), 1, BOX, rowspan=2))
    cells += [Cell(row, 0, Printed(f"row {row}"), 1, BOX) for row in range(1, rows)]
    cells += [Cell(row, 2, Printed(f"{row}.25"), 1, BOX) for row in range(1, rows)]
    cells += [Cell(row, 1, Printed(f"{row}.75"), 1, BOX) for row in range(3, rows)]
    return Table("t1", tuple(cells), rows, 3, (Region(1, BOX),), "ruled", 1, unit="CNY", scale=Decimal(10000))


def test_a_figure_for_two_rows_makes_the_table_html_and_is_printed_once() -> None:
    markup = rendered(spanning(4))
    assert markup.count("7.50") == 1
    assert "<tr><td>row 1<td rowspan=2>7.50<td>1.25\n<tr><td>row 2<td>2.25\n" in markup
    assert markup.endswith("</table>\n")


def test_every_part_of_a_split_table_has_unit_header_and_end_and_parses_alone() -> None:
    page = Page(1, 100, 100, (Block(BlockKind.TABLE, 1, BOX, Printed(""), spanning(40)),))
    chunks = render([page], count)
    parts = split(chunks, 300)
    assert len(parts) > 3
    read = []
    for part in parts:
        assert part.text.startswith("[p1]\n(unit: CNY, scale: 10000)\n<table>\n<tr><th>Item<th>2024<th>2023\n")
        assert part.text.endswith("</table>\n")
        read += _Rows(part.text.partition("<table>")[2]).slots(3)[1:]
    assert read == slots(spanning(40))[1:]


def test_a_label_beside_several_rows_is_repeated_in_markdown() -> None:
    cells = [Cell(0, 0, Printed("上海"), 1, BOX, rowspan=2)]
    cells += [Cell(row, 1, Printed(f"{row}.5"), 1, BOX) for row in range(2)]
    table = Table("t1", tuple(cells), 2, 2, (Region(1, BOX),), "ruled")
    assert rendered(table) == "|||\n|---|---|\n|上海|0.5|\n|上海|1.5|\n"
