"""A value that is asked for again once it is old."""

from __future__ import annotations

import itertools
import time

from workers.ladder import Fresh


def test_a_fresh_value_is_not_asked_for_again() -> None:
    held = Fresh(itertools.count().__next__, 3600)
    assert [held.value(), held.value()] == [0, 0]


def test_an_old_value_is() -> None:
    held = Fresh(itertools.count().__next__, 0)
    assert held.value() == 0
    time.sleep(0.001)
    assert held.value() == 1


def test_what_took_long_to_ask_is_held_for_a_multiple_of_that() -> None:
    counter = itertools.count()

    def slow() -> int:
        time.sleep(0.02)
        return next(counter)

    held = Fresh(slow, 0, rest=100_000)
    assert [held.value(), held.value()] == [0, 0]
