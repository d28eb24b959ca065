"""The named checks that rules refer to, each with the JSON Schema of its parameters.

A check is a generator of hits: `check(case, **parameters)`. It knows no severity and no message; those are the rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from validation.case import Hit
from validation.checks import (
    arithmetic,
    cells,
    citations,
    consistency,
    dates,
    ids,
    labels,
    numbers,
    repetition,
    schema,
    terms,
    texts,
)

_TEXT = {"type": "string", "minLength": 1}
_POINTER = {"type": "string", "pattern": "^/"}
_POINTERS = {"type": "array", "items": _POINTER, "minItems": 1}
_TEXTS = {"type": "array", "items": _TEXT, "minItems": 1}


@dataclass(frozen=True, slots=True)
class Check:
    """`parameters` maps each parameter to its schema; `needed` are those without a default."""

    run: Callable[..., Iterator[Hit]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    needed: tuple[str, ...] = ()

    @property
    def schema(self) -> Mapping[str, Any]:
        return {
            "type": "object",
            "properties": dict(self.parameters),
            "required": list(self.needed),
            "additionalProperties": False,
        }


CHECKS: Mapping[str, Check] = {
    "schema.conforms": Check(schema.conforms),
    "schema.complete": Check(schema.complete),
    "schema.finished": Check(schema.finished),
    "numbers.readable": Check(numbers.readable),
    "numbers.grounded": Check(numbers.grounded),
    "numbers.scale": Check(numbers.scale),
    "numbers.bare": Check(numbers.bare),
    "numbers.sign": Check(numbers.sign),
    "numbers.unit": Check(numbers.unit),
    "numbers.bracketed": Check(numbers.bracketed),
    "numbers.prose": Check(numbers.prose, {"digits": {"type": "integer", "minimum": 1}}),
    "cells.period": Check(cells.period, {"of": _POINTER}),
    "cells.named": Check(cells.named),
    "dates.readable": Check(dates.readable),
    "dates.grounded": Check(dates.grounded),
    "dates.ambiguous": Check(dates.ambiguous),
    "texts.grounded": Check(
        texts.grounded,
        {"sources": {"type": "array", "items": {"enum": ["id", "verbatim", "quote"]}, "minItems": 1}},
        ("sources",),
    ),
    "texts.copied": Check(texts.copied),
    "texts.leaked": Check(texts.leaked),
    "ids.check_digits": Check(ids.check_digits),
    "consistency.twins": Check(consistency.twins),
    "consistency.words_and_figures": Check(consistency.words_and_figures),
    "consistency.currency": Check(
        consistency.currency, {"amount": _POINTER, "currency": _POINTER}, ("amount", "currency")
    ),
    "labels.beside": Check(labels.beside),
    "labels.is_label": Check(labels.is_label),
    "labels.items": Check(labels.items, {"each": _POINTER, "value": _TEXT, "label": _TEXT}, ("each", "value", "label")),
    "citations.present": Check(citations.present),
    "citations.resolve": Check(citations.resolve),
    "citations.hold": Check(citations.hold),
    "citations.agree": Check(citations.agree),
    "repetition.ngrams": Check(
        repetition.ngrams,
        {"share": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "n": {"type": "integer", "minimum": 2}},
    ),
    "repetition.tail": Check(repetition.tail, {"times": {"type": "integer", "minimum": 2}}),
    "repetition.items": Check(repetition.items, {"times": {"type": "integer", "minimum": 2}}),
    "repetition.alternatives": Check(repetition.alternatives),
    "terms.required": Check(terms.required, {"any_of": _TEXTS, "path": {"type": "string"}}, ("any_of",)),
    "terms.forbidden": Check(terms.forbidden, {"any_of": _TEXTS}, ("any_of",)),
    "terms.statutes": Check(terms.statutes, {"table": _TEXT}),
    "arithmetic.totals": Check(arithmetic.totals),
    "arithmetic.rolls": Check(arithmetic.rolls),
    "arithmetic.identities": Check(arithmetic.identities),
    "arithmetic.shares": Check(arithmetic.shares),
    "arithmetic.sums": Check(
        arithmetic.sums, {"total": _POINTER, "plus": _POINTERS, "minus": _POINTERS}, ("total", "plus")
    ),
    "arithmetic.total_left_out": Check(
        arithmetic.total_left_out, {"each": _POINTER, "value": _TEXT}, ("each", "value")
    ),
}
