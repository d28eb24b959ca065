"""When probes are sent, what they are, and what is made of their answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest
import yaml

from docmill.types import Heat, LengthClass, Status
from storage.probes import Ended, Judged, Traffic
from storage.rules import PROBE_TENANT
from workers.probes import AT_ONCE, KINDS, due, judge, make

ROOT = Path(__file__).parents[2]
IN_TIME = {"hot": 2.0}
EXPECTED = {"account": "ACC-1", "amount": "12,345.67"}


def ended(result: dict[str, Any] | None, *, seconds: float = 1.0, status: Status = Status.DONE) -> Ended:
    return Ended("job_1", EXPECTED, status, Heat.HOT, LengthClass.SHORT, seconds, result)


@pytest.mark.parametrize(
    ("traffic", "wanted"),
    [
        (Traffic(0, 0, None), 1),
        (Traffic(0, 1, 10.0), 0),
        (Traffic(0, 1, 60.0), 1),
        (Traffic(1000, 4, 1.0), 6),
        (Traffic(1000, 12, 1.0), 0),
        (Traffic(1000, 12, 60.0), 1),
        (Traffic(50, 0, 30.0), 0),
        (Traffic(10**6, 0, 1.0), AT_ONCE),
    ],
    ids=["the first", "quiet", "a minute ago", "share", "enough", "enough but long ago", "below one", "a flood"],
)
def test_a_share_of_the_traffic_is_probes_and_one_comes_at_least_every_minute(traffic: Traffic, wanted: int) -> None:
    assert due(traffic, share=0.01, every_s=60) == wanted


def test_an_answer_is_right_if_it_says_what_the_document_says() -> None:
    right = {"account": "ACC-1", "amount": "USD 12,345.67", "date": "2024-01-02"}
    assert judge(ended(right), IN_TIME) == Judged("right", True)
    assert judge(ended(right, status=Status.NEEDS_REVIEW), IN_TIME) == Judged("right", True)


@pytest.mark.parametrize("wrong", [{"account": "ACC-1"}, {"account": "ACC-1", "amount": "2,345.67"}, {}])
def test_an_answer_that_lacks_a_value_or_has_another_is_wrong_however_fast_it_came(wrong: dict[str, Any]) -> None:
    assert judge(ended(wrong, seconds=0.1), IN_TIME) == Judged("wrong", False)


def test_what_is_right_and_late_is_not_in_time() -> None:
    right = {"account": "ACC-1", "amount": "12,345.67"}
    assert judge(ended(right, seconds=2.1), IN_TIME) == Judged("right", False)


def test_a_job_without_a_result_has_failed() -> None:
    assert judge(ended(None, status=Status.FAILED), IN_TIME) == Judged("failed", False)


def test_probes_print_what_they_expect_and_no_two_say_the_same() -> None:
    probes = [make(number)[1] for number in range(40)]
    assert len({tuple(probe.expected.values()) for probe in probes}) == len(probes)
    for probe in probes[:5]:
        with pymupdf.open(stream=probe.data, filetype="pdf") as document:
            text = "".join(page.get_text() for page in document)
        assert all(value in text for value in probe.expected.values())


def test_every_class_of_probe_is_sent() -> None:
    assert {make(number)[0] for number in range(200)} == set(KINDS)


@pytest.mark.parametrize("view", sorted((ROOT / "storage/views").glob("*.sql")), ids=lambda path: path.stem)
def test_no_view_shows_probes(view: Path) -> None:
    assert f"<> '{PROBE_TENANT}'" in view.read_text(encoding="utf-8")


def test_every_alert_says_what_is_wrong_and_asks_for_a_metric_that_there_is() -> None:
    groups = yaml.safe_load((ROOT / "deploy/alerts.yml").read_text(encoding="utf-8"))["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    recorded = {rule["record"] for rule in rules if "record" in rule}
    for rule in rules:
        asked = {word for word in rule["expr"].replace("(", " ").split() if word.startswith("docmill")}
        names = {word.partition("{")[0].partition("[")[0].rstrip(")") for word in asked}
        metrics = {"docmill_probes_total", "docmill_probe_oldest_seconds"}
        assert names and names <= recorded | metrics, rule
        assert "record" in rule or rule["annotations"]["summary"]
