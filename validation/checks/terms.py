"""Words that must or must not stand in a result, and statutes that exist.

A statute that the document itself cites needs no table; what is in neither is a finding for a person.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from validation.case import Case, Hit
from validation.fields import at
from validation.statutes import known_statutes, statutes_in
from validation.text import fold, half

#: So many of a list of terms stand in a message.
_SHOWN = 3


def required(case: Case, *, any_of: Sequence[str], path: str = "") -> Iterator[Hit]:
    """One of the terms stands in the value at `path` (the whole result by default)."""
    text = fold(_text_of(at(case.extraction.result, path))).lower()
    if not any(fold(term).lower() in text for term in any_of):
        yield Hit(path=path or None, text=_some(any_of))


def _some(terms: Sequence[str]) -> str:
    """The first terms and how many there are besides."""
    others = len(terms) - _SHOWN
    return ", ".join(terms[:_SHOWN]) + (f" … +{others}" if others > 0 else "")


def forbidden(case: Case, *, any_of: Sequence[str]) -> Iterator[Hit]:
    """None of the terms stands in what the model wrote itself."""
    for leaf in case.prose:
        text = fold(leaf.text).lower()
        for term in any_of:
            if fold(term).lower() in text:
                yield Hit(path=leaf.path, text=term)


def statutes(case: Case, *, table: str | None = None) -> Iterator[Hit]:
    """A statute that the model cites is cited by the document, or is in the table and has such an article."""
    for leaf in case.prose:
        for citation in statutes_in(half(leaf.text)):
            reason = known_statutes(Path(table) if table else None).doubt(citation, case.document_date)
            if reason and not case.facts.find(citation.group()):
                yield Hit(path=leaf.path, text=citation.group(), detail=reason)


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(map(_text_of, value.values()))
    if isinstance(value, list):
        return " ".join(map(_text_of, value))
    return "" if value is None else str(value)
