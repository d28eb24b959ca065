"""Ticks that leave room for other work: a kind of tick that took long is not carried out again for a while.

Control messages come first in their worker. On a machine so slow that a tick takes longer than the clock's interval,
the worker would do nothing but ticks, and each would find more to look at than the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

#: Of its worker's time a kind of tick takes one part in this and one more.
REST: Final = 5.0


@dataclass
class Pace:
    """One kind of tick in this process."""

    tick: Callable[[], object]
    clock: Callable[[], float] = field(default=time.monotonic)
    _next: float = 0.0

    def due(self) -> bool:
        """Carry the tick out, unless the last one needs its rest; whether it did."""
        begun = self.clock()
        if begun < self._next:
            return False
        try:
            self.tick()
        finally:
            ended = self.clock()
            self._next = ended + REST * (ended - begun)
        return True
