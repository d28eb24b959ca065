"""vLLM without docmill around it, in a process of its own: `LLM.generate`, or the code of `vllm run-batch`.

Started by `bench.engine` with `llm` or `run-batch` and the engine's settings as JSON. Each line of its input names a
file of requests; each is answered with one line: seconds, output tokens, and this process's own CPU seconds (the model
computes in a child). Both get the engine arguments that docmill's local engine gives to vLLM.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import psutil

from inference.engine import Request
from inference.engines.vllm_local import LocalSettings, engine_arguments, rendered, sampling_of
from inference.engines.vllm_server import body_of

#: Marks our lines among what vLLM prints.
ANSWER: Final = "ANSWER "

Run = Callable[[Sequence[Request]], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of a side."""

    seconds: float
    output_tokens: int
    front_cpu_s: float


def requests_in(file: Path) -> list[Request]:
    return msgspec.json.decode(file.read_bytes(), type=list[Request])


def own_cpu_s() -> float:
    """User and system time of this process, its children left out."""
    times = psutil.Process().cpu_times()
    return float(times.user + times.system)


async def _serve(run: Run) -> None:
    print(f"{ANSWER}ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        requests = requests_in(Path(line.strip()))
        cpu, started = own_cpu_s(), time.perf_counter()
        tokens = await run(requests)
        measured = Measured(time.perf_counter() - started, tokens, own_cpu_s() - cpu)
        print(ANSWER + msgspec.json.encode(measured).decode(), flush=True)


async def offline(settings: LocalSettings) -> None:
    """`LLM.generate` with all prompts at once, as token ids: reading them is not in its time."""
    import transformers
    from vllm import LLM
    from vllm.inputs import tokens_input

    arguments = engine_arguments(settings)
    # These two are of the server's engine alone; without statistics it has a little less to do.
    del arguments["enable_log_requests"], arguments["disable_log_stats"]
    llm = LLM(**arguments)
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model)

    async def run(requests: Sequence[Request]) -> int:
        prompts = [tokens_input(rendered(one, tokenizer), cache_salt=one.cache_salt) for one in requests]
        done = llm.generate(prompts, [sampling_of(one) for one in requests], use_tqdm=False)
        return sum(len(one.outputs[0].token_ids) for one in done)

    await _serve(run)


async def run_batch(settings: LocalSettings) -> None:
    """What `vllm run-batch` does between reading its file and writing the answers, on an engine that stays."""
    from vllm import AsyncEngineArgs
    from vllm.entrypoints.launchers import run_batch as launcher
    from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client_from_engine_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    folder = Path(tempfile.mkdtemp(prefix="docmill-run-batch-"))
    asked, answered = folder / "in.jsonl", folder / "out.jsonl"
    parser = launcher.make_arg_parser(FlexibleArgumentParser())
    options = parser.parse_args(["-i", str(asked), "-o", str(answered), "--model", settings.model])
    arguments = AsyncEngineArgs(**engine_arguments(settings))
    async with build_async_engine_client_from_engine_args(arguments) as client:

        async def run(requests: Sequence[Request]) -> int:
            asked.write_text("\n".join(_line(one, settings.model) for one in requests))
            await launcher.run_batch(client, options)
            lines = answered.read_text().splitlines()
            return sum(json.loads(line)["response"]["body"]["usage"]["completion_tokens"] for line in lines)

        await _serve(run)


def _line(request: Request, model: str) -> str:
    body: dict[str, Any] = body_of(request, model)
    del body["stream"], body["stream_options"]
    line = {"custom_id": request.request_id, "method": "POST", "url": "/v1/chat/completions", "body": body}
    return json.dumps(line, ensure_ascii=False)


if __name__ == "__main__":
    settings = msgspec.json.decode(sys.argv[2], type=LocalSettings)
    asyncio.run({"llm": offline, "run-batch": run_batch}[sys.argv[1]](settings))
