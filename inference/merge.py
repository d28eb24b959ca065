"""Several readings of one document, merged by the schema into one result that knows where each value came from.

Lists are joined, items that say the same are kept once, and the list is cut to its maxItems. Of a grounded value the
one with the best evidence wins (see `inference/evidence.py`), of equals the first. Of words from a list the most
frequent wins, and with `x-severity` (the list stands mildest first) the most severe, because one part that is alarmed
is not outvoted by four that are not. Of free text the first counts.

What was decided against another value, and what a list had no room for, is told with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from inference.cite import pointer
from inference.evidence import normal


class Origin(NamedTuple):
    """The reading that a value was taken from, and its path there."""

    reading: int
    path: str


class Standing(NamedTuple):
    """How well a value stands in its part (more is better), and where it is printed: two parts may show one place."""

    strength: int = 0
    place: Hashable = None


class _Seen(NamedTuple):
    value: Any
    origin: Origin


#: Of a value that was read: where it came from, the name and schema of its field, the value.
Weigh = Callable[[Origin, str, Mapping[str, Any], Any], Standing]


class Conflict(NamedTuple):
    """Parts gave different values for one field. `tied`: nothing but their order decided."""

    path: str
    kept: Origin
    others: tuple[Origin, ...]
    values: tuple[Any, ...]
    tied: bool


class Dropped(NamedTuple):
    """A list had more items than it may."""

    path: str
    items: int


@dataclass(frozen=True)
class Merged:
    """The result, for each path in it the origin, and what was decided against."""

    value: Any
    origins: Mapping[str, Origin]
    conflicts: tuple[Conflict, ...] = ()
    dropped: tuple[Dropped, ...] = ()


def _unweighed(origin: Origin, name: str, schema: Mapping[str, Any], value: Any) -> Standing:
    return Standing(0, origin)


def merge(schema: Mapping[str, Any], readings: Sequence[Any], weigh: Weigh = _unweighed) -> Merged:
    """One result of several that all follow the schema."""
    merging = _Merge(weigh)
    seen = [_Seen(reading, Origin(number, "")) for number, reading in enumerate(readings)]
    value = merging.any("", schema, seen, "")
    return Merged(value, merging.origins, tuple(merging.conflicts), tuple(merging.dropped))


@dataclass
class _Merge:
    weigh: Weigh
    origins: dict[str, Origin] = field(default_factory=dict)
    conflicts: list[Conflict] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)

    def any(self, name: str, schema: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> Any:
        if "properties" in schema:
            return self._object(schema["properties"], seen, path)
        if "items" in schema:
            return self._list(name, schema, seen, path)
        present = [one for one in seen if one.value is not None]
        if not present:
            return None
        chosen = self._chosen(name, schema, present, path)
        self.origins[path] = chosen.origin
        return chosen.value

    def _object(self, properties: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> dict[str, Any]:
        return {
            name: self.any(name, inner, _step(seen, name), f"{path}/{pointer(name)}")
            for name, inner in properties.items()
        }

    def _list(self, name: str, schema: Mapping[str, Any], seen: Sequence[_Seen], path: str) -> list[Any]:
        kept: dict[str, _Seen] = {}
        for value, (reading, old) in seen:
            for index, item in enumerate(value or ()):
                kept.setdefault(normal(schema["items"], item), _Seen(item, Origin(reading, f"{old}/{index}")))
        items = list(kept.values())[: schema.get("maxItems")]
        if len(items) < len(kept):
            self.dropped.append(Dropped(path, len(kept) - len(items)))
        return [self.any(name, schema["items"], [item], f"{path}/{index}") for index, item in enumerate(items)]

    def _chosen(self, name: str, schema: Mapping[str, Any], present: Sequence[_Seen], path: str) -> _Seen:
        """The value that is kept, and a note of it where others say something else."""
        groups: dict[str, list[_Seen]] = {}
        for one in present:
            groups.setdefault(normal(schema, one.value), []).append(one)
        if len(groups) == 1 or not _can_conflict(schema):
            return _severest(schema, present)
        ranked = sorted((self._ranked(name, schema, group) for group in groups.values()), key=lambda it: it[0])
        rank, chosen = ranked[-1]
        best = [one for other, one in ranked if other == rank]
        chosen = min(best, key=lambda one: one.origin)
        others = [one for _, one in reversed(ranked) if one is not chosen]
        values = (chosen.value, *(one.value for one in others))
        self.conflicts.append(Conflict(path, chosen.origin, tuple(one.origin for one in others), values, len(best) > 1))
        return chosen

    def _ranked(self, name: str, schema: Mapping[str, Any], group: Sequence[_Seen]) -> tuple[tuple[int, int], _Seen]:
        """How strong what says the same is together, and the one of it that is cited."""
        standings = [self.weigh(one.origin, name, schema, one.value) for one in group]
        strongest = max(standing.strength for standing in standings)
        places = len({standing.place for standing in standings})
        return (strongest, places), next(
            one for one, standing in zip(group, standings, strict=True) if standing.strength == strongest
        )


def _step(seen: Sequence[_Seen], name: str) -> list[_Seen]:
    return [_Seen(value[name], Origin(reading, f"{path}/{pointer(name)}")) for value, (reading, path) in seen]


def _can_conflict(schema: Mapping[str, Any]) -> bool:
    """Parts need not agree in free text, in what they quote, or in how severe things look; else there is one truth."""
    if schema.get("x-severity") or schema.get("x-source") == "quote":
        return False
    kinds = schema.get("type", ())
    return "x-source" in schema or "enum" in schema or "string" not in ([kinds] if isinstance(kinds, str) else kinds)


def _severest(schema: Mapping[str, Any], present: Sequence[_Seen]) -> _Seen:
    if not schema.get("x-severity"):
        return present[0]
    return max(present, key=lambda one: schema["enum"].index(one.value))
