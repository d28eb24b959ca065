"""An engine on one GPU for the simulator: continuous batching with chunked prefill, calibrated from measurements.

One decode step takes `step_ms + per_sequence_ms * batch + per_kv_token_ms * tokens in the cache`; a step that also
reads prompts takes `prefill_ms_per_token` longer for each of their tokens, and at most `chunk` of them.

The numbers of H100_BF16 and H100_FP8 are fitted to a public data set of measurements (CC BY 4.0):
github.com/tgarg01/silybench-data, derived/csv/perf_points.csv, runs of 2026-09-24: vLLM 0.30.0, Qwen/Qwen3-8B, one
H100 80 GB SXM, random prompts, three repeats. MEASURED holds the points that the fit is checked against.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import simpy


@dataclass(frozen=True, slots=True)
class Gpu:
    """Speeds of one engine on one GPU."""

    name: str
    step_ms: float
    per_sequence_ms: float
    per_kv_token_ms: float
    prefill_ms_per_token: float
    #: Tokens that vLLM reported as its cache: 327 (BF16) and 373 (FP8) requests of 1,152 tokens.
    kv_tokens: int
    #: vLLM's `max_num_batched_tokens` for AsyncLLM outside its server.
    chunk: int = 2048

    def step_s(self, batch: int, kv_tokens: float, prompt_tokens: float = 0.0) -> float:
        """Seconds of one step: a token for each of the batch, and this much of the prompts."""
        decode = self.step_ms + self.per_sequence_ms * batch + self.per_kv_token_ms * kv_tokens
        return (decode + self.prefill_ms_per_token * prompt_tokens) / 1000


H100_BF16 = Gpu("H100 80GB, Qwen3-8B BF16", 6.8, 0.02, 4.6e-5, 0.0265, kv_tokens=376_704)
H100_FP8 = Gpu("H100 80GB, Qwen3-8B FP8", 4.6, 0.022, 4.6e-5, 0.0210, kv_tokens=429_696)

#: (GPU, batch, mean tokens a sequence has in the cache, measured median inter-token latency in ms).
MEASURED_STEPS = (
    (H100_BF16, 1, 192, 6.83), (H100_BF16, 16, 192, 7.14), (H100_BF16, 64, 192, 8.15), (H100_BF16, 1, 3072, 7.00),
    (H100_BF16, 4, 3072, 7.53), (H100_BF16, 16, 3072, 9.46), (H100_BF16, 32, 3072, 11.87), (H100_BF16, 4, 8448, 8.62),
    (H100_FP8, 1, 192, 4.62), (H100_FP8, 16, 192, 4.86), (H100_FP8, 64, 192, 5.92), (H100_FP8, 1, 3072, 4.80),
    (H100_FP8, 16, 3072, 7.22), (H100_FP8, 32, 3072, 9.81), (H100_FP8, 4, 8448, 6.43),
)  # fmt: skip
#: (GPU, prompt tokens, measured 95th percentile of the time to the first token of one request alone, in ms).
MEASURED_FIRST_TOKEN = (
    (H100_BF16, 1024, 34.3), (H100_BF16, 2048, 61.3), (H100_FP8, 1024, 29.3), (H100_FP8, 2048, 50.3),
)  # fmt: skip


def fit_errors() -> list[tuple[str, float, float, float]]:
    """What was measured, the model's value, and its relative error, for every point."""
    rows = []
    for gpu, batch, context, measured in MEASURED_STEPS:
        rows.append((f"{gpu.name}: step of {batch} x {context}", measured, 1000 * gpu.step_s(batch, batch * context)))
    for gpu, prompt, measured in MEASURED_FIRST_TOKEN:
        rows.append((f"{gpu.name}: first token of {prompt}", measured, 1000 * gpu.step_s(1, 0, prompt)))
    return [(what, measured, model, model / measured - 1) for what, measured, model in rows]


@dataclass(slots=True)
class Sequence:
    """One prompt in an engine. `done` is called when its last token is there."""

    prompt: float
    output: float
    priority: int
    done: Callable[[], None]
    #: Tokens still to be read, and the step at which the last token comes.
    unread: float = 0.0
    last_step: float = math.inf
    begun_at_step: float = 0.0


