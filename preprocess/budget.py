"""What of a document is read: shortened to its budget, cut into parts that fit, each with what it refers to."""

from __future__ import annotations

from dataclasses import dataclass

from docmill.types import PreparedDocument, Shown
from preprocess.references import with_references
from preprocess.shorten import shorten
from preprocess.split import split


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be read, in tokens: `part_tokens` by one prompt, `document_tokens` by all together (None: all).

    Text that holds one of `critical_terms`, or stands under a heading that holds one of `critical_sections`, is kept
    whatever else must go.
    """

    part_tokens: int
    document_tokens: int | None = None
    critical_terms: tuple[str, ...] = ()
    critical_sections: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.document_tokens is not None and self.document_tokens < 1:
            raise ValueError(f"document_tokens is {self.document_tokens}; it must be above 0, or none for all")


def fit(prepared: PreparedDocument, budget: Budget) -> Shown:
    """The parts to read, and what they leave out. Raises PromptTooLong where what must be kept does not fit."""
    chunks, omitted = shorten(
        prepared.chunks, budget.document_tokens, terms=budget.critical_terms, sections=budget.critical_sections
    )
    parts = split(chunks, budget.part_tokens)
    return Shown(with_references(parts, chunks, prepared.pages, budget.part_tokens), omitted)
