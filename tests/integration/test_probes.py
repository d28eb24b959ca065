"""Probes on a real PostgreSQL: through the front door, judged once, told to Prometheus, and in nobody's results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine as Database
from sqlalchemy import text

from docmill.types import Heat, Outcome
from storage.migrate import VIEWS
from storage.ports import Stage
from storage.rules import PROBE_TENANT
from tests.jobs import claimed, extraction, route, through_parse, verdict
from tests.services import services_on
from workers.gauges import ControlGauges
from workers.probes import tick
from workers.services import Services


@pytest.fixture
def use(engine: Database, tmp_path: Path) -> Iterator[Services]:
    with services_on(engine, tmp_path, probe_every_s=60) as made:
        yield made


def sent(use: Services) -> list[tuple[str, dict[str, str]]]:
    """Every probe's job and what is expected of it."""
    with use.database.connect() as connection:
        rows = connection.execute(text("SELECT job_id, expected FROM probes ORDER BY sent_at"))
        return [(row.job_id, row.expected) for row in rows]


def answer(use: Services, job_id: str, result: dict[str, str]) -> None:
    """Carry the job to its end with this result."""
    through_parse(use.store, job_id, to=route(Heat.HOT, priority=0))
    read = extraction(result)
    use.store.finish_infer(claimed(use.store, job_id, Stage.INFER), read)
    use.store.finish_validate(claimed(use.store, job_id, Stage.VALIDATE), verdict(Outcome.PASS), read, retry=None)


def sample(use: Services, name: str, **labels: str) -> float | None:
    registry = CollectorRegistry()
    registry.register(ControlGauges(use))
    return registry.get_sample_value(name, labels)


def test_a_probe_goes_in_by_the_front_door_and_no_second_one_within_the_minute(use: Services) -> None:
    tick(use)
    tick(use)
    ((job_id, expected),) = sent(use)
    assert use.store.record(job_id).tenant == PROBE_TENANT
    assert set(expected) == {"account", "amount"}


def test_right_and_wrong_answers_are_counted_once_and_told_to_prometheus(use: Services) -> None:
    tick(use)
    ((right, expected),) = sent(use)
    answer(use, right, expected)
    with use.database.begin() as connection:
        connection.execute(text("UPDATE probes SET sent_at = sent_at - interval '61 s'"))
    tick(use)
    wrong = sent(use)[1][0]
    answer(use, wrong, {"account": "ACC-0", "amount": "0.00"})
    tick(use)
    tick(use)
    of = {"heat": "hot", "length": "short"}
    assert sample(use, "docmill_probes_total", **of, outcome="wrong", in_time="false") == 1
    known = [sample(use, "docmill_probes_total", **of, outcome="right", in_time=told) for told in ("true", "false")]
    assert sorted(known, key=str) == [0, 1]
    assert sample(use, "docmill_probes_total", heat="cold", length="long", outcome="wrong", in_time="false") == 0
    took = sample(use, "docmill_probe_seconds", **of, quantile="0.99")
    assert took is not None and took > 0


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_shows_a_probe(use: Services, view: str) -> None:
    tick(use)
    ((job_id, expected),) = sent(use)
    answer(use, job_id, expected)
    with use.database.connect() as connection:
        assert connection.execute(text(f"SELECT count(*) FROM {view}")).scalar_one() == 0
