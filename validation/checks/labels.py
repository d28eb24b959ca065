"""A value stands where the document prints its field: beside the field's label, not merely somewhere."""

from __future__ import annotations

from collections.abc import Iterator

from validation.case import Case, Hit
from validation.facts import Facts
from validation.fields import Leaf, at, step
from validation.labels import heads_text, labels_of, printed_labels, stands_beside, stands_with
from validation.places import Place

#: A value that is printed more often than this is not looked at everywhere.
_MOST_PLACES = 50
#: So many labels name what was expected.
_SHOWN = 2


def beside(case: Case) -> Iterator[Hit]:
    """A value far from every label of its field; silent if the document prints none of them.

    Where no label is printed nothing tells a right value from a wrong one: to fire there would report every document
    whose words the profile does not know.
    """
    for leaf, place in _strays(case):
        labels = () if heads_text(place) else _expected(leaf, case.facts)
        if labels:
            yield _hit(leaf, place, " / ".join(labels[:_SHOWN]))


def _expected(leaf: Leaf, facts: Facts) -> tuple[str, ...]:
    """The labels beside which the value might stand. An identifier belongs to the word before it in a sentence too."""
    return printed_labels(leaf.labels, leaf.text, facts, as_labels=leaf.source != "id")


def is_label(case: Case) -> Iterator[Hit]:
    """A value that is the label of something else: a colon follows it."""
    return (_hit(leaf, place, f"{leaf.text}:") for leaf, place in _strays(case) if heads_text(place))


def items(case: Case, *, each: str, value: str, label: str) -> Iterator[Hit]:
    """In each object of the list at `each`, the value stands in the row or block of the words that label it."""
    entries = at(case.extraction.result, each)
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        path = step(step(each, index), value)
        words = entry.get(label) if isinstance(entry, dict) else None
        place = case.places.get(path)
        if not isinstance(words, str) or not words or place is None:
            continue
        places = (place, *case.by_path[path].places[:_MOST_PLACES])
        if not any(stands_with(one, words, case.facts) for one in dict.fromkeys(places)):
            yield Hit(path=path, text=str(entry[value]), detail=words, page=place.page, bbox=place.bbox)


def _strays(case: Case) -> Iterator[tuple[Leaf, Place]]:
    for leaf in case.leaves:
        place = case.places.get(leaf.path)
        if leaf.labels and place and not _labelled(place, leaf.labels, case.facts):
            yield leaf, place


def _labelled(place: Place, labels: tuple[str, ...], facts: Facts) -> bool:
    """A value that is printed beside its label too is right, even if another printing of it is cited."""
    label = labels_of(labels)
    printed = place.piece.printed.text[place.start : place.stop]
    return stands_beside(place, label, facts) or any(stands_beside(p, label, facts) for p in facts.everywhere(printed))


def _hit(leaf: Leaf, place: Place, detail: str) -> Hit:
    return Hit(path=leaf.path, text=leaf.text, detail=detail, page=place.page, bbox=place.bbox)
