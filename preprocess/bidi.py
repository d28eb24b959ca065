"""Text that runs from right to left (Arabic, Hebrew), in the order in which it is read.

A PDF has glyphs where they stand; MuPDF returns runs of both directions side by side. Here a line is put in order from
the places of its glyphs: the reverse of what a typesetter did, for one level of embedding.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Final

from preprocess.packed import Glyphs

RTL: Final = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
#: Digits and what stands inside numbers run from left to right, in Arabic too.
_DIGIT: Final = re.compile("[0-9\u0660-\u0669\u06f0-\u06f9]")


def in_logical_order(glyphs: Glyphs) -> tuple[Glyphs, bool]:
    """(the glyphs in the order of reading, whether the line as a whole runs from right to left)."""
    starts = glyphs.edges[:, 0].tolist()
    seen = sorted(range(len(glyphs)), key=starts.__getitem__)
    chars = [glyphs.text[place] for place in seen]
    letters = [char for char in chars if char.isalpha()]
    rtl = 2 * sum(map(bool, map(RTL.match, letters))) >= len(letters)
    runs = [
        (backwards, [seen[place] for place, _ in group])
        for backwards, group in groupby(enumerate(_directions(chars, rtl=rtl)), key=lambda pair: pair[1])
    ]
    # Glyphs of one place (a ligature taken apart) keep their order.
    ordered = [sorted(run, key=lambda place: -starts[place]) if back else run for back, run in runs]
    return glyphs.picked([place for run in (ordered[::-1] if rtl else ordered) for place in run]), rtl


def _directions(chars: Sequence[str], *, rtl: bool) -> list[bool]:
    """For each character, as seen from left to right, whether it belongs to a run that is read backwards."""
    known = [_direction(char) for char in chars]
    out: list[bool] = []
    for place, own in enumerate(known):
        if own is None:
            before = out[-1] if out else rtl
            after = next((other for other in known[place + 1 :] if other is not None), rtl)
            own = before if before == after else rtl
        out.append(own)
    return out


def _direction(char: str) -> bool | None:
    if _DIGIT.match(char):
        return False
    if RTL.match(char):
        return True
    return False if char.isalpha() else None
