"""The parts of the API that need no server."""

from __future__ import annotations

import pytest

from docmill.errors import DocmillError
from workers.api.callers import LONGEST_WAIT_S, wait_seconds
from workers.api.problems import STATUS


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("respond-async", 0.0),
        ("wait=2", 2.0),
        ("respond-async, wait=10", 10.0),
        ('wait="5"', 5.0),
        ("wait=1.5", 1.5),
        ("wait=86400", LONGEST_WAIT_S),
        ("await=3", 0.0),
    ],
)
def test_prefer_says_how_long_a_caller_waits(header: str | None, seconds: float) -> None:
    assert wait_seconds(header) == seconds


def test_every_error_of_ours_has_a_status() -> None:
    assert STATUS[-1][0] is DocmillError
