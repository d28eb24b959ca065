"""Tables come out whole, digit for digit, with header, spans, unit and scale, also over page breaks."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from preprocess.tables_form import tables_form
from tests import pdfs
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
