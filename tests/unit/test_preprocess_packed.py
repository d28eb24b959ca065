"""Packed characters say what single ones say: the same text, the same boxes, row by row or all rows at once."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.types import BBox
from preprocess.glyphs import Line, line_of
from preprocess.join import joined, row_printed, rows_printed
from preprocess.packed import Glyph, Glyphs

quick = settings(max_examples=30, deadline=None)
letters = st.sampled_from("a1,.现金 ")


@st.composite
def lines(draw: st.DrawFn) -> Line:
    """Characters from left to right with gaps of any width."""
    x, y = draw(st.integers(0, 300)), draw(st.integers(0, 600))
    glyphs = []
    for char in draw(st.text(letters, min_size=1, max_size=12)):
        x += draw(st.sampled_from([0, 0, 0, 1, 3, 9, 30]))
        glyphs.append(Glyph(char, x, y, x + 5, y + 10, draw(st.sampled_from([10.0, 10.0, 6.0]))))
        x += 5
    return line_of(glyphs)


@quick
@given(st.lists(lines(), min_size=1, max_size=3))
def test_glyphs_come_out_as_they_went_in(some: list[Line]) -> None:
    for line in some:
        glyphs = list(line.glyphs)
        assert list(Glyphs.of(glyphs)) == glyphs
        assert line.text == "".join(glyph.char for glyph in glyphs)
        assert line.bbox == BBox(glyphs[0].x0, glyphs[0].y0, glyphs[-1].x1, glyphs[0].y1)
    assert [glyph for line in some for glyph in line.glyphs] == list(Glyphs.joined([line.glyphs for line in some]))


@quick
@given(st.lists(st.lists(lines(), min_size=1, max_size=3), min_size=1, max_size=4))
def test_many_rows_in_one_go_are_the_rows_one_by_one(rows: list[list[Line]]) -> None:
    assert rows_printed(rows, segment="  ") == [row_printed(row, segment="  ") for row in rows]


@quick
@given(lines())
def test_every_character_of_a_row_keeps_its_own_box(line: Line) -> None:
    printed = row_printed([line], segment="\t")
    own = [glyph for glyph in line.glyphs if glyph.char != " "]
    read = [(char, printed.character_box(at)) for at, char in enumerate(printed.text) if printed.character_box(at)]
    assert read == [(glyph.char, glyph.box) for glyph in own]
    assert set(printed.text) - {glyph.char for glyph in own} <= {" ", "\t", "^"}


@quick
@given(lines())
def test_a_wide_gap_parts_columns_and_a_narrow_one_nothing(line: Line) -> None:
    text = row_printed([line], segment="\t").text
    own = [glyph for glyph in line.glyphs if glyph.char != " "]
    wide = sum(after.x0 - before.x1 > 1.6 * max(before.size, after.size) for before, after in pairwise(own))
    assert text.count("\t") == wide


def test_a_glyph_that_stands_for_several_letters_gives_each_its_box() -> None:
    glyphs = Glyphs.of([Glyph("ffi", 0, 0, 9, 10, 10.0), Glyph("x", 9, 0, 14, 10, 10.0)])
    assert glyphs.text == "ffix"
    assert [glyph.box for glyph in glyphs][:3] == [BBox(0, 0, 9, 10)] * 3


def test_what_is_put_between_pieces_stands_on_no_page() -> None:
    one = row_printed([line_of([Glyph("a", 1, 1, 2, 2, 10.0)])])
    both = joined([one, " ", one])
    assert (both.text, both.character_box(1)) == ("a a", None)
    assert both.character_box(2) == BBox(1, 1, 2, 2)
