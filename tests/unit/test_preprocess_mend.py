"""What a layout model merges, splits or takes in by mistake is mended from the words."""

from __future__ import annotations

from dataclasses import replace

from docmill.types import BBox
from preprocess.glyphs import Line
from preprocess.grids import Grid
from preprocess.mend import mend
from preprocess.trim import is_chart, stacked
from tests.grids import centred, filled, flush_right, lattice, text_lines, texts

BODY = (100.0, 120.0, 140.0, 160.0)


def figures(right: float, values: tuple[str, ...], ys: tuple[float, ...] = BODY) -> list[Line]:
    return [flush_right(right, y, value) for y, value in zip(ys, values, strict=True)]


def labels(*names: str) -> list[Line]:
    return text_lines(*[(60.0, y, name) for y, name in zip(BODY, names, strict=True)])


def read(grid: Grid, lines: list[Line], rules: tuple[BBox, ...] = ()) -> list[list[str]]:
    return texts(filled(mend(grid, lines, rules), lines))


def test_a_column_that_holds_two_figures_in_each_row_is_two_columns() -> None:
    lines = labels("a", "b", "c", "d") + figures(200, ("1.0", "2.0", "3.0", "4.0"))
    lines += figures(240, ("5.5", "6.5", "7.5", "8.5"))
    grid = lattice((60, 150, 260), (90, 110, 130, 150, 170))
    assert read(grid, lines)[0] == ["a", "1.0", "5.5"]


def test_a_column_of_labels_with_their_figures_is_two_columns() -> None:
    lines = labels("Cash", "Stock", "Loans", "Total") + figures(200, ("1.0", "2.0", "3.0", "6.0"))
    grid = lattice((60, 210, 300), (90, 110, 130, 150, 170))
    lines += figures(290, ("9.0", "8.0", "7.0", "24.0"))
    assert read(grid, lines)[1] == ["Stock", "2.0", "8.0"]


def test_a_currency_sign_stays_with_its_figure() -> None:
    lines = labels("a", "b", "c", "d") + figures(240, ("10.0", "20.0", "30.0", "60.0"))
    lines += text_lines(*[(180.0, y, "$") for y in BODY])
    grid = lattice((60, 150, 260), (90, 110, 130, 150, 170))
    assert [row[1] for row in read(grid, lines)] == ["$ 10.0", "$ 20.0", "$ 30.0", "$ 60.0"]


def test_a_row_in_which_all_columns_hold_two_figures_is_two_rows() -> None:
    lines = labels("a", "b", "c", "d") + figures(200, ("1.0", "2.0", "3.0", "4.0"))
    lines += figures(290, ("5.5", "6.5", "7.5", "8.5"))
    grid = lattice((60, 150, 210, 300), (90, 110, 150, 170))
    assert read(grid, lines)[1:3] == [["b", "2.0", "6.5"], ["c", "3.0", "7.5"]]


def test_a_label_that_is_wrapped_is_one_row_with_its_figures() -> None:
    lines = text_lines((60, 100, "Cash"), (60, 130, "Amounts due from"), (60, 140, "other banks"), (60, 170, "Loans"))
    lines += figures(240, ("1.0", "2.0", "3.0"), (100.0, 130.0, 170.0))
    grid = lattice((60, 180, 250), (90, 115, 135, 155, 180))
    assert read(grid, lines) == [["Cash", "1.0"], ["Amounts due from other banks", "2.0"], ["Loans", "3.0"]]


def test_a_section_title_that_runs_over_the_columns_is_one_cell() -> None:
    title = "Highest enrolment since the bachelor's degree"
    lines = text_lines((60, 100, "a"), (60, 120, title), (60, 140, "c"))
    lines += figures(240, ("1.0", "2.0"), (100.0, 140.0)) + figures(300, ("1.5", "2.5"), (100.0, 140.0))
    grid = lattice((60, 150, 250, 310), (90, 110, 130, 150))
    assert read(grid, lines) == [["a", "1.0", "1.5"], [title, "", ""], ["c", "2.0", "2.5"]]


def test_a_note_below_the_figures_is_no_row() -> None:
    lines = labels("a", "b", "c", "Source: the annual report of the bank for the year")
    lines += figures(240, ("1.0", "2.0", "3.0"), BODY[:3]) + figures(300, ("1.5", "2.5", "3.5"), BODY[:3])
    grid = lattice((60, 150, 250, 310), (90, 110, 130, 150, 170))
    assert [row[0] for row in read(grid, lines)] == ["a", "b", "c"]


def two_levels() -> list[Line]:
    """A header of two lines over two pairs of columns, and two rows."""
    lines = [flush_right(right, 100, name) for right, name in ((150, "2023"), (200, "2022"), (250, "2023"))]
    lines.append(flush_right(300, 100, "2022"))
    for y, name in ((120.0, "Cash"), (140.0, "Loans")):
        lines += text_lines((60, y, name))
        lines += [flush_right(right, y, f"{y + right:,.1f}") for right in (150, 200, 250, 300)]
    return lines


GRID = lattice((60, 110, 160, 210, 260, 310), (75, 90, 110, 130, 150), header_rows=2)
NAMES = ["", "2023", "2022", "2023", "2022"]


