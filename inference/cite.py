"""Where the grounded values of a result stand in the part that it was read from.

The candidates know their place, so a citation needs no guessing, save for a value that is printed several times: then
the occurrence counts that is nearest to the value's evidence, to its neighbours in a list item, or to the field's
label words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from docmill.types import BBox, Citation
from inference.columns import key_of
from inference.grounding import SPAN_KINDS, Grounding, chunks

#: A label stands before its value more often than after it.
_AFTER_COSTS = 3
_NOWHERE = BBox(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A grounded value in a result; `source` names its candidates (`columns.key_of`); `anchors` are texts that should
    stand near it, the best first.
    """

    path: str
    source: str
    text: str
    anchors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    piece: int
    start: int
    stop: int


def locate(grounding: Grounding, schema: Mapping[str, Any], result: Any) -> tuple[Citation, ...]:
    """A citation for each grounded value that the part prints; a value that it does not print has none."""
    reader = _Reader(grounding)
    cited = ((leaf, reader.best(leaf)) for leaf in leaves(schema, result))
    return tuple(_citation(grounding, leaf.path, place) for leaf, place in cited if place is not None)


def leaves(
    schema: Mapping[str, Any], value: Any, path: str = "", anchors: tuple[str, ...] = (), evidence: tuple[str, ...] = ()
) -> Iterator[Leaf]:
    """The grounded values of a result that are not null, in the order of the schema.

    `evidence` are the quotations of the objects around this value; its own object's come first.
    """
    if value is None:
        return
    if "x-source" in schema:
        yield Leaf(path, key_of(schema), value, tuple(anchor for anchor in anchors if anchor != value))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(schema["items"], item, f"{path}/{index}", anchors, evidence)
    elif isinstance(value, dict) and "properties" in schema:
        yield from _of_object(schema["properties"], value, path, evidence)


def _of_object(
    properties: Mapping[str, Any], value: Mapping[str, Any], path: str, evidence: tuple[str, ...]
) -> Iterator[Leaf]:
    copied = {name: value.get(name) for name, inner in properties.items() if inner.get("x-source") in SPAN_KINDS}
    quotes = [text for name, text in copied.items() if text and properties[name]["x-source"] == "quote"]
    beside = [text for text in copied.values() if text] if path else []
    for name, inner in properties.items():
        labels = [*inner.get("x-labels", ()), name.replace("_", " ")]
        anchors = (*quotes, *beside, *evidence, *labels)
        yield from leaves(inner, value.get(name), f"{path}/{pointer(name)}", anchors, (*quotes, *evidence))


def pointer(name: str) -> str:
    """A property name as a step of a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1")


class _Reader:
    """Finds texts in the pieces of one part, and measures how far apart they stand."""

    def __init__(self, grounding: Grounding) -> None:
        self._grounding = grounding
        self._lower = [plain.text.lower() for plain in grounding.plains]
        self._offsets = list(accumulate((len(plain.text) + 1 for plain in grounding.plains), initial=0))

    def best(self, leaf: Leaf) -> _Place | None:
        """The occurrence of the value that stands nearest to the first of its anchors that is printed."""
        places = self._places(leaf)
        if len(places) < 2:
            return places[0] if places else None
        for anchor in leaf.anchors:
            if near := self._printed(anchor):
                return min(places, key=lambda place: min(self._distance(label, place) for label in near))
        return places[0]

    def _places(self, leaf: Leaf) -> list[_Place]:
        if leaf.source not in SPAN_KINDS:
            found = self._grounding.candidates.get(leaf.source, ())
            return [_Place(c.piece, c.start, c.stop) for c in found if c.text == leaf.text]
        texts = [plain.text for plain in self._grounding.plains]
        return [place for place in _occurrences(texts, leaf.text) if _whole_words(texts[place.piece], place)]

    def _printed(self, anchor: str) -> list[_Place]:
        return list(_occurrences(self._lower, anchor.lower()))

    def _distance(self, label: _Place, place: _Place) -> int:
        """Characters from the label's end to the value, or, at a price, from the value's end back to the label."""
        ahead = self._offsets[place.piece] + place.start - (self._offsets[label.piece] + label.stop)
        if ahead >= 0:
            return ahead
        behind = self._offsets[label.piece] + label.start - (self._offsets[place.piece] + place.stop)
        return behind * _AFTER_COSTS if behind >= 0 else 0


def _occurrences(texts: Sequence[str], wanted: str) -> Iterator[_Place]:
    if not wanted:
        return
    for number, text in enumerate(texts):
        start = text.find(wanted)
        while start >= 0:
            yield _Place(number, start, start + len(wanted))
            start = text.find(wanted, start + 1)


def _whole_words(text: str, place: _Place) -> bool:
    edges = set(accumulate((len(chunk) for chunk in chunks(text)), initial=0))
    return place.start in edges and place.stop in edges


def _citation(grounding: Grounding, path: str, place: _Place) -> Citation:
    piece = grounding.part.pieces[place.piece]
    start, stop = grounding.plains[place.piece].printed_range(place.start, place.stop)
    box = piece.printed.box(start, stop) or _NOWHERE
    return Citation(path, piece.printed.text[start:stop], piece.page, box, piece.table_id, piece.row, piece.col)