@dataclass
class EngineModel:
    """vLLM as the queues see it. Between events all running sequences gain tokens at the same pace."""

    env: simpy.Environment
    gpu: Gpu
    max_num_seqs: int
    preemptions: int = 0
    waiting: list[tuple[int, int, Sequence]] = field(default_factory=list)
    _reading: list[Sequence] = field(default_factory=list)
    _decoding: list[tuple[float, int, Sequence]] = field(default_factory=list)
    _numbers: Any = field(default_factory=itertools.count)
    _steps: float = 0.0
    _since: float = 0.0
    _step_s: float = 1.0
    _kv_base: float = 0.0
    _in_prompt: dict[int, float] = field(default_factory=dict)
    _version: int = 0

    @property
    def kv_use(self) -> float:
        """Share of the cache in use."""
        return min(1.0, self._kv() / self.gpu.kv_tokens)

    def submit(self, sequence: Sequence) -> None:
        sequence.unread = sequence.prompt
        heapq.heappush(self.waiting, (sequence.priority, next(self._numbers), sequence))
        if not self._in_prompt:
            self._advance()
            self._go_on()

    def fail(self) -> list[Sequence]:
        """Everything is lost; what was here."""
        lost = [entry[2] for entry in (*self.waiting, *self._decoding)] + self._reading
        self.waiting, self._decoding, self._reading, self._in_prompt = [], [], [], {}
        self._kv_base = 0.0
        self._version += 1
        return lost

    def _kv(self) -> float:
        """Prompts, and what was decoded since."""
        return self._kv_base + self._steps * len(self._decoding)

    def _advance(self) -> None:
        """Let the decoding sequences gain what they gained since the last event."""
        if self._decoding:
            self._steps += (self.env.now - self._since) / self._step_s
        self._since = self.env.now

    def _go_on(self) -> None:
        self._finish()
        self._admit()
        if self._reading:
            self._read()
        elif self._decoding:
            self._step_s = self.gpu.step_s(len(self._decoding), self._kv())
            self._after((self._decoding[0][0] - self._steps) * self._step_s, self._decoded)

    def _admit(self) -> None:
        kv = self._kv()
        while self.waiting and len(self._reading) + len(self._decoding) < self.max_num_seqs:
            sequence = self.waiting[0][2]
            if kv + sequence.unread > self.gpu.kv_tokens and (self._reading or self._decoding):
                return
            heapq.heappop(self.waiting)
            kv += sequence.unread
            self._kv_base += sequence.unread
            self._reading.append(sequence)

    def _read(self) -> None:
        """One step that reads up to a chunk of prompts."""
        room = float(self.gpu.chunk - len(self._decoding))
        for sequence in self._reading:
            piece = min(room, sequence.unread)
            self._in_prompt[id(sequence)] = piece
            room -= piece
            if room <= 0:
                break
        read = sum(self._in_prompt.values())
        self._after(self.gpu.step_s(len(self._decoding) + 1, self._kv(), read), self._was_read)

    def _was_read(self) -> None:
        if self._decoding:
            self._steps += 1
        self._since = self.env.now
        still = []
        for sequence in self._reading:
            sequence.unread -= self._in_prompt.get(id(sequence), 0.0)
            if sequence.unread > 0:
                still.append(sequence)
                continue
            # The step that reads the last of a prompt gives the first token.
            sequence.begun_at_step = self._steps
            sequence.last_step = self._steps + max(0.0, sequence.output - 1)
            self._kv_base -= self._steps
            heapq.heappush(self._decoding, (sequence.last_step, next(self._numbers), sequence))
        self._reading, self._in_prompt = still, {}
        self._go_on()

    def _decoded(self) -> None:
        self._advance()
        self._go_on()

    def _finish(self) -> None:
        done = []
        while self._decoding and self._decoding[0][0] <= self._steps + 1e-6:
            done.append(self._leave(heapq.heappop(self._decoding)[2]))
        while self._kv() > self.gpu.kv_tokens and len(self._decoding) > 1:
            self._preempt()
        for sequence in done:
            sequence.done()

    def _leave(self, sequence: Sequence) -> Sequence:
        self._kv_base -= sequence.prompt - sequence.begun_at_step
        return sequence

    def _preempt(self) -> None:
        """The least urgent, latest sequence gives its cache back and is read again later."""
        worst = max(self._decoding, key=lambda entry: (entry[2].priority, entry[2].begun_at_step))
        self._decoding.remove(worst)
        heapq.heapify(self._decoding)
        sequence = self._leave(worst[2])
        gained = self._steps - sequence.begun_at_step
        sequence.prompt += gained
        sequence.output -= gained
        sequence.unread = sequence.prompt
        heapq.heappush(self.waiting, (sequence.priority, -next(self._numbers), sequence))
        self.preemptions += 1

    def _after(self, seconds: float, then: Callable[[], None]) -> None:
        """Call `then` unless something changes the plan before."""
        self._version += 1
        version = self._version

        def fire(_: simpy.Event) -> None:
            if version == self._version:
                then()

        timeout = self.env.timeout(max(0.0, seconds))
        assert timeout.callbacks is not None, "a new event has callbacks"
        timeout.callbacks.append(fire)
