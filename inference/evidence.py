"""How well a value stands in the text that it was read from, and whether two values say the same.

Where parts of a document give different values for one field, the one that is printed beside the words that label the
field is the better; of equals, the one that is printed in more places.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

#: Characters from a label's end to the value: beside it, and still near.
BESIDE: Final = 24
NEAR: Final = 120
#: Looking at more places of a value that is printed everywhere (a zero) tells no more.
_MOST_PLACES: Final = 50

_GROUP_MARK: Final = re.compile(r"(?<=\d)[,'\u2019](?=\d{3})")
_PLAIN_NUMBER: Final = re.compile(r"[+-]?\d+(?:\.\d+)?")


def strength(text: str, value: str, labels: Sequence[str]) -> int:
    """2: a label stands right before the value on its line; 1: one stands near before it; 0: none, or no value."""
    lower, wanted = text.lower(), [label.lower() for label in labels if label]
    return max((_before(lower, place, wanted) for place in _places(text, value)), default=0)


def _places(text: str, value: str) -> Iterator[int]:
    place = text.find(value) if value else -1
    for _ in range(_MOST_PLACES):
        if place < 0:
            return
        yield place
        place = text.find(value, place + 1)


def _before(lower: str, place: int, labels: Sequence[str]) -> int:
    near = lower[max(0, place - NEAR) : place]
    gaps = [len(near) - near.rfind(label) - len(label) for label in labels if label in near]
    if not gaps:
        return 0
    gap = min(gaps)
    return 2 if gap <= BESIDE and "\n" not in near[len(near) - gap :] else 1


def labels_of(name: str, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The words beside which a field's value is printed."""
    return (*schema.get("x-labels", ()), name.replace("_", " "))


def normal(schema: Mapping[str, Any], value: Any) -> str:
    """Values with the same normal form say the same: 5,280.00 and ５２８０, Harbour Ltd and HARBOUR  LTD.

    The sentences that an item quotes as evidence do not count.
    """
    if isinstance(value, Mapping):
        inner = schema.get("properties", {})
        kept = (name for name in value if inner.get(name, {}).get("x-source") != "quote")
        return repr([(name, normal(inner.get(name, {}), value[name])) for name in kept])
    if isinstance(value, list):
        return repr([normal(schema.get("items", {}), item) for item in value])
    return _normal_text(value) if isinstance(value, str) else repr(value)


def _normal_text(value: str) -> str:
    text = "".join(unicodedata.normalize("NFKC", value).casefold().split())
    text = _GROUP_MARK.sub("", text)
    return f"{Decimal(text).normalize():f}" if _PLAIN_NUMBER.fullmatch(text) else text
