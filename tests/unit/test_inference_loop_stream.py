"""Both engines leave an answer that goes round in circles, which is what makes vLLM stop writing it."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from docmill.errors import EngineUnavailable
from inference.engine import Completion
from inference.engines.vllm_local import written
from inference.engines.vllm_server import body_of
from inference.loops import LOOP, STEP_TOKENS
from tests.unit.test_inference_server_engine import Server, request, with_server

LOOPING = ["The bank lends. "] * 200
PLAIN = ["{", '"account":', "null", "}"]


async def vllm(pieces: list[str], left: list[int], *, ends: bool = True) -> AsyncIterator[Any]:
    """Outputs as vLLM hands them out; `left` is told after how many it was left."""
    number = 0
    try:
        for number, text in enumerate(pieces, start=1):
            last = ends and number == len(pieces)
            piece = SimpleNamespace(text=text, token_ids=[0] * 4, finish_reason="stop" if last else None)
            yield SimpleNamespace(
                outputs=[piece], finished=last, prompt_token_ids=[1] * 7, num_cached_tokens=3, metrics=None
            )
    finally:
        left.append(number)


def local(pieces: list[str], **how: bool) -> tuple[Completion, int]:
    left: list[int] = []

    async def read() -> Completion:
        async with aclosing(vllm(pieces, left, **how)) as outputs:
            return await written(outputs)

    return asyncio.run(read()), left[0]


def test_a_local_answer_is_put_together_from_its_pieces() -> None:
    completion, _ = local(PLAIN)
    assert (completion.text, completion.finish_reason) == ('{"account":null}', "stop")
    assert (completion.prompt_tokens, completion.cached_tokens, completion.output_tokens) == (7, 3, 16)


def test_a_local_loop_is_left_early_with_what_it_has_cost() -> None:
    completion, pieces = local(LOOPING)
    assert completion.finish_reason == LOOP
    assert pieces < 20
    assert completion.output_tokens == 4 * pieces


def test_a_local_answer_without_a_last_word_is_the_engines_fault() -> None:
    with pytest.raises(EngineUnavailable, match="last word"):
        local(PLAIN, ends=False)


def talking(pieces: list[str], sent: list[int]) -> Callable[..., Any]:
    """A server that writes until the other side hangs up."""

    async def talk(path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number, text in enumerate(pieces, start=1):
            usage = {"prompt_tokens": 7, "completion_tokens": 4 * number}
            event = {"choices": [{"delta": {"content": text}, "finish_reason": None}], "usage": usage}
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
            sent.append(number)
            await asyncio.sleep(0.001)

    return talk


def test_a_servers_loop_is_hung_up_on_with_what_it_has_cost() -> None:
    sent: list[int] = []
    server = Server(talking(LOOPING * 10, sent))

    async def work(engine: Any) -> Completion:
        completion: Completion = await engine.submit(replace(request(), max_tokens=2000))
        await asyncio.wait_for(server.hung_up.wait(), 10)
        return completion

    completion = with_server(server, work)
    assert completion.finish_reason == LOOP
    assert (completion.prompt_tokens, completion.output_tokens % 4) == (7, 0)
    assert 0 < completion.output_tokens < 100
    assert len(sent) < len(LOOPING)


def test_a_server_is_asked_to_hand_out_its_answer_in_pieces_with_their_cost() -> None:
    body = body_of(request(), "small")
    assert body["stream_options"] == {"include_usage": True, "continuous_usage_stats": True}
    assert body["stream_interval"] == STEP_TOKENS