def test_a_title_over_a_rule_spans_the_columns_under_the_rule() -> None:
    lines = [*two_levels(), centred(115, 200, 82, "Group"), centred(215, 300, 82, "Bank")]
    rules = (BBox(115, 90, 200, 90.5), BBox(215, 90, 300, 90.5))
    assert read(GRID, lines, rules)[:2] == [["", "Group", "<", "Bank", "<"], NAMES]


def test_titles_that_share_a_rule_share_its_columns() -> None:
    lines = [*two_levels(), centred(115, 200, 82, "Group"), centred(215, 300, 82, "Bank")]
    assert read(GRID, lines, (BBox(115, 90, 300, 90.5),))[0] == ["", "Group", "<", "Bank", "<"]


def test_a_title_without_a_rule_spans_the_columns_around_whose_middle_it_is_set() -> None:
    lines = [*two_levels(), centred(130, 300, 82, "Carrying amount")]
    assert read(GRID, lines)[0] == ["", "Carrying amount", "<", "<", "<"]


def test_a_wrapped_title_is_one_cell() -> None:
    lines = text_lines((60, 120, "Cash"), (60, 140, "Loans"))
    lines += [flush_right(200, 88, "Margin of"), flush_right(200, 99, "error"), flush_right(290, 99, "Estimate")]
    lines += figures(200, ("1.0", "2.0"), (120.0, 140.0)) + figures(290, ("10.0", "20.0"), (120.0, 140.0))
    grid = lattice((60, 120, 210, 300), (80, 94, 110, 130, 150), header_rows=2)
    assert read(grid, lines)[0] == ["", "Margin of error", "Estimate"]


def test_a_line_above_the_header_that_states_the_unit_is_no_row() -> None:
    lines = [*two_levels(), centred(60, 310, 82, "[In thousands]")]
    assert read(GRID, lines)[0] == NAMES


def test_a_line_under_the_titles_that_states_the_unit_is_over_all_figures() -> None:
    lines = [*two_levels(), centred(130, 300, 111, "(in millions)")]
    grid = lattice((60, 110, 160, 210, 260, 310), (90, 106, 116, 130, 150), header_rows=2)
    assert read(grid, lines)[:2] == [NAMES, ["", "(in millions)", "<", "<", "<"]]


def test_a_rule_under_the_first_line_ends_the_header() -> None:
    lines = [flush_right(right, 100, year) for right, year in ((200, "1994"), (290, "1997"))]
    lines += text_lines((60, 120, "Lowest"), (60, 140, "Highest"))
    lines += [flush_right(right, y, f"{right}.5 or less") for y in (120.0, 140.0) for right in (200, 290)]
    grid = lattice((60, 120, 210, 300), (92, 110, 130, 150), header_rows=2)
    assert mend(grid, lines, (BBox(60, 110, 300, 110.5),)).header_rows == 1


def test_a_row_of_a_name_alone_under_the_header_is_no_header() -> None:
    lines = [flush_right(right, 100, year) for right, year in ((200, "2023"), (290, "2022"))]
    lines += text_lines((60, 120, "ASSETS"), (60, 140, "Cash"))
    lines += [flush_right(right, 140, "5.0") for right in (200, 290)]
    grid = lattice((60, 120, 210, 300), (92, 110, 130, 150), header_rows=2)
    assert read(grid, lines) == [["", "2023", "2022"], ["ASSETS", "", ""], ["Cash", "5.0", "5.0"]]


def test_a_grid_whose_cells_lie_on_no_lattice_is_left_as_it_is() -> None:
    grid = lattice((60, 150, 260), (90, 110, 130))
    crooked = replace(grid.slots[3], bbox=BBox(170, 110, 260, 130))
    grid = replace(grid, slots=(*grid.slots[:3], crooked))
    assert mend(grid, text_lines((60, 100, "a")), ()) == grid


def test_grids_that_stand_on_each_other_with_the_same_columns_are_one() -> None:
    above, below = lattice((60, 150, 260), (90, 110, 130)), lattice((60, 150, 260), (131, 150, 170))
    (whole,) = stacked([below, above])
    assert (whole.rows, whole.cols, whole.bbox.y1) == (4, 2, 170)


def test_grids_with_other_columns_stay_apart() -> None:
    above, below = lattice((60, 150, 260), (90, 110, 130)), lattice((60, 190, 260), (131, 150, 170))
    assert len(stacked([above, below])) == 2


def test_a_grid_that_cuts_the_words_in_it_is_a_chart() -> None:
    grid = lattice((60, 110, 160, 210), (90, 110, 130))
    assert is_chart(grid, text_lines((98, 100, "27.85"), (148, 120, "41.25")), ())
    assert not is_chart(grid, text_lines((70, 100, "27.85"), (120, 120, "41.25")), ())


def test_a_grid_with_lines_across_its_cells_is_a_chart() -> None:
    grid = lattice((60, 110, 160, 210), (90, 110, 130))
    curves = tuple(BBox(65 + 50 * n, 95, 95 + 50 * n, 105) for n in range(3))
    assert is_chart(grid, [], curves)
    assert not is_chart(grid, [], tuple(slot.bbox for slot in grid.slots[1:4]))
