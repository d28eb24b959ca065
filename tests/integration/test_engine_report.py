"""What a GPU worker tells in a real Valkey reaches dispatch and Prometheus; what is lost there is only forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine as Database

from docmill.types import Heat, Usage
from inference.engine import Engine
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from storage.holds import Hold, Scope
from tests.conftest import valkey
from workers.controller import Controller
from workers.engine_report import Reporter, reports
from workers.gauges import ControlGauges
from workers.services import Services
from workers.settings import Settings


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from valkey(tmp_path_factory.mktemp("reports"))


@pytest.fixture
def use(engine: Database, broker: str) -> Iterator[Services]:
    url = engine.url.render_as_string(hide_password=False)
    made = Services(Settings(database_url=url, broker_url=broker))
    made.redis.flushall()
    yield made
    made.redis.close()
    made.database.dispose()


async def stub() -> Engine:
    return StubEngine(StubScript(), context_tokens=4096)


@pytest.fixture
def reporter(use: Services) -> Iterator[Reporter]:
    thread = EngineThread(partial(stub))
    thread.start()
    yield Reporter(thread, use.watch, use.redis, lane="cpu", worker="w1")
    thread.close()


def test_what_a_worker_tells_is_what_dispatch_sees(use: Services, reporter: Reporter) -> None:
    use.watch.saw(Heat.COLD, took_s=2.0, since_needed_s=5.0)
    told = reporter.tell()
    assert reports(use.redis) == [told]
    assert told.seconds_a_job == 2.0
    lane = Controller(use).look().view.lanes["cpu"]
    assert (lane.slots, lane.engines, lane.share) == (16, 1, 1.0)


def test_without_a_report_a_lane_has_its_configured_slots(use: Services) -> None:
    assert Controller(use).look().view.lanes["cpu"].slots == 16


def test_what_was_remembered_is_looked_at_by_the_next_tick(use: Services) -> None:
    controller = Controller(use)
    look = controller.look()
    controller.remember({"acme": 1234.5}, look)
    assert Controller(use).look().view.served == {"acme": 1234.5}
    use.redis.flushall()
    assert Controller(use).look().view.served == {}


def test_the_gauges_tell_of_ladder_engines_backlog_and_holds(use: Services, reporter: Reporter) -> None:
    reporter.tell()
    use.control.hold(Scope.LANE, "cpu", Hold.DRAIN)
    registry = CollectorRegistry()
    registry.register(ControlGauges(use))
    assert registry.get_sample_value("docmill_ladder_steps") == 0
    assert registry.get_sample_value("docmill_ladder_step", {"step": "hold-cold"}) == 0
    assert registry.get_sample_value("docmill_engine_running", {"lane": "cpu", "worker": "w1"}) == 0
    assert registry.get_sample_value("docmill_holds") == 1


def test_the_hit_rate_of_the_prefix_cache_is_told_by_lane_and_profile(use: Services, reporter: Reporter) -> None:
    for cached in (0, 300):
        use.watch.prompted("risk-report", Usage(prompt_tokens=400, cached_tokens=cached))
    use.watch.prompted("transaction-monitoring", Usage(prompt_tokens=100))
    reporter.tell()
    registry = CollectorRegistry()
    registry.register(ControlGauges(use))
    where = {"lane": "cpu", "profile": "risk-report"}
    assert registry.get_sample_value("docmill_prefix_cache_hit_rate", where) == 300 / 800
    assert registry.get_sample_value("docmill_prompt_tokens_total", where | {"worker": "w1"}) == 800
    assert registry.get_sample_value("docmill_cached_prompt_tokens_total", where | {"worker": "w1"}) == 300
