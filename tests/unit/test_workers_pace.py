"""Ticks never take all of a worker's time."""

from __future__ import annotations

import pytest

from workers.pace import REST, Pace


class Slow:
    """A tick that takes its time on a clock of its own."""

    def __init__(self, takes: float) -> None:
        self.now, self.takes, self.ticks = 100.0, takes, 0

    def tick(self) -> None:
        self.ticks += 1
        self.now += self.takes


def test_a_slow_tick_is_followed_by_a_rest_however_many_messages_wait() -> None:
    slow = Slow(takes=2.0)
    pace = Pace(slow.tick, clock=lambda: slow.now)
    assert pace.due()
    end = slow.now + REST * slow.takes
    while slow.now < end - 0.1:
        assert not pace.due()
        slow.now += 0.1
    slow.now = end
    assert pace.due()
    assert slow.ticks == 2


def test_a_tick_that_failed_rests_too() -> None:
    slow = Slow(takes=1.0)

    def fails() -> None:
        slow.tick()
        raise OSError("the database is away")

    pace = Pace(fails, clock=lambda: slow.now)
    with pytest.raises(OSError):
        pace.due()
    assert not pace.due()
