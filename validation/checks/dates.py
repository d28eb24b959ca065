"""Every date of a result is printed in the document, and means one day."""

from __future__ import annotations

from collections.abc import Iterator

from validation.case import Case, Hit, hit_at
from validation.dates import parse_date
from validation.grounding import Ground


def grounded(case: Case) -> Iterator[Hit]:
    """A date that is not in the document, in no style."""
    for grounding in case.standing("date"):
        if grounding.ground in (Ground.ABSENT, Ground.UNREADABLE):
            yield hit_at(grounding)


def ambiguous(case: Case) -> Iterator[Hit]:
    """A date such as 03/04/2024, which print alone does not settle."""
    for grounding in case.standing("date"):
        dated = parse_date(grounding.leaf.text)
        if dated is not None and dated.ambiguous:
            yield hit_at(grounding, " / ".join(day.isoformat() for day in dated.readings))


def readable(case: Case) -> Iterator[Hit]:
    """A date that is printed so, but that no calendar has (30 February), or that is none."""
    for grounding in case.standing("date"):
        dated = parse_date(grounding.leaf.text)
        if grounding.ground == Ground.FOUND and (dated is None or dated.impossible):
            yield hit_at(grounding)
