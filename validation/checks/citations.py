"""Every citation leads to a place that holds the cited text, and the cited text is the value."""

from __future__ import annotations

from collections.abc import Iterator

from docmill.types import BBox, Citation, Page
from validation.case import Case, Hit, hit_at
from validation.dates import parse_date
from validation.fields import at
from validation.grounding import Ground
from validation.grounding import agree as units_agree
from validation.numbers import readings
from validation.text import fold

#: Points by which a box may stand over the edge of its page: glyphs do, printers round.
_OVERHANG = 2.0


def present(case: Case) -> Iterator[Hit]:
    """A value that is in the document, and whose place is not given."""
    for grounding in case.grounded:
        if grounding.ground == Ground.FOUND and grounding.leaf.path not in case.citations:
            yield hit_at(grounding)


def resolve(case: Case) -> Iterator[Hit]:
    """A citation whose page is not in the document, or whose box is empty or not on its page."""
    for citation in case.extraction.citations:
        page = case.facts.pages.get(citation.page)
        if page is None:
            yield _hit(citation, f"page {citation.page} of {len(case.facts.pages)}")
        elif not _on_page(citation.bbox, page):
            yield _hit(citation, f"box {tuple(round(edge, 1) for edge in citation.bbox)}")


def hold(case: Case) -> Iterator[Hit]:
    """A citation whose box does not contain its text."""
    for citation in case.extraction.citations:
        page = case.facts.pages.get(citation.page)
        if page is not None and _on_page(citation.bbox, page):
            held = case.facts.text_in(citation.page, citation.bbox)
            if fold(citation.text) not in fold(held):
                yield _hit(citation, held[:80])


def agree(case: Case) -> Iterator[Hit]:
    """A citation whose text is not the value that it is given for."""
    for citation in case.extraction.citations:
        value = at(case.extraction.result, citation.path)
        if value is None or not _same(str(value), citation.text):
            yield _hit(citation, "" if value is None else str(value))


def _same(value: str, cited: str) -> bool:
    if fold(value) == fold(cited):
        return True
    if any(n.value == m.value and units_agree(n, m) for n in readings(value) for m in readings(cited)):
        return True
    day, cited_day = parse_date(value), parse_date(cited)
    return day is not None and cited_day is not None and bool(day.readings) and day.readings == cited_day.readings


def _on_page(box: BBox, page: Page) -> bool:
    upright = box.x0 < box.x1 and box.y0 < box.y1
    within = box.x0 >= -_OVERHANG and box.y0 >= -_OVERHANG
    return upright and within and box.x1 <= page.width + _OVERHANG and box.y1 <= page.height + _OVERHANG


def _hit(citation: Citation, detail: str) -> Hit:
    return Hit(path=citation.path, text=citation.text, detail=detail, page=citation.page, bbox=citation.bbox)
