"""vLLM in this process: AsyncLLM on the event loop that opens it (see `thread.EngineThread`).

vLLM starts a child process for the model. It is imported only when an engine is opened: the import takes seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

from docmill.errors import DocmillError, EngineDead, EngineUnavailable, PromptTooLong
from inference.engine import Completion, EngineInfo, Health, Request
from inference.engines.running import Running, whole
from inference.lanes import Lane, NGram
from inference.loops import LOOP, STEP_TOKENS, LoopWatch

_GIB = 1 << 30
#: Anything that vLLM calls a client's error and that names one of these is about the grammar.
_ABOUT_LENGTH = ("longer than the maximum model length", "maximum context length")

#: For `LocalSettings.more` on a CPU. Prompts are not prefilled in chunks: a seeded request whose prompt is cut in two
#: ends the engine there ("CPU Generator does not use offset", vLLM 0.32); so a step must hold the longest prompt. The
#: model runs in the engine's own process: with a second one, the first spins for its answers and takes a core from it
#: (39 against 30 tokens/s decoding on two cores, and up in 46 instead of 76 s).
ON_CPU: Mapping[str, Any] = {
    "enable_chunked_prefill": False,
    "max_num_batched_tokens": 4096,
    "distributed_executor_backend": "vllm.v1.executor.uniproc_executor.UniProcExecutor",
}


#: What a lane says of its engine, by the same names here.
_OF_THE_LANE = (
    *("model", "precision", "context_tokens", "max_num_seqs", "dtype", "quantization", "gpus", "devices"),
    *("memory_share", "kv_cache_dtype", "kv_offload_gib", "prefix_caching", "speculative", "scheduling"),
)


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """How to start vLLM here. On a CPU: float32 (AVX2 has no bf16), eager, and a bounded KV cache.

    `kv_cache_gib` None leaves the size to vLLM, which takes nearly all memory. `omp_threads_bind` is
    VLLM_CPU_OMP_THREADS_BIND ("nobind", "0-1"); vLLM reads it from the environment: see `environment`.
    `more` goes to AsyncEngineArgs as it is.
    """

    model: str
    precision: str
    context_tokens: int
    max_num_seqs: int = 16
    dtype: str = "auto"
    quantization: str | None = None
    gpus: int = 1
    enforce_eager: bool = False
    kv_cache_gib: float | None = None
    omp_threads_bind: str | None = None
    drain_s: int = 10
    devices: tuple[int | str, ...] = ()
    memory_share: float | None = None
    kv_cache_dtype: str = "auto"
    kv_offload_gib: float = 0.0
    prefix_caching: bool = True
    speculative: NGram | None = None
    scheduling: str = "priority"
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, lane: Lane, **changes: Any) -> LocalSettings:
        """The settings of a lane; `changes` are of this machine (`kv_cache_gib`, `enforce_eager`, ...)."""
        return cls(**{**{name: getattr(lane, name) for name in _OF_THE_LANE}, **changes})


def environment(settings: LocalSettings) -> Mapping[str, str]:
    """What must be in the environment before the engine is opened; whoever owns the process sets it."""
    wanted = {
        "VLLM_CPU_OMP_THREADS_BIND": settings.omp_threads_bind,
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, settings.devices)) or None,
        # Threads that spin at every barrier crawl as soon as anything else wants the cores.
        "OMP_WAIT_POLICY": "PASSIVE",
        "VLLM_NO_USAGE_STATS": "1",
    }
    return {name: value for name, value in wanted.items() if value is not None}


class LocalEngine:
    """Implements `inference.engine.Engine` on AsyncLLM. Use `open`."""

    def __init__(self, llm: Any, tokenizer: Any, settings: LocalSettings, gauges: _Gauges) -> None:
        import vllm

        self._llm = llm
        self._tokenizer = tokenizer
        self._settings = settings
        self._gauges = gauges
        self._running = Running()
        self._ready = False
        self.info = EngineInfo(f"vllm {vllm.__version__}", settings.model, settings.precision, settings.context_tokens)

    @classmethod
    async def open(cls, settings: LocalSettings) -> LocalEngine:
        """Start vLLM and load the weights; takes half a minute or more. The engine is not ready before warm-up."""
        import transformers
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        gauges = _Gauges()
        tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model)
        try:
            arguments = AsyncEngineArgs(**engine_arguments(settings))
            llm = AsyncLLM.from_engine_args(arguments, stat_loggers=[gauges.of_engine])
        except RuntimeError as error:
            raise EngineDead(f"vLLM did not start with {settings.model}: {error}; its log says why") from error
        return cls(llm, tokenizer, settings, gauges)

    def count(self, text: str) -> int:
        """The tokens of a text in this model's vocabulary."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    async def submit(self, request: Request) -> Completion:
        tokens = self._rendered(request)
        return await self._running.run(request, self._decode(request, tokens))

    async def cancel(self, request_id: str) -> None:
        self._running.cancel(request_id)

    async def health(self) -> Health:
        if self._llm.errored:
            return Health(False, f"the engine died: {self._llm.dead_error}", dead=True)
        return Health(self._ready, "" if self._ready else "not warmed up")

    async def metrics(self) -> dict[str, float]:
        return self._gauges.read(idle=len(self._running) == 0)

    async def close(self) -> None:
        self._ready = False
        await asyncio.to_thread(self._llm.shutdown, timeout=self._settings.drain_s)

    def mark_ready(self) -> None:
        self._ready = True

    def _rendered(self, request: Request) -> list[int]:
        """The prompt's tokens, if they and the answer fit the context."""
        tokens = rendered(request, self._tokenizer)
        if len(tokens) + request.max_tokens > self.info.context_tokens:
            raise PromptTooLong(
                f"request {request.request_id}: {len(tokens)} prompt and {request.max_tokens} output tokens are over"
                f" the context of {self.info.context_tokens}; split the document or take a lane with more context"
            )
        return tokens

    async def _decode(self, request: Request, tokens: list[int]) -> Completion:
        from vllm.exceptions import VLLMError
        from vllm.inputs import tokens_input

        prompt = tokens_input(tokens, cache_salt=request.cache_salt)
        sampling, name, priority = in_steps(sampling_of(request)), request.request_id, request.priority
        try:
            # Leaving the stream early is what makes vLLM stop decoding.
            async with aclosing(self._llm.generate(prompt, sampling, request_id=name, priority=priority)) as outputs:
                return whole(await written(outputs), request)
        except VLLMError as error:
            if _is_about_the_grammar(error):
                return Completion("", "error", len(tokens), 0, 0, 0.0, 0.0, 0.0)
            raise translated(error, request.request_id) from error


