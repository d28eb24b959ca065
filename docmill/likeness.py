"""How alike two documents are: their shingles say how much of the text, their facts say what is different.

Two documents with other facts are different documents, however much text they share: contracts of one template.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import numpy as np

#: Of a longer text the smallest hashes are kept, a fair sample: beyond about a hundred pages the Jaccard index is
#: estimated, with a standard error below 0.002.
MOST_SHINGLES: Final = 65_536
#: Values that a diff names of each kind on each side, and how much of each is shown; the rest is counted.
SHOWN: Final = 20
SHOWN_CHARACTERS: Final = 60

#: Kind of fact (numbers, dates, names ...) → its values in reading order, in one spelling.
Facts = Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Likeness:
    """What of a document is compared with others; empty for a text too short to compare.

    `bands` propose: documents that share one are worth comparing. `shingles` are sorted little-endian uint32 hashes
    and confirm. `facts` veto.
    """

    bands: tuple[int, ...]
    shingles: bytes
    facts: Facts

    @property
    def fingerprint(self) -> int:
        """A signed 64-bit hash of all facts in their order."""
        digest = hashlib.blake2b(msgspec.json.encode(self.facts, order="sorted"), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)


#: Of a text too short to compare.
LIKE_NOTHING: Final = Likeness((), b"", {})


def jaccard(one: bytes, other: bytes) -> float:
    """The share of common shingles among all of both; exact up to MOST_SHINGLES, and 0 where there are none."""
    here, there = (np.frombuffer(shingles, dtype="<u4") for shingles in (one, other))
    if not len(here) or not len(there):
        return 0.0
    # A set that was cut says nothing of hashes beyond its last.
    end = min((hashes[-1] for hashes in (here, there) if len(hashes) >= MOST_SHINGLES), default=None)
    if end is not None:
        here, there = here[here <= end], there[there <= end]
    common = len(np.intersect1d(here, there, assume_unique=True))
    return common / (len(here) + len(there) - common)


def differences(before: Facts, after: Facts) -> dict[str, dict[str, Any]]:
    """What changed, by kind: `gone`, `new`, how many of each; `moved` where the same values stand in another order."""
    return dict(_changes(before, after))


def _changes(before: Facts, after: Facts) -> Iterator[tuple[str, dict[str, Any]]]:
    for kind in dict.fromkeys((*before, *after)):
        old, new = before.get(kind, ()), after.get(kind, ())
        if list(old) == list(new):
            continue
        gone, come = _less(old, new), _less(new, old)
        if not gone and not come:
            yield kind, {"moved": True}
            continue
        yield kind, {"gone": _shown(gone), "new": _shown(come), "gone_count": len(gone), "new_count": len(come)}


def _less(these: Sequence[str], those: Sequence[str]) -> list[str]:
    """The values of the first that the second has not, as often as that, in their order."""
    left = Counter(these) - Counter(those)
    found = []
    for value in these:
        if left[value]:
            left[value] -= 1
            found.append(value)
    return found


def _shown(values: Sequence[str]) -> list[str]:
    return [value[:SHOWN_CHARACTERS] for value in values[:SHOWN]]
