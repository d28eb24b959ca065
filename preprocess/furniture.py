"""Running headers, footers and page numbers: what stands at the edge of the page and comes again on other pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from docmill.types import BBox, Block, BlockKind, Printed
from preprocess.text import Item, Row
from preprocess.units import unit_of

#: Share of the page's height at top and bottom where furniture stands.
ZONE: Final = 0.12
#: Rows from the edge that may be furniture.
_DEPTH: Final = 4
_PAGE_NUMBER: Final = re.compile(
    r"^[\s\-–—·|]*(?:page|p\.|第)?\s*(?:[a-z]-)?(?P<number>\d{1,4}|[ivxlc]{1,6})\s*页?"
    r"(?:\s*(?:of|/|,|，|共)?\s*共?\s*\d{1,4}\s*页?)?[\s\-–—·|]*$",
    re.IGNORECASE,
)
_SURELY_NUMBER: Final = re.compile(
    r"^(?:[-–—]\s*\d{1,4}\s*[-–—]|page\s+\d+(?:\s*(?:of|/)\s*\d+)?|第\s*\d+\s*页(?:\W*共\s*\d+\s*页)?)$", re.IGNORECASE
)

#: A number that may be a page number: short, and no part of a figure or a date.
_SMALL_NUMBER: Final = re.compile(r"(?<![\d.,/-])\d{1,4}(?![\d.,-])")

Key = tuple[str, str]


class Furniture:
    """What counts as header or footer in one document, learnt from all its pages (items and height of each)."""

    def __init__(self, pages: Sequence[tuple[Sequence[Item], float]]) -> None:
        seen = Counter(
            key
            for number, (items, height) in enumerate(pages, start=1)
            for key in {key for _, keys in _edge_rows(items, height, number) for key in keys}
        )
        enough = 2 if len(pages) <= 4 else max(3, len(pages) // 20)
        self._repeated = {key for key, count in seen.items() if count >= enough}

    def take(self, items: Sequence[Item], height: float, page: int) -> tuple[list[Item], list[tuple[str, Row]]]:
        """A page's items without its furniture, and the furniture with its zone ("header" or "footer")."""
        taken: dict[int, tuple[str, Row]] = {}
        for row, keys in _edge_rows(items, height, page):
            if not self._repeated.isdisjoint(keys) or _SURELY_NUMBER.match(row.text.strip()):
                taken[id(row)] = (keys[0][0], row)
        return [item for item in items if id(item) not in taken], list(taken.values())


def _edge_rows(items: Sequence[Item], height: float, page: int) -> list[tuple[Row, list[Key]]]:
    """The outermost rows and those in the page's edge zones, with what identifies them on other pages."""
    rows = sorted((item for item in items if isinstance(item, Row)), key=lambda row: row.bbox.y0)
    found = []
    for zone, ordered in (("header", rows), ("footer", rows[::-1])):
        for depth, row in enumerate(ordered[:_DEPTH]):
            outermost = depth == 0 and len(rows) > 1
            patterns = _patterns(row.text, page) if outermost or _in_zone(row.bbox, height, zone) else []
            if patterns:
                found.append((row, [(zone, pattern) for pattern in patterns]))
    return found


def _in_zone(box: BBox, height: float, zone: str) -> bool:
    return box.y1 <= height * ZONE if zone == "header" else box.y0 >= height * (1 - ZONE)


def _patterns(text: str, page: int) -> list[str]:
    """What may come again on another page: the text itself, or with one number in it that counts with the pages.

    Nothing else may differ, so that rows of figures are never taken for furniture; units are not furniture either.
    """
    plain = " ".join(text.split())
    numbers = list(_SMALL_NUMBER.finditer(plain))
    patterns = [_counting(plain, match, page) for match in {id(m): m for m in numbers[:1] + numbers[-1:]}.values()]
    roman = _PAGE_NUMBER.match(plain)
    if roman and not roman["number"].isdigit():
        patterns.append("#roman")
    if any(char.isalpha() for char in plain):
        patterns.append(plain)
    return patterns if unit_of(text) is None else []


def _counting(text: str, match: re.Match[str], page: int) -> str:
    return f"{text[: match.start()]}#{int(match[0]) - page}{text[match.end() :]}"


def furniture_blocks(taken: Sequence[tuple[str, Row]], page: int, source: str) -> tuple[list[Block], list[Block]]:
    """Header blocks and footer blocks, from the top down; what stands apart in a row is a block of its own."""
    headers: list[Block] = []
    footers: list[Block] = []
    for zone, row in sorted(taken, key=lambda pair: pair[1].bbox.y0):
        kind, drawer = (BlockKind.HEADER, headers) if zone == "header" else (BlockKind.FOOTER, footers)
        drawer.extend(Block(kind, page, part.box() or row.bbox, part, source=source) for part in _segments(row.printed))
    return headers, footers


def _segments(printed: Printed) -> Iterator[Printed]:
    for match in re.finditer(r"\S+(?: \S+)*", printed.text):
        start, stop = match.span()
        yield Printed(match[0], printed.boxes[16 * start : 16 * stop])


def is_page_number(text: str) -> bool:
    """Whether a header or footer says nothing but the page's number."""
    return bool(_PAGE_NUMBER.match(text.strip()))
