"""Every identifier, name and quotation of a result is printed in the document, whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from validation.case import Case, Hit, hit_at
from validation.grounding import Ground


def grounded(case: Case, *, sources: Sequence[str]) -> Iterator[Hit]:
    """A text that is not in the document, or only as a part of a longer word or number."""
    return (hit_at(grounding) for grounding in case.standing(*sources) if grounding.ground != Ground.FOUND)
