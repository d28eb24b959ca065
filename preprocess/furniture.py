"""Running headers, footers and page numbers: what stands at the edge of the page and comes again on other pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from docmill.types import BBox, Block, BlockKind
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
    r"^(?:[-–—]\s*\d{1,4}\s*[-–—]|page\s+\d+.*|第\s*\d+\s*页.*|\d{1,4}\s*/\s*\d{1,4})$", re.IGNORECASE
)

Key = tuple[str, str]


class Furniture:
    """What counts as header or footer in one document, learnt from all its pages (items and height of each)."""

    def __init__(self, pages: Sequence[tuple[Sequence[Item], float]]) -> None:
        seen = Counter(
            key
            for number, (items, height) in enumerate(pages, start=1)
            for key in {key for _, key in _edge_rows(items, height, number)}
        )
        enough = 2 if len(pages) <= 4 else max(3, len(pages) // 20)
        self._repeated = {key for key, count in seen.items() if count >= enough}

    def take(self, items: Sequence[Item], height: float, page: int) -> tuple[list[Item], list[tuple[str, Row]]]:
        """A page's items without its furniture, and the furniture with its zone ("header" or "footer")."""
        taken: dict[int, tuple[str, Row]] = {}
        for row, key in _edge_rows(items, height, page):
            if key in self._repeated or _SURELY_NUMBER.match(row.text.strip()):
                taken[id(row)] = (key[0], row)
        return [item for item in items if id(item) not in taken], list(taken.values())


def _edge_rows(items: Sequence[Item], height: float, page: int) -> list[tuple[Row, Key]]:
    """The rows in the page's edge zones with what identifies them on other pages."""
    rows = sorted((item for item in items if isinstance(item, Row)), key=lambda row: row.bbox.y0)
    found = []
    for zone, ordered in (("header", rows), ("footer", rows[::-1])):
        for row in ordered[:_DEPTH]:
            pattern = _pattern(row.text, page) if _in_zone(row.bbox, height, zone) else None
            if pattern is not None:
                found.append((row, (zone, pattern)))
    return found


def _in_zone(box: BBox, height: float, zone: str) -> bool:
    return box.y1 <= height * ZONE if zone == "header" else box.y0 >= height * (1 - ZONE)


def _pattern(text: str, page: int) -> str | None:
    """The text with what changes from page to page taken out; None for what must not be lost (figures, units).

    A bare number is a page number only if it counts with the pages.
    """
    number = _PAGE_NUMBER.match(text.strip())
    if number:
        printed = number["number"]
        return f"#{int(printed) - page}" if printed.isdigit() else "#roman"
    pattern = re.sub(r"\d+", "#", " ".join(text.split()))
    return pattern if any(char.isalpha() for char in pattern) and unit_of(text) is None else None


def furniture_blocks(taken: Sequence[tuple[str, Row]], page: int, source: str) -> tuple[list[Block], list[Block]]:
    """Header blocks and footer blocks, from the top down."""
    headers: list[Block] = []
    footers: list[Block] = []
    for zone, row in sorted(taken, key=lambda pair: pair[1].bbox.y0):
        kind, drawer = (BlockKind.HEADER, headers) if zone == "header" else (BlockKind.FOOTER, footers)
        drawer.append(Block(kind, page, row.bbox, row.printed, source=source))
    return headers, footers


def is_page_number(text: str) -> bool:
    """Whether a header or footer says nothing but the page's number."""
    return bool(_PAGE_NUMBER.match(text.strip()))