async def written(outputs: AsyncIterator[Any]) -> Completion:
    """The answer put together from its pieces, as far as it does not go round in circles."""
    text, tokens, watch = "", 0, LoopWatch()
    async for output in outputs:
        piece = output.outputs[0]
        text, tokens = text + piece.text, tokens + len(piece.token_ids)
        if output.finished:
            return _completion(output, text, tokens, piece.finish_reason or "")
        if watch.saw(text):
            return _completion(output, text, tokens, LOOP)
    raise EngineUnavailable("vLLM ended an answer without a last word; try again")


def in_steps(sampling: Any) -> Any:
    """The same sampling, the answer handed out in pieces of a few tokens: each alone is not worth a look."""
    from vllm.sampling_params import RequestOutputKind

    sampling.output_kind, sampling.stream_interval = RequestOutputKind.DELTA, STEP_TOKENS
    return sampling


def rendered(request: Request, tokenizer: Any) -> list[int]:
    """The tokens of a request's messages by the model's chat template."""
    messages = [{"role": "system", "content": request.system}, {"role": "user", "content": request.user}]
    tokens: list[int] = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    return tokens


def translated(error: Exception, request_id: str) -> DocmillError:
    """vLLM's error in our words; the one place where they are mapped."""
    from vllm.exceptions import VLLMClientError
    from vllm.v1.engine.exceptions import EngineDeadError

    if isinstance(error, EngineDeadError):
        return EngineDead(f"request {request_id}: vLLM died: {error}; this process must exit and be started again")
    if isinstance(error, VLLMClientError) and any(words in str(error) for words in _ABOUT_LENGTH):
        return PromptTooLong(f"request {request_id}: {error}")
    return EngineUnavailable(f"request {request_id}: vLLM refused it: {type(error).__name__}: {error}")


def _is_about_the_grammar(error: Exception) -> bool:
    """A grammar that does not compile gives an empty text, as it does where the engine itself finds out."""
    from vllm.exceptions import VLLMClientError

    return isinstance(error, VLLMClientError) and "grammar" in str(error).lower()


