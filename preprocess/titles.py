"""The titles of a header: chunks of text, those that are wrapped made whole, those set close taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Final

from docmill.types import BBox
from preprocess.lattice import Lattice
from preprocess.words import Word, baselines, grouped, joined

#: Points by which a rule, or the next line, may lie inside a title's box.
INSIDE: Final = 2.0
#: In units of the font size: lines of one title are no further apart, and are aligned to this.
_WRAP_GAP: Final = 0.5
_OPEN_GAP: Final = 1.0
_ALIGNED: Final = 0.8
#: In units of the font size: words of one title over a narrower line of it are no further apart.
_LOOSE: Final = 0.8
#: In units of the font size: how near titles are set to the middle or edge of what is above or below them.
_IN_LINE: Final = 0.25
_NEAR_EDGE: Final = 0.3
_FLUSH: Final = 0.1
#: How a line starts that goes on with the one above.
_GOES_ON: Final = re.compile(r"^[(（\[a-z]")


def titles_of(words: Sequence[Word], lattice: Lattice, rules: Sequence[BBox]) -> list[list[Word]]:
    """The header's chunks by line, a title that is wrapped whole on its first line."""
    groups = [grouped(row) for row in baselines(words)]
    lines = [_parted(line, _beside(groups, index), lattice) for index, line in enumerate(groups)]
    for index in range(len(lines) - 1, 0, -1):
        for chunk in list(lines[index]):
            above = _nearest_above(chunk, lines[:index])
            if above is not None and _is_wrapped(above, chunk, lines[index], rules):
                line = next(line for line in lines[:index] if above in line)
                line[line.index(above)] = joined(above, chunk)
                lines[index].remove(chunk)
    return [line for line in lines if line]


def _nearest_above(chunk: Word, lines: Sequence[list[Word]]) -> Word | None:
    """The one chunk that stands next above another, put together if it is set loosely; None if they are several."""
    for line in reversed(lines):
        above = [one for one in line if _meet(one, chunk) and one.y1 <= chunk.y0 + INSIDE]
        if len(above) > 1 and all(b.x0 - a.x1 <= _LOOSE * a.size for a, b in pairwise(above)):
            line[line.index(above[0])] = reduce(joined, above)
            for part in above[1:]:
                line.remove(part)
            return reduce(joined, above)
        if above:
            return above[0] if len(above) == 1 else None
    return None


def _beside(groups: Sequence[Sequence[Sequence[Word]]], index: int) -> list[Word]:
    """What stands in the lines above and below a line, as words and as chunks."""
    lines = [*groups[max(0, index - 1) : index], *groups[index + 1 : index + 2]]
    return [word for line in lines for group in line for word in (*group, reduce(joined, group))]


def _parted(line: Sequence[Sequence[Word]], beside: Sequence[Word], lattice: Lattice) -> list[Word]:
    """The chunks of a line, those that are several titles set close taken apart at the column edges."""
    parts: list[Word] = []
    for own in line:
        near = _NEAR_EDGE * own[0].size
        gaps = [after.x0 - before.x1 for before, after in pairwise(own)]
        edged = [
            any(before.x1 - near <= x <= after.x0 + near for x in lattice.xs[1:-1]) for before, after in pairwise(own)
        ]
        wide = 1.3 * min(gaps, default=0.0) + 0.1 * own[0].size
        close = _split_at(own, edged)
        if ends := _ends_in_line(own, beside):
            parts.extend(_split_at(own, ends))
        elif len(close) > 1 and all(_is_in_line(part, beside) for part in close):
            parts.extend(close)
        else:
            parts.extend(_split_at(own, [at and gap > wide for at, gap in zip(edged, gaps, strict=True)]))
    return _one_a_column(parts, lattice)


def _one_a_column(parts: Sequence[Word], lattice: Lattice) -> list[Word]:
    """Parts of a line that stand in one column, set loosely, as one."""
    out: list[Word] = []
    for part in parts:
        if out and _column_of(out[-1], lattice) == _column_of(part, lattice) is not None:
            out[-1] = joined(out[-1], part)
        else:
            out.append(part)
    return out


def _column_of(part: Word, lattice: Lattice) -> int | None:
    """The column that holds all of a part; None if it reaches into another."""
    first, last = lattice.col_at(part.x0), lattice.col_at(part.x1)
    return first if first == last else None


def _split_at(words: Sequence[Word], cuts: Sequence[bool]) -> list[Word]:
    parts = [words[0]]
    for cut, word in zip(cuts, words[1:], strict=True):
        if cut:
            parts.append(word)
        else:
            parts[-1] = joined(parts[-1], word)
    return parts


def _ends_in_line(own: Sequence[Word], beside: Sequence[Word]) -> list[bool]:
    """Where to cut a line of titles set flush right, each over the end of a word of its own; empty if it is not one."""
    near = _FLUSH * own[0].size
    ends = [any(abs(word.x1 - other.x1) < near and _meet(word, other) for other in beside) for word in own]
    return ends[:-1] if ends[-1] and any(ends[:-1]) else []


def _is_in_line(part: Word, beside: Sequence[Word]) -> bool:
    """Whether something above or below a part of a line is set on the same middle, or starts or ends where it does."""
    near = _IN_LINE * part.size
    return any(
        abs(part.x - other.x) < near or abs(part.x0 - other.x0) < near or abs(part.x1 - other.x1) < near
        for other in beside
        if _meet(part, other)
    )


def _meet(one: Word, other: Word) -> bool:
    return min(one.x1, other.x1) - max(one.x0, other.x0) > 0.1 * min(one.x1 - one.x0, other.x1 - other.x0)


def _is_wrapped(above: Word, below: Word, line: Sequence[Word], rules: Sequence[BBox]) -> bool:
    """Whether `below` is the next line of the title `above`."""
    size = min(above.size, below.size)
    gap = _OPEN_GAP if _GOES_ON.match(below.text) else _WRAP_GAP
    if below.y0 - above.y1 > gap * size or sum(1 for one in line if _meet(above, one)) > 1:
        return False
    near = _ALIGNED * size
    aligned = abs(above.x - below.x) < near or abs(above.x0 - below.x0) < near or abs(above.x1 - below.x1) < near
    return aligned and not _is_ruled_off(above, below, rules)


def _is_ruled_off(one: Word, other: Word, rules: Iterable[BBox]) -> bool:
    """Whether a rule runs between two lines of text."""
    low, high = max(one.x0, other.x0), min(one.x1, other.x1)
    top, bottom = one.y1 - INSIDE, other.y0 + INSIDE
    return any(top <= (rule.y0 + rule.y1) / 2 <= bottom and rule.x0 < high and rule.x1 > low for rule in rules)
