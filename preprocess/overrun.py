"""A page that runs over its time, seen from inside the parser: the page is given up, what was read before it is kept.

A signal's handler rings; the bell is heard only while a page is read. What is stuck in a library's C code hears nothing
and is ended from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


class PageOverrun(BaseException):
    """Says what was used up, and which limit to raise. Not an Exception: no library takes it for one of its own."""


class Bell:
    """Rung by signal handlers, heard by the reader of a page."""

    def __init__(self) -> None:
        self._heard = False

    def ring(self, reason: str) -> None:
        """Give up the page that is read now, if one is."""
        if self._heard:
            self._heard = False
            raise PageOverrun(reason)

    def hear(self, read: Callable[[], T], give_up: Callable[[str], T]) -> T:
        """What `read` returns; what `give_up` makes of the reason if the bell rings before."""
        try:
            self._heard = True
            try:
                return read()
            finally:
                self._heard = False
        except PageOverrun as overrun:
            return give_up(str(overrun))


bell = Bell()
