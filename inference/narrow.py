"""A part that prints thousands of values: a field chooses among those nearest to its own words (`x-labels`).

A choice of 10,000, or a text of as many words to copy from, takes a second to compile for each request; of a few
hundred it takes milliseconds. Where none of the words is printed everything is kept: slow is better than wrong.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from inference.candidates import Candidate
from inference.text import Plain

#: So many values are no burden.
MOST_VALUES = 500
#: Nor is a text of so many characters; it is about what a context of 8,000 tokens holds.
MOST_CHARACTERS = 24_000


class Nearness:
    """How far the places of a part are from the words of a field, in characters of its text."""

    def __init__(self, plains: Sequence[Plain]) -> None:
        self._plains = plains
        self._offsets = list(accumulate((len(plain.text) + 1 for plain in plains), initial=0))
        self._lower: str | None = None

    def values(self, candidates: Sequence[Candidate], words: Sequence[str]) -> list[str]:
        """The texts of the candidates in document order; of too many, those that stand nearest to the words."""
        texts = list(dict.fromkeys(one.text for one in candidates))
        if len(texts) <= MOST_VALUES or not (marks := self._marks(words)):
            return texts
        near = sorted(candidates, key=lambda one: _distance(marks, self._offsets[one.piece] + one.start))
        kept = set(list(dict.fromkeys(one.text for one in near))[:MOST_VALUES])
        return [text for text in texts if text in kept]

    def pieces(self, words: Sequence[str]) -> list[Plain]:
        """The pieces in document order; of too much text, those that stand nearest to the words."""
        if self._offsets[-1] <= MOST_CHARACTERS or not (marks := self._marks(words)):
            return list(self._plains)
        near = sorted(range(len(self._plains)), key=lambda number: _distance(marks, self._offsets[number]))
        return [self._plains[number] for number in sorted(self._within(near))]

    def _within(self, order: Sequence[int]) -> Iterator[int]:
        """The first of these pieces, up to the most characters."""
        room = MOST_CHARACTERS
        for number in order:
            room -= len(self._plains[number].text)
            if room < 0:
                return
            yield number

    def _marks(self, words: Sequence[str]) -> list[int]:
        """Where the words are printed, in order."""
        if self._lower is None:
            self._lower = "\n".join(plain.text for plain in self._plains).lower()
        return sorted(place for word in words for place in _places(self._lower, word.lower()))


def _places(text: str, word: str) -> Iterator[int]:
    start = text.find(word)
    while start >= 0:
        yield start
        start = text.find(word, start + 1)


def _distance(marks: Sequence[int], place: int) -> int:
    at = bisect_left(marks, place)
    return min(abs(place - mark) for mark in marks[max(0, at - 1) : at + 1])
