"""The room of an answer: what most answers needed and a fifth more, within the profile's limits."""

from dataclasses import replace

import pytest

from inference.output_length import ENOUGH, predicted
from inference.profile import load_profiles

PROFILE = replace(load_profiles()["risk-report"], max_output_tokens=320, min_output_tokens=48)


@pytest.mark.parametrize(
    ("readings", "p95", "room"),
    [(0, 0, 320), (ENOUGH - 1, 100, 320), (ENOUGH, 100, 120), (200, 101, 122), (200, 10, 48), (200, 300, 320)],
)
def test_the_room_follows_the_last_answers(readings: int, p95: int, room: int) -> None:
    assert predicted(readings, p95, PROFILE) == room
