"""What is copied from the document is printed in it, whole; what is the model's own is not copied from the prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from validation.case import Case, Hit, hit_at
from validation.fields import descriptions
from validation.grounding import Ground
from validation.text import half


def grounded(case: Case, *, sources: Sequence[str]) -> Iterator[Hit]:
    """A text that is not in the document, or only as a part of a longer word or number."""
    return (hit_at(grounding) for grounding in case.standing(*sources) if grounding.ground != Ground.FOUND)


def copied(case: Case) -> Iterator[Hit]:
    """Prose that is what the schema says of a field, and nothing of the document."""
    outline = {_letters(text) for text in descriptions(case.schema)} - {""}
    return (Hit(path=leaf.path, text=leaf.text) for leaf in case.prose if _letters(leaf.text) in outline)


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, half(text).lower()))
