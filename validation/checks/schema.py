"""The result is of the profile's JSON Schema."""

from __future__ import annotations

from collections.abc import Iterator

from jsonschema import Draft202012Validator

from validation.case import Case, Hit
from validation.fields import step


def conforms(case: Case) -> Iterator[Hit]:
    """Every violation, where it stands."""
    for error in Draft202012Validator(case.schema).iter_errors(case.extraction.result):
        path = ""
        for key in error.absolute_path:
            path = step(path, key)
        yield Hit(path=path, text=str(error.validator), detail=error.message)


def complete(case: Case) -> Iterator[Hit]:
    """Every property that the schema names is there, if only as null: a field left out was not looked for."""
    for name in case.schema.get("properties", {}):
        if name not in case.extraction.result:
            yield Hit(path=step("", name), text=name)
