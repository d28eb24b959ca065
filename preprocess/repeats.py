"""Fragments that a document says twice: the model is shown the first. Tables are always shown.

A boilerplate clause under each of ten facilities costs context and tells nothing new. One that names another number,
date or party does, however alike its words are: its facts veto. The pages keep every fragment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from docmill.likeness import jaccard
from docmill.types import BlockKind
from preprocess.drafts import Draft
from preprocess.facts import facts
from preprocess.shingles import shingle_hashes

#: Above this share of common shingles a fragment is a repeat.
SIMILAR: Final = 0.7
#: A shorter fragment is a label or an item of a list, which means something else in each place.
_FEWEST_SHINGLES: Final = 24
#: Earlier fragments that one is compared with: those that share most.
_COMPARED: Final = 4


@dataclass(slots=True)
class Repeats:
    """The fragments shown so far."""

    texts: list[str] = field(default_factory=list)
    shingles: list[bytes] = field(default_factory=list)
    #: A shingle → the first fragment that has it.
    first: dict[int, int] = field(default_factory=dict)

    def without(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts that do not repeat one that was shown."""
        return [draft for draft in drafts if not self._repeats(draft)]

    def _repeats(self, draft: Draft) -> bool:
        if draft.block is None or draft.block.kind is not BlockKind.PARAGRAPH or len(draft.text) < _FEWEST_SHINGLES:
            return False
        shingles = shingle_hashes(draft.text)
        hashes = np.frombuffer(shingles, dtype="<u4").tolist()
        if len(hashes) < _FEWEST_SHINGLES:
            return False
        shared = Counter(self.first[one] for one in hashes if one in self.first)
        if any(self._is_repeat(draft.text, shingles, other) for other, _ in shared.most_common(_COMPARED)):
            return True
        for one in hashes:
            self.first.setdefault(one, len(self.texts))
        self.texts.append(draft.text)
        self.shingles.append(shingles)
        return False

    def _is_repeat(self, text: str, shingles: bytes, other: int) -> bool:
        return jaccard(shingles, self.shingles[other]) > SIMILAR and facts(text) == facts(self.texts[other])
