"""Every citation leads to a place that holds the cited text, and the cited text is the value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from docmill.types import BBox, Citation, Page
from validation.case import Case, Hit, hit_at
from validation.dates import parse_date
from validation.fields import at
from validation.grounding import Ground, Grounding, ground
from validation.places import Place
from validation.text import fold

#: Points by which a box may stand over the edge of its page: glyphs do, printers round.
_OVERHANG = 2.0


def present(case: Case) -> Iterator[Hit]:
    """A value that is in the document, and whose place is not given; silent for a result that cites nothing at all.

    Such a result came from elsewhere: its values are located by validation itself.
    """
    for grounding in case.grounded if case.citations else ():
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
        if page is None or not _on_page(citation.bbox, page) or _holds(citation.bbox, case.cited(citation.path)):
            continue
        held = case.facts.text_in(citation.page, citation.bbox)
        if fold(citation.text) not in fold(held):
            yield _hit(citation, held[:80])


def _holds(box: BBox, place: Place | None) -> bool:
    """Whether the stretch that is cited lies in the box: then nothing else need be looked at."""
    own = place.bbox if place else None
    if own is None:
        return False
    left, top = own.x0 - box.x0, own.y0 - box.y0
    right, bottom = box.x1 - own.x1, box.y1 - own.y1
    return min(left, top, right, bottom) >= -_OVERHANG / 2


def agree(case: Case) -> Iterator[Hit]:
    """A citation whose text is not the value that it is given for."""
    for citation in case.extraction.citations:
        value = at(case.extraction.result, citation.path)
        if value is None or not _same(str(value), citation, case):
            yield _hit(citation, "" if value is None else str(value))


def _same(value: str, citation: Citation, case: Case) -> bool:
    """The value is what is cited, or a number or day that stands at the cited place in another style."""
    if fold(value) == fold(citation.text):
        return True
    place = case.cited(citation.path)
    for grounding in case.grounded:
        if grounding.leaf.path == citation.path and grounding.ground == Ground.FOUND:
            return any(_overlap(place, other) for other in grounding.places) or _alike(grounding, citation, case)
    return False


def _alike(grounding: Grounding, citation: Citation, case: Case) -> bool:
    cited = replace(grounding.leaf, value=citation.text)
    other = ground(cited, case.facts)
    numbers = set(grounding.meant.values()) & set(other.meant.values())
    day, cited_day = parse_date(grounding.leaf.text), parse_date(citation.text)
    return bool(numbers) or bool(day and cited_day and set(day.readings) & set(cited_day.readings))


def _overlap(one: Place | None, other: Place) -> bool:
    return one is not None and one.piece is other.piece and one.start < other.stop and other.start < one.stop


def _on_page(box: BBox, page: Page) -> bool:
    upright = box.x0 < box.x1 and box.y0 < box.y1
    within = box.x0 >= -_OVERHANG and box.y0 >= -_OVERHANG
    return upright and within and box.x1 <= page.width + _OVERHANG and box.y1 <= page.height + _OVERHANG


def _hit(citation: Citation, detail: str) -> Hit:
    return Hit(path=citation.path, text=citation.text, detail=detail, page=citation.page, bbox=citation.bbox)
