"""Several readings of one document, merged by the schema into one result that knows where each value came from.

Lists are joined, items that say the same are kept once, and the list is cut to its maxItems. Of other values the
first part that has one wins, except words from a list: there the most frequent wins, and with `x-severity` (the list
stands mildest first) the most severe, because one part that is alarmed is not outvoted by four that are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inference.cite import pointer


class Origin(NamedTuple):
    """The reading that a value was taken from, and its path there."""

    reading: int
    path: str


class _Seen(NamedTuple):
    value: Any
    origin: Origin


@dataclass(frozen=True)
class Merged:
    """The result, and for each path in it the origin."""

    value: Any
    origins: Mapping[str, Origin]


@dataclass
class _Merge:
    origins: dict[str, Origin] = field(default_factory=dict)

    def any(self, schema: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> Any:
        if "properties" in schema:
            return self._object(schema["properties"], seen, path)
        if "items" in schema:
            return self._list(schema, seen, path)
        present = [one for one in seen if one.value is not None]
        if not present:
            return None
        chosen = _word(schema, present) if "enum" in schema else present[0]
        self.origins[path] = chosen.origin
        return chosen.value

    def _object(self, properties: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> dict[str, Any]:
        return {
            name: self.any(inner, _step(seen, name), f"{path}/{pointer(name)}") for name, inner in properties.items()
        }

    def _list(self, schema: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> list[Any]:
        kept: dict[str, _Seen] = {}
        for value, (reading, old) in seen:
            for index, item in enumerate(value or ()):
                kept.setdefault(_identity(schema["items"], item), _Seen(item, Origin(reading, f"{old}/{index}")))
        items = list(kept.values())[: schema.get("maxItems")]
        return [self.any(schema["items"], [item], f"{path}/{index}") for index, item in enumerate(items)]


def merge(schema: Mapping[str, Any], readings: Sequence[Any]) -> Merged:
    """One result of several that all follow the schema."""
    merging = _Merge()
    value = merging.any(schema, [_Seen(reading, Origin(number, "")) for number, reading in enumerate(readings)], "")
    return Merged(value, merging.origins)


def _step(seen: Sequence[_Seen], name: str) -> list[_Seen]:
    return [_Seen(value[name], Origin(reading, f"{path}/{pointer(name)}")) for value, (reading, path) in seen]


def _word(schema: Mapping[str, Any], present: Sequence[_Seen]) -> _Seen:
    words = schema["enum"]
    if schema.get("x-severity"):
        return max(present, key=lambda one: words.index(one.value))
    counts = Counter(one.value for one in present)
    return max(present, key=lambda one: counts[one.value])


def _identity(schema: Mapping[str, Any], item: Any) -> str:
    """Items that differ only in the sentence quoted as evidence say the same."""
    if isinstance(item, dict):
        inner = schema.get("properties", {})
        item = {name: value for name, value in item.items() if inner.get(name, {}).get("x-source") != "quote"}
    return repr(item)
