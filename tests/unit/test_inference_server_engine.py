"""The engine over HTTP against servers that refuse, reset, stall, overflow and talk nonsense."""

import asyncio
import json
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import httpx
import pytest

from docmill.errors import DeadlineExceeded, EngineUnavailable, PromptTooLong
from inference.engine import Request
from inference.engines import vllm_server
from inference.engines.vllm_server import ServerEngine, ServerSettings, serve_command, translated

Handler = Callable[[str, bytes, asyncio.StreamWriter], Awaitable[None]]

MODELS = {"data": [{"id": "small", "max_model_len": 2048}]}
CHUNK = {"choices": [{"delta": {"content": "{}"}, "finish_reason": None}]}
CUT = {"choices": [{"delta": {}, "finish_reason": "length"}]}
LAST = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
USAGE = {
    "choices": [],
    "usage": {"prompt_tokens": 7, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
}


def response(status: int, body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def stream(*events: Any, done: bool = True) -> bytes:
    """A complete HTTP answer of server-sent events."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events] + ["[DONE]"] * done
    return response(200, "".join(f"data: {line}\n\n" for line in lines).encode(), "text/event-stream")


class Server:
    """Answers what the engine asks at the start; completions get what `complete` does, and are kept in `bodies`."""

    def __init__(self, complete: bytes | Handler, **answers: bytes) -> None:
        self._complete = complete
        #: What every other completion gets instead.
        self.every_other: bytes | Handler | None = None
        self._answers = {
            "/v1/models": response(200, json.dumps(MODELS).encode()),
            "/version": response(200, b'{"version": "0.32.0"}'),
            "/health": response(200, b""),
            **{f"/{name}": answer for name, answer in answers.items()},
        }
        self.bodies: list[Any] = []
        self.hung_up = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._answer(*await received(reader), reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up.set()
        writer.close()

    async def _answer(self, path: str, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if path != "/v1/chat/completions":
            writer.write(self._answers.get(path, response(404, b"not here")))
            return
        self.bodies.append(json.loads(body))
        other = self.every_other if len(self.bodies) % 2 == 0 else None
        complete = self._complete if other is None else other
        if isinstance(complete, bytes):
            writer.write(complete)
            return
        await complete(path, body, writer)
        await reader.read()
        self.hung_up.set()


async def received(reader: asyncio.StreamReader) -> tuple[str, bytes]:
    """The path and the body of one request."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next((int(line.split(":")[1]) for line in head.lower().splitlines() if "content-length" in line), 0)
    return head.split(" ", 2)[1], await reader.readexactly(length)


async def silence(path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    """The head of an answer, and then nothing."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    await writer.drain()


async def reset(path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


def request(**changes: Any) -> Request:
    given = {"request_id": "r1", "max_tokens": 16, "deadline_s": 10.0, **changes}
    return Request(system="system", user="user", **given)


def with_server(server: Server, work: Callable[[ServerEngine], Coroutine[Any, Any, Any]]) -> Any:
    """What `work` returns with an engine that is connected to the server."""

    async def run() -> Any:
        async with await asyncio.start_server(server, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            engine = await ServerEngine.open(ServerSettings(f"http://127.0.0.1:{port}/v1", "fp16"))
            try:
                return await work(engine)
            finally:
                await engine.close()

    return asyncio.run(run())


def answered(complete: bytes | Handler, **changes: Any) -> Any:
    return with_server(Server(complete), lambda engine: engine.submit(request(**changes)))


def test_a_streamed_answer_is_put_together_with_its_counts() -> None:
    completion = answered(stream(CHUNK, CHUNK, LAST, USAGE))
    assert (completion.text, completion.finish_reason) == ("{}{}", "stop")
    assert (completion.prompt_tokens, completion.cached_tokens, completion.output_tokens) == (7, 4, 2)
    assert completion.prefill_ms > 0


def test_the_request_carries_grammar_priority_and_salt() -> None:
    server = Server(stream(CHUNK, LAST, USAGE))
    asked = request(grammar='start: "a"', priority=3, cache_salt="tenant", seed=5)
    with_server(server, lambda engine: engine.submit(asked))
    (body,) = server.bodies
    assert body["structured_outputs"] == {"grammar": 'start: "a"'}
    assert (body["priority"], body["cache_salt"], body["seed"], body["model"]) == (3, "tenant", 5, "small")


def test_the_engine_says_what_the_server_said_of_itself() -> None:
    async def info(engine: ServerEngine) -> Any:
        return engine.info

    told = with_server(Server(b""), info)
    assert (told.build, told.model, told.precision, told.context_tokens) == ("vllm 0.32.0", "small", "fp16", 2048)


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_an_overloaded_server_is_unavailable(status: int) -> None:
    with pytest.raises(EngineUnavailable, match=f"answered {status}: come back later"):
        answered(response(status, b"come back later"))


def overloaded(status: int, retry_after: str) -> bytes:
    head = f"HTTP/1.1 {status} X\r\nRetry-After: {retry_after}\r\nContent-Length: 4\r\nConnection: close\r\n\r\n"
    return f"{head}busy".encode()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("said", "low", "high"),
    [
        ("7", 7, 7),
        ("86400", 300, 300),
        (format_datetime(datetime.now(UTC) + timedelta(hours=20), usegmt=True), 300, 300),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("soon", 0, 0),
    ],
    ids=["seconds", "too many seconds", "a date", "a date that is over", "nonsense"],
)
def test_an_overloaded_server_may_say_when_to_come_back(status: int, said: str, low: float, high: float) -> None:
    with pytest.raises(EngineUnavailable, match="busy") as refused:
        answered(overloaded(status, said))
    assert low <= refused.value.retry_after_s <= high


async def half_then_reset(path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    await silence(path, body, writer)
    writer.write(f"data: {json.dumps(CHUNK)}\n\n".encode())
    await writer.drain()
    writer.transport.abort()


def test_a_connection_that_is_reset_in_the_middle_of_an_answer_is_unavailable() -> None:
    with pytest.raises(EngineUnavailable, match=r"did not answer|ended before the answer did"):
        answered(half_then_reset)


FAULTS: dict[str, bytes | Handler] = {
    "429": response(429, b"busy"),
    "503": response(503, b"busy"),
    "garbage": b"nonsense\r\n\r\n",
    "half a stream": stream(CHUNK, done=False),
    "reset": reset,
    "reset half way": half_then_reset,
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_of_its_own_request_alone_and_the_engine_goes_on(fault: bytes | Handler) -> None:
    async def work(engine: ServerEngine) -> list[Any]:
        sent = [request(request_id=f"r{number}") for number in range(8)]
        first = await asyncio.gather(*(engine.submit(one) for one in sent), return_exceptions=True)
        server.every_other = None
        return [*first, await engine.submit(sent[0])]

    server = Server(stream(CHUNK, LAST, USAGE))
    server.every_other = fault
    *answers, last = with_server(server, work)
    assert sorted(type(one).__name__ for one in answers) == ["Completion"] * 4 + ["EngineUnavailable"] * 4
    assert last.finish_reason == "stop"


def test_a_reset_connection_is_unavailable() -> None:
    with pytest.raises(EngineUnavailable, match="did not answer"):
        answered(reset)


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EngineUnavailable, match="ConnectError"):
            asyncio.run(ServerEngine.open(ServerSettings(url, "fp16")))


@pytest.mark.parametrize(
    "answer",
    [
        stream("<html>", done=False),
        stream(CHUNK, done=False),
        stream(CHUNK, LAST, done=False),
        stream({"error": {"message": "engine died"}}),
        stream("[1, 2]"),
        stream(CHUNK, {"choices": [{"delta": {}, "finish_reason": "abort"}]}, USAGE),
        response(200, b"\x00\xff", "application/octet-stream"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\ndata: {",
        b"nonsense\r\n\r\n",
    ],
    ids=[
        "not json",
        "half a stream",
        "no usage",
        "error event",
        "not an object",
        "broken off",
        "bytes",
        "cut off",
        "not http",
    ],
)
def test_garbage_and_half_an_answer_are_unavailable(answer: bytes) -> None:
    with pytest.raises(EngineUnavailable):
        answered(answer)


def test_a_slow_server_runs_into_the_deadline_and_is_hung_up_on() -> None:
    async def work(engine: ServerEngine) -> float:
        started = time.perf_counter()
        with pytest.raises(DeadlineExceeded, match=r"0\.2 s"):
            await engine.submit(request(deadline_s=0.2))
        took = time.perf_counter() - started
        await asyncio.wait_for(server.hung_up.wait(), 5)
        return took

    server = Server(silence)
    assert with_server(server, work) < 5


def test_cancelling_a_request_closes_its_stream() -> None:
    async def work(engine: ServerEngine) -> None:
        waiting = asyncio.ensure_future(engine.submit(request()))
        while not server.bodies:
            await asyncio.sleep(0.01)
        await engine.cancel("unknown")
        assert not waiting.done()
        await engine.cancel("r1")
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await asyncio.wait_for(server.hung_up.wait(), 5)

    server = Server(silence)
    with_server(server, work)


def test_a_prompt_over_the_context_is_too_long() -> None:
    body = b'{"error": {"message": "This model\'s maximum context length is 2048 tokens. However, ..."}}'
    with pytest.raises(PromptTooLong, match="split the document"):
        answered(response(400, body))


@pytest.mark.parametrize("max_tokens", [16, 5000])
def test_an_answer_that_the_context_cut_short_means_a_prompt_too_long(max_tokens: int) -> None:
    with pytest.raises(PromptTooLong, match="2048"):
        with_server(
            Server(stream(CHUNK, CUT, USAGE)),
            lambda engine: engine.submit(replace(request(), max_tokens=max_tokens)),
        )


def test_an_answer_that_ran_into_its_own_limit_says_length() -> None:
    server = Server(stream(CHUNK, CUT, USAGE))
    completion = with_server(server, lambda engine: engine.submit(replace(request(), max_tokens=2)))
    assert completion.finish_reason == "length"


GRAMMAR_ERROR = {"error": {"message": "Grammar error: at 1(8)", "type": "BadRequestError", "code": 400}}


@pytest.mark.parametrize("answer", [response(400, json.dumps(GRAMMAR_ERROR).encode()), stream(GRAMMAR_ERROR)])
def test_a_grammar_that_does_not_compile_gives_an_empty_answer(answer: bytes) -> None:
    assert answered(answer).text == ""


def test_health_follows_the_server_and_the_warm_up() -> None:
    async def healths(engine: ServerEngine) -> list[bool]:
        before = await engine.health()
        engine.mark_ready()
        return [before.ready, (await engine.health()).ready]

    assert with_server(Server(b""), healths) == [False, True]
    assert with_server(Server(b"", health=response(503, b"")), healths) == [False, False]


def test_metrics_are_read_from_the_exposition() -> None:
    exposition = b"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0"} 0.25
# TYPE vllm:num_preemptions counter
vllm:num_preemptions_total{engine="0"} 4.0
# TYPE vllm:prefix_cache_queries counter
vllm:prefix_cache_queries_total{engine="0"} 200.0
# TYPE vllm:prefix_cache_hits counter
vllm:prefix_cache_hits_total{engine="0"} 50.0
"""
    read = with_server(Server(b"", metrics=response(200, exposition, "text/plain")), lambda engine: engine.metrics())
    gauges = {"running": 3.0, "waiting": 2.0, "kv_cache_usage": 0.25, "prefix_cache_hit_rate": 0.25}
    assert read == {**gauges, "preemptions": 4.0}


def test_a_server_that_does_not_serve_the_model_is_refused_at_the_start() -> None:
    async def opening() -> None:
        async with await asyncio.start_server(Server(b""), "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            await ServerEngine.open(ServerSettings(f"http://127.0.0.1:{port}", "fp16", model="large"))

    with pytest.raises(EngineUnavailable, match="does not serve large"):
        asyncio.run(opening())


def errors_of_httpx() -> Iterator[type[httpx.HTTPError]]:
    kinds = [httpx.HTTPError]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if not issubclass(kind, httpx.HTTPStatusError):
            yield kind


@pytest.mark.parametrize("kind", sorted(errors_of_httpx(), key=str))
def test_no_error_of_the_client_library_is_left_unmapped(kind: type[httpx.HTTPError]) -> None:
    assert isinstance(translated(kind("boom"), httpx.URL("http://lane")), EngineUnavailable)


def test_the_command_line_of_a_server_asks_for_what_the_engine_needs() -> None:
    command = serve_command("m", port=8001, context_tokens=2048)
    assert command[:3] == ["vllm", "serve", "m"]
    assert '"backend": "guidance"' in " ".join(command)
    assert vllm_server.MOST_AT_ONCE == 20
