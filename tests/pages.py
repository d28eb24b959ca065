"""Documents of pages, made by hand and by hypothesis, as the parts of a prompt are made from them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hypothesis import settings
from hypothesis import strategies as st

from docmill.types import BBox, Block, BlockKind, Cell, Page, PreparedDocument, Printed, Region, Table
from preprocess.render import render

BOX = BBox(0, 0, 10, 10)
quick = settings(max_examples=20, deadline=None)


def count(texts: Sequence[str]) -> list[int]:
    """A token for each word, sign and line break; never more than a character for a token."""
    return [len(re.findall(r"\w+|[^\w ]", text)) for text in texts]


def paragraph(text: str, page: int) -> Block:
    return Block(BlockKind.PARAGRAPH, page, BOX, Printed(text))


def table(number: int, body: int, page: int) -> Block:
    texts = [["name", "amount"], *([f"t{number}r{row}", f"{row}.5"] for row in range(body))]
    cells = tuple(
        Cell(row, col, Printed(text), page, BOX, header=row == 0)
        for row, line in enumerate(texts)
        for col, text in enumerate(line)
    )
    found = Table(f"t{number}", cells, body + 1, 2, (Region(page, BOX),), "ruled", header_rows=1)
    return Block(BlockKind.TABLE, page, BOX, Printed(""), found)


def prepared(pages: list[list[Block]]) -> PreparedDocument:
    chunks = render([Page(number, 100, 100, tuple(blocks)) for number, blocks in enumerate(pages, start=1)], count)
    return PreparedDocument("doc", (), chunks, sum(chunk.tokens for chunk in chunks), b"", "test")


sentence = st.integers(1, 8).map(lambda words: "Some " + "word " * words + "end.")
paragraphs = st.lists(sentence, min_size=1, max_size=6).map(" ".join)
chinese = st.integers(1, 5).map(lambda count: "本行对该客户的授信余额为四百万元。" * count)


@st.composite
def documents(draw: st.DrawFn) -> PreparedDocument:
    pages = []
    for page in range(1, draw(st.integers(1, 4)) + 1):
        texts = draw(st.lists(st.one_of(paragraphs, chinese), max_size=3))
        blocks = [paragraph(f"P{page}B{index}. {text}", page) for index, text in enumerate(texts)]
        sizes = draw(st.lists(st.integers(1, 30), max_size=2))
        pages.append([*blocks, *(table(page * 10 + index, size, page) for index, size in enumerate(sizes))])
    return prepared(pages)


def without_heads(text: str) -> str:
    return re.sub(r"\[p\d+\]\n|\|name\|amount\|\n\|---\|---\|\n", "", text)