def engine_arguments(settings: LocalSettings) -> dict[str, Any]:
    """What vLLM is started with, by the names of its AsyncEngineArgs."""
    kv_cache = None if settings.kv_cache_gib is None else int(settings.kv_cache_gib * _GIB)
    fixed: dict[str, Any] = {
        "model": settings.model,
        "dtype": settings.dtype,
        "quantization": settings.quantization,
        "tensor_parallel_size": settings.gpus,
        "max_model_len": settings.context_tokens,
        "max_num_seqs": settings.max_num_seqs,
        "enforce_eager": settings.enforce_eager,
        "kv_cache_memory_bytes": kv_cache,
        "kv_cache_dtype": settings.kv_cache_dtype,
        "kv_offloading_size": settings.kv_offload_gib or None,
        "enable_prefix_caching": settings.prefix_caching,
        "scheduling_policy": settings.scheduling,
        "speculative_config": _speculative(settings.speculative),
        "structured_outputs_config": {"backend": "guidance", "disable_any_whitespace": True},
        "shutdown_timeout": settings.drain_s,
        "enable_log_requests": False,
        "disable_log_stats": False,
    }
    if settings.memory_share is not None:
        fixed["gpu_memory_utilization"] = settings.memory_share
    return {**fixed, **settings.more}


def _speculative(ngram: NGram | None) -> dict[str, Any] | None:
    if ngram is None:
        return None
    spans = {"prompt_lookup_max": ngram.most, "prompt_lookup_min": ngram.least}
    return {"method": "ngram", "num_speculative_tokens": ngram.tokens, **spans}


def sampling_of(request: Request) -> Any:
    """The request as vLLM's SamplingParams."""
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams

    constraint = None
    if request.grammar is not None:
        constraint = StructuredOutputsParams(grammar=request.grammar)
    elif request.json_schema is not None:
        constraint = StructuredOutputsParams(json=request.json_schema)
    return SamplingParams(
        temperature=request.temperature,
        seed=request.seed,
        max_tokens=request.max_tokens,
        structured_outputs=constraint,
        output_kind=RequestOutputKind.FINAL_ONLY,
    )


def _completion(last: Any, text: str, tokens: int, finish_reason: str) -> Completion:
    queue_ms, prefill_ms, decode_ms = _phases(last.metrics)
    return Completion(
        text=text,
        finish_reason=finish_reason,
        prompt_tokens=len(last.prompt_token_ids),
        cached_tokens=last.num_cached_tokens or 0,
        output_tokens=tokens,
        queue_ms=queue_ms,
        prefill_ms=prefill_ms,
        decode_ms=decode_ms,
    )


def _phases(stats: Any) -> tuple[float, float, float]:
    """Milliseconds in the queue, in prefill and in decoding; a request that was never scheduled has none."""
    if stats is None or not stats.scheduled_ts or not stats.first_token_ts:
        return 0.0, 0.0, 0.0
    moments = (stats.queued_ts, stats.scheduled_ts, stats.first_token_ts, stats.last_token_ts)
    queue, prefill, decode = (1000 * max(0.0, b - a) for a, b in pairwise(moments))
    return queue, prefill, decode


class _Gauges:
    """Keeps the scheduler's last figures, as one of vLLM's stat loggers."""

    def __init__(self) -> None:
        self._last: Any = SimpleNamespace(num_running_reqs=0, num_waiting_reqs=0, kv_cache_usage=0.0)
        self._queried = 0
        self._hit = 0
        self._preempted = 0

    def of_engine(self, vllm_config: Any, engine_index: int = 0) -> _Gauges:
        """vLLM asks for a logger for each of its engines; here there is one."""
        return self

    def record(self, scheduler_stats: Any, iteration_stats: Any, *_: Any, **__: Any) -> None:
        if scheduler_stats is not None:
            self._last = scheduler_stats
            self._queried += scheduler_stats.prefix_cache_stats.queries
            self._hit += scheduler_stats.prefix_cache_stats.hits
        if iteration_stats is not None:
            self._preempted += iteration_stats.num_preempted_reqs

    def log_engine_initialized(self) -> None:
        """Nothing to say."""

    def log(self) -> None:
        """Nothing to say."""

    def record_sleep_state(self, *_: Any) -> None:
        """The engine never sleeps."""

    def read(self, *, idle: bool) -> dict[str, float]:
        return {
            "running": 0.0 if idle else float(self._last.num_running_reqs),
            "waiting": 0.0 if idle else float(self._last.num_waiting_reqs),
            "kv_cache_usage": float(self._last.kv_cache_usage),
            "prefix_cache_hit_rate": self._hit / self._queried if self._queried else 0.0,
            "preemptions": float(self._preempted),
        }
