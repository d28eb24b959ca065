"""Characters packed in arrays: what a page has thousands of is not kept as an object each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from docmill.types import BBox

Floats = np.ndarray[Any, np.dtype[np.float64]]

_NO_EDGES: Final = np.zeros((0, 4))


class Glyph(NamedTuple):
    """One character where it stands; `size` in points."""

    char: str
    x0: float
    y0: float
    x1: float
    y1: float
    size: float

    @property
    def box(self) -> BBox:
        return BBox(self.x0, self.y0, self.x1, self.y1)


@dataclass(frozen=True, slots=True, eq=False)
class Glyphs:
    """A run of glyphs: one character of `text` for each row of `edges` (x0, y0, x1, y1) and each of `sizes`."""

    text: str
    edges: Floats
    sizes: Floats

    @classmethod
    def of(cls, glyphs: Iterable[Glyph]) -> Glyphs:
        """The glyphs packed; one that stands for several characters gives each of them its box."""
        if isinstance(glyphs, Glyphs):
            return glyphs
        rows = [(char, glyph[1:5], glyph.size) for glyph in glyphs for char in glyph.char]
        if not rows:
            return cls("", _NO_EDGES, _NO_EDGES[:, 0])
        chars, edges, sizes = zip(*rows, strict=True)
        return cls("".join(chars), np.array(edges), np.array(sizes))

    @classmethod
    def joined(cls, runs: Sequence[Glyphs]) -> Glyphs:
        """Several runs as one."""
        if len(runs) == 1:
            return runs[0]
        edges = np.concatenate([run.edges for run in runs])
        return cls("".join(run.text for run in runs), edges, np.concatenate([run.sizes for run in runs]))

    def __len__(self) -> int:
        return len(self.text)

    def __iter__(self) -> Iterator[Glyph]:
        for char, edges, size in zip(self.text, self.edges.tolist(), self.sizes.tolist(), strict=True):
            yield Glyph(char, edges[0], edges[1], edges[2], edges[3], size)

    def __getitem__(self, part: slice) -> Glyphs:
        return Glyphs(self.text[part], self.edges[part], self.sizes[part])

    def picked(self, places: Any) -> Glyphs:
        """The glyphs at these places, or where this mask is true."""
        chosen = np.arange(len(self.text))[places]
        return Glyphs("".join([self.text[place] for place in chosen.tolist()]), self.edges[chosen], self.sizes[chosen])

    @property
    def bbox(self) -> BBox:
        """The box around all of them."""
        (x0, y0), (x1, y1) = self.edges[:, :2].min(axis=0).tolist(), self.edges[:, 2:].max(axis=0).tolist()
        return BBox(x0, y0, x1, y1)
