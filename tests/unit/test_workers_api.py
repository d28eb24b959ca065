"""The parts of the API that need no server."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import create_engine

from docmill.errors import DocmillError
from workers.api.callers import LONGEST_WAIT_S, wait_seconds
from workers.api.problems import STATUS, answer_errors


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


def test_a_database_that_is_away_is_told_to_the_caller_as_passing(tmp_path: Path) -> None:
    api, nobody = FastAPI(), create_engine(f"postgresql+psycopg://nobody@/none?host={tmp_path}")
    answer_errors(api)

    @api.get("/ask")
    def ask() -> None:
        nobody.connect()

    answer = TestClient(api).get("/ask")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
    assert int(answer.headers["Retry-After"]) > 0
