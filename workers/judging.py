"""Judging a result: the rules' verdict, with the confidence of each value.

A result may come from an engine of ours, from a file, or from a reviewer who corrected it. Where it comes without
citations, each value is looked up in the document: beside its label or with its neighbours if it is printed there, else
where it stands first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from docmill.types import Citation, Extraction, PreparedDocument, Usage, Verdict
from validation.confidence import with_confidence
from validation.examples import cite
from validation.facts import Facts, facts_of
from validation.fields import Leaf, at, leaves
from validation.labels import labels_of, stands_beside, stands_with
from validation.places import Place
from validation.rules import Ruleset
from validation.validate import validate

#: A value that is printed more often than this (a zero, "CNY") is not looked at everywhere.
_MOST_PLACES = 50


def judge_result(
    result: dict[str, Any],
    citations: tuple[Citation, ...] | None,
    document: PreparedDocument,
    *,
    schema: Mapping[str, Any],
    ruleset: Ruleset,
    prompt: Iterable[str] = (),
) -> Verdict:
    """The verdict on a result of any origin. Its values are looked up where it brings no citations."""
    found = tuple(locate(result, schema, facts_of(document))) if citations is None else citations
    return judge(as_read(result, found), document, schema=schema, ruleset=ruleset, prompt=prompt)


def judge(
    extraction: Extraction,
    document: PreparedDocument,
    *,
    schema: Mapping[str, Any],
    ruleset: Ruleset,
    prompt: Iterable[str] = (),
) -> Verdict:
    """What the rules say of a reading, and how sure each of its values is; `prompt`: what the model was told."""
    verdict = validate(extraction, document, schema=schema, ruleset=ruleset, prompt=prompt)
    return with_confidence(verdict, extraction, document, schema)


def as_read(result: dict[str, Any], citations: tuple[Citation, ...]) -> Extraction:
    """A result as if an engine had read it."""
    return Extraction(result, citations, Usage(), "given", "given", "none", "", 0, "stop", "")


def locate(result: Mapping[str, Any], schema: Mapping[str, Any], facts: Facts) -> Iterator[Citation]:
    """A citation for each value that the document prints."""
    by_path = {leaf.path: leaf for leaf in leaves(result, schema)}
    for citation in cite(result, schema, facts, {}):
        leaf = by_path[citation.path]
        better = next((place for place in _places(citation, facts) if _belongs(place, leaf, result, facts)), None)
        yield citation if better is None or better.bbox is None else _moved(citation, better)


def _places(citation: Citation, facts: Facts) -> Iterator[Place]:
    for number, place in enumerate(facts.everywhere(citation.text)):
        if number == _MOST_PLACES:
            return
        yield place


def _belongs(place: Place, leaf: Leaf, result: Mapping[str, Any], facts: Facts) -> bool:
    """Whether the value stands here as the field that it is given for."""
    if leaf.labels:
        return stands_beside(place, labels_of(leaf.labels), facts)
    holder = leaf.path.rpartition("/")[0]
    words = [text for text in _texts(at(result, holder)) if text != leaf.text] if holder else []
    return any(stands_with(place, text, facts) for text in words)


def _texts(holder: Any) -> Iterator[str]:
    """What an item of a list says of itself beside its number."""
    if isinstance(holder, dict):
        yield from (value for value in holder.values() if isinstance(value, str) and value.strip())


def _moved(citation: Citation, place: Place) -> Citation:
    piece = place.piece
    text, box = piece.printed.text[place.start : place.stop], place.bbox
    assert box is not None, "the caller has looked"
    return replace(
        citation, text=text, page=piece.page, bbox=box, table_id=piece.table_id, row=piece.row, col=piece.col
    )
