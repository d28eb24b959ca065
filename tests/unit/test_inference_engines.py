"""The stub, the engine's own thread, and warm-up."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from docmill.errors import DeadlineExceeded, EngineDead, EngineUnavailable
from inference.engine import Completion, Engine, Request
from inference.engines.stub import StubEngine, StubScript, example_of
from inference.engines.thread import EngineThread
from inference.lanes import load_lanes
from inference.profile import load_profiles
from inference.warmup import warm_up

PROFILES = load_profiles()


def request(number: int = 0, **changes: Any) -> Request:
    return Request(f"r{number}", "system", "user", 16, **changes)


def opening(script: StubScript | None = None) -> Any:
    async def open_engine() -> Engine:
        return StubEngine(script)

    return open_engine


def test_many_threads_share_one_engine_on_one_loop() -> None:
    host = EngineThread(opening(StubScript(delay_s=1.0)))
    host.start()
    together = 0.0
    with ThreadPoolExecutor(16) as pool:
        waiting = [pool.submit(host.submit, request(number)) for number in range(16)]
        while not all(one.done() for one in waiting):
            metrics = host.call(lambda engine: engine.metrics(), 10)
            together = max(together, metrics["running"])
    assert [one.result().text != "" for one in waiting] == [True] * 16
    assert together > 1  # not one after the other
    host.close()
    assert "engine" not in {thread.name for thread in threading.enumerate()}


def test_an_engine_that_was_not_started_says_so() -> None:
    host = EngineThread(opening())
    with pytest.raises(EngineUnavailable, match="start"):
        host.submit(request())
    host.close()


def test_an_engine_that_does_not_open_raises_what_it_raised() -> None:
    async def failing() -> Engine:
        raise EngineDead("no weights")

    host = EngineThread(failing)
    with pytest.raises(EngineDead, match="no weights"):
        host.start()
    host.close()
    host.close()


def test_work_that_hangs_is_cancelled_after_its_time() -> None:
    stopped = threading.Event()

    async def hanging(engine: Engine) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    host = EngineThread(opening())
    host.start()
    with pytest.raises(DeadlineExceeded, match=r"0\.1 s"):
        host.call(hanging, 0.1)
    assert stopped.wait(5)
    host.close()


def test_cancelling_the_future_stops_the_request() -> None:
    host = EngineThread(opening(StubScript(delay_s=60)))
    engine = host.start()
    future = host.begin(lambda: engine.submit(request()))
    while host.call(lambda e: e.metrics(), 5)["running"] == 0:
        time.sleep(0.01)
    future.cancel()
    with pytest.raises(CancelledError):
        future.result(5)
    until = time.monotonic() + 5
    while host.call(lambda e: e.metrics(), 5)["running"] > 0:
        assert time.monotonic() < until
    host.close()


def test_the_stub_fails_when_its_script_says_so() -> None:
    async def both() -> list[Completion | BaseException]:
        engine = StubEngine(StubScript(failures={0: EngineDead("killed")}))
        return await asyncio.gather(*(engine.submit(request(n)) for n in range(2)), return_exceptions=True)

    first, second = asyncio.run(both())
    assert isinstance(first, EngineDead)
    assert isinstance(second, Completion)


def test_the_stub_answers_a_json_schema() -> None:
    schema = {"properties": {"a": {"enum": ["x"]}, "b": {"type": ["string", "null"]}, "c": {"type": "array"}}}
    assert example_of(schema) == {"a": "x", "b": None, "c": []}


def test_an_engine_is_ready_only_after_all_three_steps() -> None:
    async def warming() -> tuple[bool, StubEngine, bool]:
        engine = StubEngine()
        before = (await engine.health()).ready
        await warm_up(engine, PROFILES.values(), at_once=20)
        return before, engine, (await engine.health()).ready

    before, engine, after = asyncio.run(warming())
    assert (before, after) == (False, True)
    asked = [one.request_id for one in engine.requests]
    assert asked[0] == "warm-up.weights"
    assert len([name for name in asked if name.startswith("warm-up.load")]) == 20
    assert {one.grammar is not None for one in engine.requests[1:7]} == {True}
    assert len(engine.requests) == 1 + 2 * len(PROFILES) + 20


def test_an_engine_that_fails_while_warming_up_is_not_ready() -> None:
    async def warming() -> bool:
        engine = StubEngine(StubScript(failures={3: EngineUnavailable("refused")}))
        with pytest.raises(EngineUnavailable):
            await warm_up(engine, PROFILES.values())
        return (await engine.health()).ready

    assert asyncio.run(warming()) is False


def test_every_profile_can_be_read_on_the_lanes_of_the_box() -> None:
    assert all(set(profile.lanes) <= set(load_lanes()) for profile in PROFILES.values())


def test_the_stub_is_dead_when_its_child_process_is_killed() -> None:
    script = StubScript.of("30 core deadly=BOOM")
    assert (script.delay_s, script.core, script.deadly) == (30.0, True, "BOOM")

    async def killed() -> None:
        engine = await StubEngine.open(script, context_tokens=4096)
        reading = asyncio.ensure_future(engine.submit(request()))
        [core] = [child for child in psutil.Process().children() if child.name() == "sleep"]
        core.kill()
        with pytest.raises(EngineDead):
            await asyncio.wait_for(reading, 20)
        await engine.close()

    asyncio.run(killed())
