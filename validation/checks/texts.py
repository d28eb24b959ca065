"""What is copied from the document is printed in it, whole; what is the model's own is not copied from the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from validation.case import Case, Hit, hit_at
from validation.fields import descriptions, example_values
from validation.grounding import Ground
from validation.text import half

#: Letters of a sentence of the prompt that are no chance, and the share of the answer that they must be.
_SENTENCE, _MOSTLY = 10, 0.4
#: Letters of an example's value that may not stand there by chance.
_TELLING = 4


def grounded(case: Case, *, sources: Sequence[str]) -> Iterator[Hit]:
    """A text that is not in the document, or only as a part of a longer word or number."""
    return (hit_at(grounding) for grounding in case.standing(*sources) if grounding.ground != Ground.FOUND)


def copied(case: Case) -> Iterator[Hit]:
    """Prose that is what the schema says of a field, or a sentence of the prompt, and nothing of the document."""
    outline = {_letters(text) for text in descriptions(case.schema)} - {""}
    prompt = _letters(" ".join(case.prompt))
    for leaf in case.prose:
        said = _letters(leaf.text)
        shared = next((part for part in _sentences(leaf.text) if len(part) >= _SENTENCE and part in prompt), "")
        if said in outline or (shared and len(shared) > len(said) * _MOSTLY):
            yield Hit(path=leaf.path, text=leaf.text)


def leaked(case: Case) -> Iterator[Hit]:
    """A value that the document does not have, and the prompt's worked example has."""
    for grounding in (one for one in case.grounded if one.ground != Ground.FOUND):
        said = _letters(grounding.leaf.text)
        if len(said) >= _TELLING and said in _letters(" ".join((*case.prompt, *example_values(case.schema)))):
            yield hit_at(grounding)


def _sentences(text: str) -> Iterator[str]:
    return (_letters(part) for part in re.split(r"[.!?;。！？；\n]+", text))


@lru_cache(256)
def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, half(text).lower()))
