"""An engine that is due ends its worker in order, by the signal that an operator would send."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from inference.engine import Engine
from inference.engines.stub import StubEngine
from inference.engines.thread import EngineThread
from inference.lanes import Lane
from inference.recycle import Recycle
from workers.engine_life import EngineLife
from workers.services import Services
from workers.settings import Settings

LANE = Lane("cpu", "0", "stub", "none", 4096)


@pytest.fixture
def engine() -> Iterator[EngineThread]:
    async def opened() -> Engine:
        return StubEngine()

    thread = EngineThread(opened)
    thread.start()
    yield thread
    thread.close()


@pytest.fixture
def told_to_end() -> Iterator[threading.Event]:
    event = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda number, frame: event.set())
    yield event
    signal.signal(signal.SIGTERM, before)


def test_an_engine_that_is_due_ends_its_worker_in_order(engine: EngineThread, told_to_end: threading.Event) -> None:
    lane = replace(LANE, recycle=Recycle(memory_gib=0.001, least_s=0))
    EngineLife(engine, lane, Services(Settings())).check()
    assert told_to_end.wait(5)


def test_a_healthy_engine_is_left_alone(engine: EngineThread, told_to_end: threading.Event) -> None:
    life = EngineLife(engine, LANE, Services(Settings()))
    life.look()
    life.check()
    seen = life.condition()
    assert (seen.preemptions_per_minute, seen.idle_cache) == (0.0, 0.0)
    assert 0 < seen.memory_gib < 1000
    assert not told_to_end.is_set()
