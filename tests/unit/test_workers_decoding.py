"""A reading stops when its job is cancelled, and is handed back when its worker leaves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from docmill.errors import StaleAttempt
from inference.engine import Completion, Engine, Request
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from storage.memory import MemoryJobStore
from storage.ports import Claim, Stage
from tests.jobs import accepted, claimed, through_parse
from workers.decoding import Decoding, HandedBack
from workers.lease import Leases

WITHIN_S = 20.0


@pytest.fixture
def slow_engine() -> Iterator[EngineThread]:
    """An engine that takes a minute for each request."""

    async def opened() -> Engine:
        return StubEngine(StubScript(delay_s=60.0))

    engine = EngineThread(opened)
    engine.start()
    yield engine
    engine.close()


@pytest.fixture
def store() -> MemoryJobStore:
    return MemoryJobStore()


def begun(store: MemoryJobStore, data: bytes, **options: object) -> Claim:
    job_id = accepted(store, data, **options)
    through_parse(store, job_id)
    return claimed(store, job_id, Stage.INFER)


def read(decoding: Decoding, leases: Leases, claim: Claim, engine: EngineThread) -> Completion:
    request = Request(claim.job_id, "system", "user", 8)
    with leases.held(claim):
        return decoding.run(claim, engine, lambda real: real.submit(request), WITHIN_S)


def running(engine: EngineThread) -> int:
    return int(engine.call(lambda real: real.metrics(), 5)["running"])


def until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(int(WITHIN_S / 0.01)):
        if condition():
            return
        pause.wait(0.01)
    raise AssertionError("waited in vain")


def test_a_job_that_is_cancelled_while_it_is_read_stops_decoding_and_others_go_on(
    slow_engine: EngineThread, store: MemoryJobStore
) -> None:
    leases = Leases(store, lease_s=0.1)
    decoding = Decoding(leases)
    claims = [begun(store, data, batch_id="b1") for data in (b"one", b"two", b"three")]
    with ThreadPoolExecutor(3) as pool:
        readings = [pool.submit(read, decoding, leases, claim, slow_engine) for claim in claims]
        until(lambda: running(slow_engine) == 3)
        assert {told["job_id"] for told in decoding.told()} == {claim.job_id for claim in claims}
        for claim in claims[:2]:
            store.cancel(claim.job_id, tenant="acme")
        for reading in readings[:2]:
            with pytest.raises(StaleAttempt, match="cancelled or lost"):
                reading.result(WITHIN_S)
        until(lambda: running(slow_engine) == 1)
        assert not readings[2].done()
        decoding.hand_back()
        with pytest.raises(HandedBack):
            readings[2].result(WITHIN_S)


def test_nothing_begins_in_a_worker_that_leaves(slow_engine: EngineThread, store: MemoryJobStore) -> None:
    leases = Leases(store, lease_s=60)
    decoding = Decoding(leases)
    assert decoding.hand_back() == 0
    with pytest.raises(HandedBack, match="leaving"):
        read(decoding, leases, begun(store, b"one"), slow_engine)
    assert decoding.told() == []
