"""The result is of the profile's JSON Schema."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from validation.case import Case, Hit
from validation.fields import step

#: How an engine says that the answer did not come to its end.
_CUT = frozenset({"length", "max_tokens", "abort", "error", "content_filter"})
#: Compiled validators by the identity of their schema, which they keep alive.
_compiled: dict[int, Draft202012Validator] = {}
_MOST_COMPILED = 64


def conforms(case: Case) -> Iterator[Hit]:
    """Every violation, where it stands."""
    for error in _validator(case.schema).iter_errors(case.extraction.result):
        path = ""
        for key in error.absolute_path:
            path = step(path, key)
        yield Hit(path=path, text=str(error.validator), detail=error.message)


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    kept = _compiled.get(id(schema))
    if kept is None or kept.schema is not schema:
        if len(_compiled) >= _MOST_COMPILED:
            _compiled.clear()
        kept = _compiled[id(schema)] = Draft202012Validator(schema)
    return kept


def finished(case: Case) -> Iterator[Hit]:
    """An answer that was cut off, or that is no JSON: a repaired tail may be half of a number."""
    reason, raw = case.extraction.finish_reason, case.extraction.raw.strip()
    if reason in _CUT:
        yield Hit(text=reason, detail=raw[-40:])
    elif raw and case.extraction.parts == 1 and not _json(raw):
        yield Hit(text="not JSON", detail=raw[-40:])


def _json(raw: str) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


def complete(case: Case) -> Iterator[Hit]:
    """Every property that the schema names is there, if only as null: a field left out was not looked for."""
    for name in case.schema.get("properties", {}):
        if name not in case.extraction.result:
            yield Hit(path=step("", name), text=name)
