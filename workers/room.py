"""Where the claims of one process are worked on side by side, until one of them must be alone.

A job that lost its worker again and again is read with nothing beside it: if the worker dies then, it was this job; if
not, it was another one's fault. And nothing begins in a process that is about to end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Place:
    """One claim's place in the room."""

    room: Room
    is_alone: bool = False

    def be_alone(self) -> None:
        """Wait until all others have left; nobody enters before this one has left too."""
        self.is_alone = True
        self.room.clear_for_one()


class Room:
    """Counts who works here. Those who want to be alone come one after the other, and before all others."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside = 0
        self._want_alone = 0
        self._has_one = False
        self._closed = False

    @contextmanager
    def entered(self) -> Iterator[Place]:
        """A place beside the others; waits while somebody is or wants to be alone, and for ever in a closed room."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_open)
            self._inside += 1
        place = Place(self)
        try:
            yield place
        finally:
            self._leave(place)

    @property
    def is_open(self) -> bool:
        """Whether one more may enter."""
        return not self._want_alone and not self._closed

    @property
    def is_closed(self) -> bool:
        """Whether nobody may enter any more."""
        return self._closed

    def close(self) -> None:
        """The process ends soon: nothing new is begun."""
        self._closed = True

    def clear_for_one(self) -> None:
        """Called from inside: no longer one of many, but one that waits to be the only one."""
        with self._changed:
            self._inside -= 1
            self._want_alone += 1
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._inside and not self._has_one)
            self._has_one = True

    def _leave(self, place: Place) -> None:
        with self._changed:
            if place.is_alone:
                self._want_alone -= 1
                self._has_one = False
            else:
                self._inside -= 1
            self._changed.notify_all()
