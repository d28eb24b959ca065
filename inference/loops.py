"""Whether an answer goes round in circles: white space without end, or the same words again and again.

A loop is looked for while the answer is written, so that it costs no more than its beginning. What is printed in
documents repeats too (a row of zeros, a line of dashes), so a loop must be long as well as regular.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

Loop = Literal["whitespace", "repetition"]

#: The finish reason of an answer that was stopped because of a loop.
LOOP: Final = "loop"
#: White space at the end of an answer; JSON that is laid out for people indents by less.
WHITESPACE: Final = 64
#: The longest unit that is seen to repeat, the fewest repeats, and the length that they must have in all.
LONGEST_UNIT: Final = 120
FEWEST: Final = 4
LONG_ENOUGH: Final = 160
#: An answer is looked at again after so many new characters.
STEP: Final = 32
#: Tokens between two looks, where an engine hands out what it has written in batches.
STEP_TOKENS: Final = 32


def loop_in(text: str) -> Loop | None:
    """The loop in which a text ends, if it ends in one."""
    if len(text) - len(text.rstrip()) >= WHITESPACE:
        return "whitespace"
    tail = text[-max(LONG_ENOUGH, FEWEST * LONGEST_UNIT) :]
    return "repetition" if any(_repeats(tail, unit) for unit in range(1, LONGEST_UNIT + 1)) else None


def _repeats(tail: str, unit: int) -> bool:
    """Whether the end of the text has this period for long enough."""
    length = max(LONG_ENOUGH, FEWEST * unit)
    if len(tail) < length or tail[-1] != tail[-1 - unit]:
        return False
    end = tail[-length:]
    return end[unit:] == end[:-unit]


@dataclass
class LoopWatch:
    """Looks at an answer while it is written: `saw` is given the whole text so far, as often as there is more."""

    find: Callable[[str], Loop | None] = loop_in
    _seen: int = 0

    def saw(self, text: str) -> Loop | None:
        """The loop in which the answer is caught, if it is."""
        if len(text) < self._seen + STEP:
            return None
        self._seen = len(text)
        return self.find(text)
