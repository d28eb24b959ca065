"""What a rule looks at, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from docmill.types import BBox, Citation, Extraction
from validation.facts import Facts
from validation.fields import Leaf, leaves
from validation.grounding import Ground, Grounding, ground
from validation.places import Place
from validation.relative import document_date


@dataclass(frozen=True)
class Case:
    """An extraction with the facts of its document; what several rules need is worked out once.

    `prompt` is what the model was told besides the document: instructions, worked examples.
    """

    extraction: Extraction
    facts: Facts
    schema: Mapping[str, Any]
    prompt: tuple[str, ...] = ()

    @cached_property
    def leaves(self) -> tuple[Leaf, ...]:
        return tuple(leaves(self.extraction.result, self.schema))

    @cached_property
    def prose(self) -> tuple[Leaf, ...]:
        """What the model wrote in its own words; a choice from a list is no prose."""
        return tuple(leaf for leaf in self.leaves if leaf.prose)

    @cached_property
    def grounded(self) -> tuple[Grounding, ...]:
        """Every value that claims to be in the document, with its standing."""
        return tuple(ground(leaf, self.facts) for leaf in self.leaves if leaf.grounded)

    @cached_property
    def document_date(self) -> date | None:
        """The date that the document gives itself."""
        return document_date(self.facts)

    @cached_property
    def by_path(self) -> Mapping[str, Grounding]:
        return {grounding.leaf.path: grounding for grounding in self.grounded}

    @cached_property
    def citations(self) -> Mapping[str, Citation]:
        return {citation.path: citation for citation in self.extraction.citations}

    @cached_property
    def places(self) -> Mapping[str, Place]:
        """Where each value that is in the document is cited, or else first found."""
        found = [grounding for grounding in self.grounded if grounding.ground == Ground.FOUND]
        places = ((grounding.leaf.path, self._place(grounding)) for grounding in found)
        return {path: place for path, place in places if place is not None}

    def _place(self, grounding: Grounding) -> Place | None:
        path = grounding.leaf.path
        return self.cited(path) if path in self.citations else next(iter(grounding.places), None)

    def cited(self, path: str) -> Place | None:
        """The stretch of the document that the citation of a value leads to."""
        if path not in self._cited:
            citation = self.citations.get(path)
            self._cited[path] = self.facts.place_of(citation) if citation else None
        return self._cited[path]

    @cached_property
    def _cited(self) -> dict[str, Place | None]:
        return {}

    def standing(self, *sources: str) -> Iterator[Grounding]:
        """The grounded values of some sources."""
        return (grounding for grounding in self.grounded if grounding.leaf.source in sources)


@dataclass(frozen=True, slots=True)
class Hit:
    """A place where a rule does not hold. `text` and `detail` fill the rule's message.

    `broken` marks a rule that could not be applied: nobody knows whether it holds.
    """

    path: str | None = None
    text: str = ""
    detail: str = ""
    page: int | None = None
    bbox: BBox | None = None
    broken: bool = False


Judge = Callable[[Case], Iterator[Hit]]
"""What a rule comes down to: nothing if it holds."""


def hit_at(grounding: Grounding, detail: str = "") -> Hit:
    """A hit on a grounded value, with the place of the value or of its twin."""
    place = grounding.places[0] if grounding.places else None
    return Hit(
        path=grounding.leaf.path,
        text=grounding.leaf.text,
        detail=detail or grounding.twin,
        page=place.page if place else None,
        bbox=place.bbox if place else None,
    )
