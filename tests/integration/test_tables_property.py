"""What was written is what is read: tables with random spans, languages, units and page breaks."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pymupdf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docmill.types import Table
from tests import pdfs
from tests.parsing import parsed

WIDTH, HEIGHT = 90.0, 22.0
LEFT, TOP = 60.0, 110.0
UNITS = (("", None, None), ("单位：万元", "CNY", Decimal(10_000)), ("(in millions of USD)", "USD", Decimal(1_000_000)))

SETTINGS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@dataclass(frozen=True)
class Drawn:
    """A cell as it is drawn: (row, col, rowspan, colspan)."""

    row: int
    col: int
    rowspan: int
    colspan: int
    text: str


number = st.builds(
    lambda whole, cents, style: style.format(f"{whole:,}.{cents:02d}"),
    st.integers(0, 9_999_999),
    st.integers(0, 99),
    st.sampled_from(("{}", "({})", "-{}")),
)
word = st.sampled_from(
    ("Cash", "Loans", "Total assets", "Net income", "货币资金", "应收账款", "净利润", "合计", "2023年")
)
text = st.one_of(number, word)


@st.composite
def tables(draw: st.DrawFn) -> list[Drawn]:
    """Cells that cover a grid, some of them over several rows or columns; no row or column is only spanned."""
    rows, cols = draw(st.integers(3, 6)), draw(st.integers(2, 5))
    taken: set[tuple[int, int]] = set()
    cells = []
    for row, col in itertools.product(range(rows), range(cols)):
        if (row, col) in taken:
            continue
        down, right = _span(draw, row, col, rows, cols, taken)
        taken |= set(itertools.product(range(row, row + down), range(col, col + right)))
        cells.append(Drawn(row, col, down, right, draw(text)))
    return cells


def _span(draw: st.DrawFn, row: int, col: int, rows: int, cols: int, taken: set[tuple[int, int]]) -> tuple[int, int]:
    """The last row and the last column are never spanned into, so that each edge is drawn somewhere."""
    right = draw(st.integers(1, 2)) if col + 2 < cols and (row, col + 1) not in taken and row + 1 < rows else 1
    down = draw(st.integers(1, 2)) if right == 1 and row + 2 < rows and col + 1 < cols else 1
    return down, right


def drawn_pdf(cells: list[Drawn], unit: str) -> bytes:
    """One page with the cells as boxes, their texts inside, and the unit line above."""
    document = pdfs.new_document()
    page = document[0]
    if unit:
        pdfs.write(page, LEFT, TOP - 8, unit, size=9)
    for cell in cells:
        box = pymupdf.Rect(0, 0, WIDTH * cell.colspan, HEIGHT * cell.rowspan)
        box += (LEFT + WIDTH * cell.col, TOP + HEIGHT * cell.row) * 2
        page.draw_rect(box, width=0.7)
        pdfs.write(page, box.x0 + 4, (box.y0 + box.y1) / 2 + 3, cell.text, size=9)
    return pdfs.finish(document)


def read_back(table: Table) -> set[Drawn]:
    return {Drawn(cell.row, cell.col, cell.rowspan, cell.colspan, cell.text) for cell in table.cells if cell.text}


@SETTINGS
@given(cells=tables(), unit=st.sampled_from(UNITS))
def test_spans_texts_and_units_are_read_as_they_were_drawn(
    tmp_path: Path, cells: list[Drawn], unit: tuple[str, str | None, Decimal | None]
) -> None:
    (table,) = parsed(drawn_pdf(cells, unit[0]), tmp_path).tables
    assert read_back(table) == set(cells)
    if unit[0]:
        assert (table.unit, table.scale) == unit[1:]


@SETTINGS
@given(cells=tables())
def test_every_character_of_a_cell_has_its_box_inside_the_cell(tmp_path: Path, cells: list[Drawn]) -> None:
    (table,) = parsed(drawn_pdf(cells, ""), tmp_path).tables
    for cell in table.cells:
        boxes = [cell.printed.character_box(index) for index, char in enumerate(cell.text) if char != " "]
        assert cell.bbox is not None
        assert all(box is not None and cell.bbox.y0 - 2 < box.y0 and box.y1 < cell.bbox.y1 + 2 for box in boxes)
        assert all(box is not None and cell.bbox.x0 <= box.x0 for box in boxes)


@SETTINGS
@given(
    values=st.lists(st.tuples(word, number, number), min_size=4, max_size=12),
    breaks=st.integers(1, 3),
    repeated=st.booleans(),
)
def test_a_table_over_a_page_break_is_read_whole(
    tmp_path: Path, values: list[tuple[str, str, str]], breaks: int, repeated: bool
) -> None:
    header = ["Item 项目", "2024", "2023"]
    rows = [[f"{number} {name}", *figures] for number, (name, *figures) in enumerate(values)]
    first, second = [header, *rows[:breaks]], [*([header] if repeated else []), *rows[breaks:]]
    document = pdfs.new_document(2)
    pdfs.draw_table(document[0], first, top=780.0 - pdfs.ROW_HEIGHT * len(first))
    pdfs.draw_table(document[1], second, top=50.0)
    (table,) = parsed(pdfs.finish(document), tmp_path).tables
    grid = [[cell.text for cell in table.cells if cell.row == row] for row in range(table.rows)]
    assert grid == [header, *rows]
    assert table.pages == (1, 2)


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_table_reads_the_same_on_a_page_that_is_stored_turned(tmp_path: Path, rotation: int) -> None:
    rows = [["Item", "2024", "2023"], ["Cash", "1,234.50", "(99.10)"], ["Loans", "7.00", "-3.25"]]
    (table,) = parsed(pdfs.table_pdf(rows, rotate=rotation), tmp_path).tables
    assert [[cell.text for cell in table.cells if cell.row == row] for row in range(3)] == rows
