"""An engine without a model: it answers at once, or as scripted, with what the request's constraint allows.

For tests, for trying a pipeline out, and for measuring everything but the model. A grammar is answered with the
example that grounding wrote into it; any other grammar with an empty text, as vLLM does with one that does not compile.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from docmill.errors import EngineDead, PromptTooLong, SystemFault
from inference.engine import Completion, EngineInfo, Health, Request
from inference.engines.running import Running
from inference.grounding import example_in
from inference.loops import LOOP, STEP, LoopWatch

#: English text has about four characters to a token; good enough where there is no tokenizer.
_CHARACTERS_PER_TOKEN = 4


def count_tokens(text: str) -> int:
    """An estimate of the tokens of a text."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class StubScript:
    """What the stub does. `answers` are given first, one to a request; then the constraint is answered.

    `failures` maps the number of a request (from 0) to the error that it gets. `delay_s` is the time of a request.
    With `core` it has a child process, as vLLM's engine has, and is dead when that ends. A request whose prompt
    contains `deadly` kills this process, as one that takes all memory does.
    """

    delay_s: float = 0.0
    answers: Sequence[str] = ()
    failures: Mapping[int, SystemFault] = field(default_factory=dict)
    answer: Callable[[Request], str | None] = lambda request: None
    core: bool = False
    deadly: str = ""

    @classmethod
    def of(cls, words: str) -> StubScript:
        """A script as a lane names it: seconds, then perhaps `core` and `deadly=WORD`, as in "0.5 core deadly=BOOM"."""
        seconds, *more = words.split()
        deadly = [word.removeprefix("deadly=") for word in more if word.startswith("deadly=")]
        return cls(delay_s=float(seconds), core="core" in more, deadly="".join(deadly))


class StubEngine:
    """Implements `inference.engine.Engine` by a script."""

    def __init__(self, script: StubScript | None = None, *, context_tokens: int = 4096) -> None:
        self._script = script or StubScript()
        self._running = Running()
        self._ready = False
        self.info = EngineInfo("stub", "stub", "none", context_tokens)
        self._core: asyncio.subprocess.Process | None = None
        self._core_ended: asyncio.Future[int] | None = None
        #: Every request that came, in order.
        self.requests: list[Request] = []

    @classmethod
    async def open(cls, script: StubScript, *, context_tokens: int) -> StubEngine:
        """The engine, with its child process if the script has one."""
        engine = cls(script, context_tokens=context_tokens)
        if script.core:
            engine._core = await asyncio.create_subprocess_exec("sleep", "infinity")
            engine._core_ended = asyncio.ensure_future(engine._core.wait())
        return engine

    async def submit(self, request: Request) -> Completion:
        number = len(self.requests)
        self.requests.append(request)
        return await self._running.run(request, self._decode(number, request))

    async def cancel(self, request_id: str) -> None:
        self._running.cancel(request_id)

    async def health(self) -> Health:
        if self._core_ended is not None and self._core_ended.done():
            return Health(False, "the stub's child process ended", dead=True)
        return Health(self._ready, "" if self._ready else "not warmed up")

    async def metrics(self) -> dict[str, float]:
        return {
            "running": float(len(self._running)),
            "waiting": 0.0,
            "kv_cache_usage": 0.0,
            "prefix_cache_hit_rate": 0.0,
            "preemptions": 0.0,
        }

    async def close(self) -> None:
        self._ready = False
        if self._core is not None and self._core.returncode is None:
            self._core.kill()
            await self._core.wait()

    def mark_ready(self) -> None:
        self._ready = True

    async def _decode(self, number: int, request: Request) -> Completion:
        prompt_tokens = count_tokens(request.system) + count_tokens(request.user)
        if prompt_tokens + request.max_tokens > self.info.context_tokens:
            raise PromptTooLong(
                f"request {request.request_id}: {prompt_tokens} prompt and {request.max_tokens} output tokens are over"
                f" the context of {self.info.context_tokens}; split the document or take a lane with more context"
            )
        await self._pass_time()
        if self._script.deadly and self._script.deadly in request.user:
            os.kill(os.getpid(), signal.SIGKILL)
        if number in self._script.failures:
            raise self._script.failures[number]
        return self._completion(self._text(number, request), prompt_tokens, request.max_tokens)

    async def _pass_time(self) -> None:
        if self._core_ended is None:
            await asyncio.sleep(self._script.delay_s)
            return
        await asyncio.wait({self._core_ended}, timeout=self._script.delay_s)
        if self._core_ended.done():
            raise EngineDead("the stub's child process ended; the worker must be started again")

    def _text(self, number: int, request: Request) -> str:
        if number < len(self._script.answers):
            return self._script.answers[number]
        scripted = self._script.answer(request)
        if scripted is not None:
            return scripted
        if request.grammar is not None:
            return example_in(request.grammar) or ""
        return json.dumps(example_of(request.json_schema or {"type": "string"}), ensure_ascii=False)

    def _completion(self, text: str, prompt_tokens: int, max_tokens: int) -> Completion:
        written = text[: max_tokens * _CHARACTERS_PER_TOKEN]
        kept = _until_a_loop(written)
        tokens = count_tokens(text if kept == written else kept)
        reason = LOOP if kept != written else "length" if tokens > max_tokens else "stop"
        decode_ms = 1000 * self._script.delay_s
        return Completion(kept, reason, prompt_tokens, 0, min(tokens, max_tokens), 0.0, 0.0, decode_ms)


def _until_a_loop(text: str) -> str:
    """The text as far as it is written: an engine stops where it goes round in circles."""
    watch, stops = LoopWatch(), range(STEP, len(text), STEP)
    return next((text[:stop] for stop in stops if watch.saw(text[:stop])), text)


def example_of(schema: Mapping[str, Any]) -> Any:
    """A value of the schema: the first word of a list, null where it may be, an empty list."""
    if "enum" in schema:
        return schema["enum"][0]
    if "properties" in schema:
        return {name: example_of(inner) for name, inner in schema["properties"].items()}
    kinds = schema.get("type", "string")
    if "null" in kinds and kinds != "null":
        return None
    return {"array": [], "string": "none", "integer": 0, "number": 0, "boolean": False}.get(kinds)
