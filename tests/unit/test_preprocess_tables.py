"""Tables come out whole, digit for digit, with header, spans, unit and scale, also over page breaks."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from preprocess.agreement import agreement
from preprocess.tables_form import tables_form
from tests import pdfs
from tests.grids import filled, flush_right, lattice
from tests.parsing import parsed, rows, shown

STATEMENT = [
    ["Item", "2024", "2023"],
    ["Cash and deposits", "13,253,329.50", "-1,250.40"],
    ["Receivables", "(548,290.00)", "3.30"],
    ["Total", "12,705,039.50", "0.00"],
]
CHINESE = [["项目", "期末余额", "期初余额"], ["货币资金", "1,234.50", "987.65"], ["应收账款", "-45.00", "88.10"]]


def test_a_ruled_table_is_read_digit_for_digit(tmp_path: Path) -> None:
    prepared = parsed(pdfs.table_pdf(STATEMENT, before="Balance sheet"), tmp_path)
    assert rows(prepared) == STATEMENT
    assert (prepared.tables[0].reader, prepared.tables[0].header_rows) == ("ruled", 1)


@pytest.mark.parametrize("rotate", [90, 180, 270])
def test_a_table_on_a_turned_page_is_read_as_it_is_seen(tmp_path: Path, rotate: int) -> None:
    prepared = parsed(pdfs.table_pdf(STATEMENT, rotate=rotate), tmp_path)
    assert rows(prepared) == STATEMENT
    first = prepared.tables[0].cells[0].bbox
    assert first is not None
    assert first.x0 == pytest.approx(60, abs=2)


def test_the_empty_cells_of_a_table_stay_empty(tmp_path: Path) -> None:
    sparse = [["Bank", "Tier 1", "CET1"], ["Alpha", "14.2%", ""], ["Beta", "", "11.8%"]]
    assert rows(parsed(pdfs.table_pdf(sparse), tmp_path)) == sparse


def test_the_unit_line_above_a_table_gives_unit_and_scale(tmp_path: Path) -> None:
    table = parsed(pdfs.table_pdf(CHINESE, before="合并资产负债表\n单位：万元"), tmp_path).tables[0]
    assert (table.unit, table.scale) == ("CNY", Decimal(10_000))
    assert table.caption == "合并资产负债表\n单位：万元"


def test_a_caption_is_shown_once_and_in_the_head_of_the_table(tmp_path: Path) -> None:
    prepared = parsed(pdfs.table_pdf(CHINESE, before="单位：万元", after="以上数据未经审计。"), tmp_path)
    chunk = next(chunk for chunk in prepared.chunks if chunk.rows)
    assert chunk.head == "[p1]\n单位：万元\n|项目|期末余额|期初余额|\n|---|---|---|\n"
    assert shown(prepared).count("单位：万元") == 1


def test_a_page_of_plain_text_is_not_searched_for_tables(tmp_path: Path) -> None:
    prepared = parsed(pdfs.text_pdf("Only words here.\nAnd here, on a second line.\nAnd a third."), tmp_path)
    assert prepared.tables == ()


def test_nothing_of_a_page_is_lost_or_doubled_around_a_table(tmp_path: Path) -> None:
    text = shown(parsed(pdfs.table_pdf(STATEMENT, before="Before 111", after="After 222"), tmp_path))
    for part in ("Before 111", "After 222", "13,253,329.50", "12,705,039.50"):
        assert text.count(part) == 1


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (("229,753,", "412.24"), "229,753,412.24"),
        (("1.229.753,", "41"), "1.229.753,41"),
        (("229,753.", "41"), "229,753.41"),
        (("June 25,", "2022"), "June 25, 2022"),
    ],
)
def test_a_number_wrapped_in_a_narrow_cell_is_one_number_and_a_date_is_none(
    tmp_path: Path, parts: tuple[str, str], whole: str
) -> None:
    document = pdfs.new_document()
    pdfs.draw_table(document[0], [["Date", "Balance"], ["", ""]], widths=[80, 60])
    pdfs.write(document[0], 64, 152, "20250801", size=8)
    for y, part in zip((149, 158), parts, strict=True):
        pdfs.write(document[0], 150, y, part, size=8)
    assert rows(parsed(pdfs.finish(document), tmp_path))[1] == ["20250801", whole]


def two_pages(first: list[list[str]], second: list[list[str]]) -> bytes:
    document = pdfs.new_document(2)
    pdfs.draw_table(document[0], first, top=760 - 20 * len(first))
    pdfs.draw_table(document[1], second, top=60)
    return pdfs.finish(document)


def test_a_table_over_a_page_break_is_one_table_with_its_header_once(tmp_path: Path) -> None:
    prepared = parsed(two_pages(STATEMENT[:2], [STATEMENT[0], *STATEMENT[2:]]), tmp_path)
    assert rows(prepared) == STATEMENT
    assert prepared.tables[0].pages == (1, 2)
    assert [cell.page for cell in prepared.tables[0].cells if cell.col == 0] == [1, 1, 2, 2]


def test_a_table_over_a_page_break_without_a_second_header_loses_no_row(tmp_path: Path) -> None:
    assert rows(parsed(two_pages(STATEMENT[:2], STATEMENT[2:]), tmp_path)) == STATEMENT


def test_tables_with_other_columns_stay_apart(tmp_path: Path) -> None:
    narrow = [["Name", "Share"], ["Zhang", "5.00%"]]
    prepared = parsed(two_pages(STATEMENT, narrow), tmp_path)
    assert [rows(prepared, 0), rows(prepared, 1)] == [STATEMENT, narrow]


def test_the_json_form_gives_each_page_its_part_of_a_table(tmp_path: Path) -> None:
    form = tables_form(parsed(two_pages(STATEMENT[:2], [STATEMENT[0], *STATEMENT[2:]]), tmp_path))
    texts = [[cell["text"] for cell in page["tables"][0]["cells"] if cell["col"] == 0] for page in form["pages"]]
    assert texts == [["Item", "Cash and deposits"], ["Item", "Receivables", "Total"]]


def test_a_row_that_the_end_of_the_page_leaves_open_is_read(tmp_path: Path) -> None:
    document = pdfs.new_document()
    bottom = pdfs.draw_table(document[0], [["Program", "2025", "2026"], ["A1", "12.10", "13.40"]], top=700.0)
    for x in (60.0, 60 + 475 / 3, 60 + 950 / 3, 535.0):
        document[0].draw_line((x, bottom), (x, bottom + 20))
    for x, text in ((64.0, "A2"), (330.0, "6.00"), (490.0, "5.50")):
        pdfs.write(document[0], x, bottom + 14, text, size=10)
    assert rows(parsed(pdfs.finish(document), tmp_path))[2] == ["A2", "6.00", "5.50"]


def test_a_white_rule_parts_no_row_on_white_paper(tmp_path: Path) -> None:
    document = pdfs.new_document()
    pdfs.draw_table(document[0], [["Item", "2024"], ["Cash", "1.00"], ["Loans", "2.00"]], top=100.0)
    before = len(parsed(document.tobytes(), tmp_path).tables[0].cells)
    document[0].draw_line((60, 130), (535, 130), color=(1, 1, 1), width=0.2)
    assert len(parsed(pdfs.finish(document), tmp_path).tables[0].cells) == before


def test_a_row_that_a_page_break_parts_is_one_row_on_both_pages(tmp_path: Path) -> None:
    document = pdfs.new_document(2)
    first = [["No", "Name", "Amount"], ["11", "Leaflets", "3,600.00"], ["12", "Stage, with frame", "19,803.50"]]
    pdfs.draw_table(document[0], first, top=720.0)
    pdfs.draw_table(document[1], [["", "and slip-proof mats", ""], ["13", "Guards", "10,800.00"]], top=50.0)
    prepared = parsed(pdfs.finish(document), tmp_path)
    assert rows(prepared)[2:] == [
        ["12", "Stage, with frame and slip-proof mats", "19,803.50"],
        ["13", "Guards", "10,800.00"],
    ]
    (cell,) = [cell for cell in prepared.tables[0].cells if cell.text.startswith("Stage")]
    assert (cell.page, [rest.page for rest in cell.also]) == (1, [2])


def test_a_map_is_left_out_of_the_search_and_the_page_says_so(tmp_path: Path) -> None:
    document = pdfs.new_document()
    pdfs.draw_table(document[0], [["Bucket", "PD"], ["A", "0.35%"], ["B", "3.95%"]], top=100.0)
    shape = document[0].new_shape()
    for number in range(600):
        shape.draw_line((60 + number % 400, 300), (500 - number % 300, 700))
        shape.finish()
    shape.commit()
    prepared = parsed(pdfs.finish(document), tmp_path)
    assert rows(prepared)[2] == ["B", "3.95%"]
    assert "strokes of a drawing were left out" in prepared.warnings[0]


def test_a_table_that_reads_the_same_in_print_has_full_confidence(tmp_path: Path) -> None:
    body = [[f"row {number}", f"{number}.50", f"{number * 7},000"] for number in range(1, 6)]
    (table,) = parsed(pdfs.table_pdf([["Item", "2024", "2023"], *body]), tmp_path).tables
    assert table.confidence == 1.0


def test_figures_that_stand_under_another_column_lower_the_confidence_of_a_table() -> None:
    ys = (100.0, 120.0, 140.0, 160.0)
    lines = [flush_right(right, y, f"{right}.5") for right in (200, 300) for y in ys]
    straight = filled(lattice((60, 210, 310), (90, 110, 130, 150, 170)), lines)
    slanted = lattice((60, 210, 310), (90, 110, 130, 150, 170))
    slots = [
        replace(slot, bbox=slot.bbox._replace(**{"x1" if slot.col == 0 else "x0": 305.0})) if slot.row < 2 else slot
        for slot in slanted.slots
    ]
    crooked = filled(replace(slanted, slots=tuple(slots)), lines)
    assert agreement(straight, lines) == 1.0
    assert agreement(crooked, lines) < 0.8
