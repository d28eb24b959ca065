"""Fragments that a document says twice: the model is shown the first. Tables are always shown.

A boilerplate clause under each of ten facilities costs context and tells nothing new. One that names another number,
date or party does, however alike its words are: its facts veto. The pages keep every fragment.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from docmill.likeness import Facts, jaccard
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
_DIGITS: Final = re.compile(r"\d+")


class _Fragment:
    """A paragraph; what is compared of it is found when it is asked for."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.shingles = shingle_hashes(text)
        self.hashes: list[int] = np.frombuffer(self.shingles, dtype="<u4").tolist()

    @cached_property
    def digits(self) -> list[str]:
        return _DIGITS.findall(self.text)

    @cached_property
    def facts(self) -> Facts:
        return facts(self.text)

    def repeats(self, other: _Fragment) -> bool:
        """Digits first: of two alike that differ in facts, most differ in those, and they are found at once."""
        alike = self.digits == other.digits and jaccard(self.shingles, other.shingles) > SIMILAR
        return alike and self.facts == other.facts


@dataclass(slots=True)
class Repeats:
    """The fragments shown so far."""

    shown: list[_Fragment] = field(default_factory=list)
    #: A shingle → the first fragment that has it.
    first: dict[int, int] = field(default_factory=dict)

    def without(self, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts that do not repeat one that was shown."""
        return [draft for draft in drafts if not _is_prose(draft) or self._is_new(_Fragment(draft.text))]

    def _is_new(self, fragment: _Fragment) -> bool:
        if len(fragment.hashes) < _FEWEST_SHINGLES:
            return True
        shared = Counter(self.first[one] for one in fragment.hashes if one in self.first)
        if any(fragment.repeats(self.shown[other]) for other, _ in shared.most_common(_COMPARED)):
            return False
        for one in fragment.hashes:
            self.first.setdefault(one, len(self.shown))
        self.shown.append(fragment)
        return True


def _is_prose(draft: Draft) -> bool:
    """Of tables, headings, notes and form fields each is shown; so is what is too short to be compared."""
    if draft.block is None or draft.block.kind is not BlockKind.PARAGRAPH:
        return False
    return len(draft.text) >= _FEWEST_SHINGLES
