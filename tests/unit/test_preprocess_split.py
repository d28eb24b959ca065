"""Parts never exceed the limit, lose nothing, keep the order, and cut tables only between rows with the head again."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.errors import PromptTooLong
from docmill.types import Chunk, PreparedDocument
from preprocess.split import split
from tests.pages import count, documents, paragraph, prepared, quick, table, without_heads


@quick
@given(documents(), st.integers(40, 400))
def test_no_part_is_over_the_limit_and_its_length_is_an_upper_bound(document: PreparedDocument, limit: int) -> None:
    for part in split(document.chunks, limit):
        assert part.tokens <= limit
        assert count([part.text])[0] <= part.tokens


@quick
@given(documents(), st.integers(40, 400))
def test_nothing_is_lost_and_the_order_is_kept(document: PreparedDocument, limit: int) -> None:
    whole = "".join(chunk.text for chunk in document.chunks)
    assert "".join(without_heads(part.text) for part in split(document.chunks, limit)) == without_heads(whole)


@quick
@given(documents(), st.integers(40, 400))
def test_a_table_is_cut_only_between_rows_with_its_head_repeated(document: PreparedDocument, limit: int) -> None:
    for part in split(document.chunks, limit):
        lines = part.text.split("\n")
        for above, line in pairwise(lines):
            if re.match(r"\|t\d+r\d+\|", line):
                assert above.startswith("|") and re.fullmatch(r"\|t\d+r\d+\|\d+\.5\|", line)


@quick
@given(documents(), st.integers(40, 400))
def test_every_piece_is_shown_where_its_text_is(document: PreparedDocument, limit: int) -> None:
    parts = split(document.chunks, limit)
    for part in parts:
        assert all(piece.printed.text in part.text for piece in part.pieces)
    cells = {(piece.table_id, piece.row, piece.col) for part in parts for piece in part.pieces if piece.table_id}
    assert cells == {(p.table_id, p.row, p.col) for chunk in document.chunks for p in chunk.pieces if p.table_id}


@quick
@given(documents())
def test_a_document_that_fits_is_one_part(document: PreparedDocument) -> None:
    parts = split(document.chunks, max(1, document.tokens) + 10)
    assert [(part.number, part.of) for part in parts] == ([(1, 1)] if document.chunks else [])


def test_parts_are_numbered_and_each_names_its_page() -> None:
    parts = split(prepared([[table(1, 60, 1)], [paragraph("The end of it.", 2)]]).chunks, 120)
    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert all(part.of == len(parts) and part.text.startswith("[p") for part in parts)


def test_a_cut_near_the_end_of_a_page_is_made_at_the_page() -> None:
    long = "word " * 80 + "end."
    document = prepared([[paragraph(long, 1)], [paragraph("Next page begins.", 2), paragraph(long, 2)]])
    first, second = split(document.chunks, 100)
    assert "Next page begins." not in first.text
    assert second.text.startswith("[p2]\nNext page begins.")


def test_a_long_paragraph_is_cut_at_the_ends_of_its_sentences() -> None:
    parts = split(prepared([[paragraph("One two three four five six. " * 20, 1)]]).chunks, 60)
    assert len(parts) > 1
    assert all(part.text.rstrip().endswith("six.") for part in parts)


def test_a_single_row_over_the_limit_is_refused_with_the_page_and_both_numbers() -> None:
    row = Chunk("|" + "x " * 50 + "|\n", 52, 7, ())
    chunk = Chunk("head\n" + row.text, 54, 7, (), "head\n", 2, (), (row,))
    with pytest.raises(PromptTooLong, match=r"page 7: .* 5\d tokens .* limit of 30"):
        split((chunk,), 30)
