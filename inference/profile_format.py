"""The format of a profile file, as a JSON Schema (2020-12).

A field of the result is one of six kinds: an object, a list, a grounded text, a word from a list, free text, or a plain
JSON scalar. A grounded field of an object must allow null: a document need not print it. Inside a list it need not,
because a list can be empty.
"""

from __future__ import annotations

from typing import Any

_NULLABLE_TEXT = {
    "type": "array",
    "items": {"enum": ["string", "null"]},
    "minItems": 2,
    "maxItems": 2,
    "uniqueItems": True,
}
_LABELS = {"type": "array", "items": {"type": "string", "minLength": 1}}
_NAME = {"type": "string", "pattern": "^[a-z0-9]+(?:[-_][a-z0-9]+)*$"}


def _kind(required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    common = {"description": {"type": "string"}, "x-labels": _LABELS}
    return {
        "type": "object",
        "required": required,
        "properties": {**common, **properties},
        "additionalProperties": False,
    }


def _grounded(types: list[Any]) -> dict[str, Any]:
    source = {"enum": ["verbatim", "number", "amount", "date", "id", "quote"]}
    longest = {"type": "integer", "minimum": 2, "maximum": 500}
    return _kind(["type", "x-source"], {"type": {"anyOf": types}, "x-source": source, "maxLength": longest})


def _of_column(types: list[Any]) -> dict[str, Any]:
    """A cell of a table's column; `x-column` has the words of its head, in the languages of the documents."""
    source, heads = {"const": "enum-of-table-column"}, {**_LABELS, "minItems": 1}
    properties = {"type": {"anyOf": types}, "x-source": source, "x-column": heads}
    return _kind(["type", "x-source", "x-column"], properties)


def _copied(types: list[Any]) -> list[dict[str, Any]]:
    return [_grounded(types), _of_column(types)]


def _object(fields: str) -> dict[str, Any]:
    properties = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": fields}}
    return _kind(["type", "properties"], {"type": {"const": "object"}, "properties": properties})


def _list(item: str) -> dict[str, Any]:
    return _kind(
        ["type", "items", "maxItems"],
        {"type": {"const": "array"}, "items": {"$ref": item}, "maxItems": {"type": "integer", "minimum": 1}},
    )


_PLAIN = [
    _kind(["enum"], {"enum": {"type": "array", "minItems": 1, "uniqueItems": True}, "x-severity": {"type": "boolean"}}),
    _kind(
        ["type", "maxLength"],
        {
            "type": {"anyOf": [{"const": "string"}, _NULLABLE_TEXT]},
            "maxLength": {"type": "integer", "minimum": 4, "maximum": 1000},
        },
    ),
    _kind(["type"], {"type": {"enum": ["integer", "number", "boolean"]}}),
]

FORMAT: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": [
        *("name", "version", "title", "instructions", "schema", "lanes", "precision", "window_seconds"),
        *("temperature", "max_output_tokens", "ruleset"),
    ],
    "additionalProperties": False,
    "properties": {
        "name": _NAME,
        "version": {"type": "string", "minLength": 1},
        "title": {"type": "string", "minLength": 1},
        "instructions": {
            "type": "object",
            "required": ["en", "zh"],
            "properties": {"en": {"type": "string", "minLength": 1}, "zh": {"type": "string", "minLength": 1}},
            "additionalProperties": False,
        },
        "schema": {"$ref": "#/$defs/root"},
        "lanes": {"type": "array", "items": _NAME, "minItems": 1, "uniqueItems": True},
        "precision": _NAME,
        "window_seconds": {"type": "integer", "minimum": 0},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "max_output_tokens": {"type": "integer", "minimum": 16, "maximum": 4096},
        "ruleset": _NAME,
        "min_output_tokens": {"type": "integer", "minimum": 16, "maximum": 4096},
        "critical_terms": _LABELS,
        "critical_sections": _LABELS,
        "document_tokens": {"type": "integer", "minimum": 256},
        "quantized_long": {"type": "boolean"},
    },
    "$defs": {
        "root": _object("#/$defs/field"),
        "field": {
            "oneOf": [*_copied([_NULLABLE_TEXT]), _list("#/$defs/item"), _object("#/$defs/field"), *_PLAIN],
        },
        "item": {
            "oneOf": [*_copied([{"const": "string"}]), _object("#/$defs/field_of_item"), *_PLAIN],
        },
        "field_of_item": {"oneOf": [*_copied([{"const": "string"}, _NULLABLE_TEXT]), *_PLAIN]},
    },
}
