"""Tokens a second through the whole GPU worker over bare vLLM on the same prompts, and what the worker costs in CPU.

`python -m bench.engine [--model FOLDER] [--jobs N] [--rounds N] [--no-run-batch]`

One side is the worker as `docmill worker gpu` starts it: Celery's threads, Valkey, PostgreSQL; claim, lease renewal,
prompt, grammar, answer, citations and finish are in its time, parsing and validation are not. The other is
`vllm.LLM.generate` with the same prompts (as token ids), sampling, grammars and engine arguments, and as a peer the
code of `vllm run-batch`. All stay up and take turns, each round in another order, with documents that none has read
before; the medians count. Ray Data LLM is no peer here: `ray[llm]` brings vLLM's GPU distribution, not the CPU one.

`cpu_ms_outside` is the CPU time of the worker's own process (the model computes in a child of it) less that of the bare
vLLM's own process for the same requests: all that docmill, Celery, Redis and the database driver add to vLLM's client.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

import msgspec

from bench.engine_peers import ANSWER, Measured
from bench.engine_stack import Batch, Spent, Worker, running
from bench.report import Figure, finish, show
from inference.engines.vllm_local import LocalSettings, environment

DOCMILL, BARE, RUN_BATCH = "docmill worker", "vllm LLM.generate", "vllm run-batch"
#: Before the clock runs, each side reads this many.
WARM: Final = 16
_IDLE_S: Final = 5.0


@dataclass
class Side:
    """What one side measured, a round each."""

    name: str
    rounds: list[Measured] = field(default_factory=list)
    servers_cpu_s: list[float] = field(default_factory=list)

    @property
    def rates(self) -> list[float]:
        return [one.output_tokens / one.seconds for one in self.rounds]

    def row(self, jobs: int) -> tuple[object, ...]:
        cpu = [1000 * one.front_cpu_s / jobs for one in self.rounds]
        tokens = sum(one.output_tokens for one in self.rounds) / len(self.rounds)
        return (self.name, median(self.rates), f"{min(self.rates):.1f} to {max(self.rates):.1f}", tokens, median(cpu))


class Peer:
    """A process of `bench.engine_peers`."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._file = folder / f"{process.pid}.json"

    def answer(self) -> str:
        """The next of its own lines."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(ANSWER):
                return line.removeprefix(ANSWER)
        raise RuntimeError(f"the peer ended with {self._process.wait()}; what it said is above")

    def read(self, batch: Batch) -> Measured:
        assert self._process.stdin is not None
        self._file.write_bytes(msgspec.json.encode(batch.requests))
        self._process.stdin.write(f"{self._file}\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self.answer(), type=Measured)


@contextmanager
def peer(kind: str, settings: LocalSettings, folder: Path) -> Iterator[Peer]:
    """A warm peer, ended afterwards."""
    command = [sys.executable, "-m", "bench.engine_peers", kind, msgspec.json.encode(settings).decode()]
    variables = {**os.environ, **environment(settings), "OMP_NUM_THREADS": str(os.cpu_count())}
    variables["VLLM_LOGGING_LEVEL"] = "ERROR"
    process = subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        one = Peer(process, folder)
        one.answer()
        yield one
    finally:
        assert process.stdin is not None
        process.stdin.close()  # it ends, and ends its engine, when nothing more is to come
        process.wait(60)


def main() -> int:
    options = _options()
    with ExitStack() as parts:
        home = Path(parts.enter_context(tempfile.TemporaryDirectory(prefix="docmill-bench-")))
        worker = parts.enter_context(running(home, options.model.resolve()))
        settings = worker.engine_settings()
        kinds = {BARE: "llm"} | ({} if options.no_run_batch else {RUN_BATCH: "run-batch"})
        peers = {name: parts.enter_context(peer(kind, settings, home)) for name, kind in kinds.items()}
        sides = {name: Side(name) for name in (DOCMILL, *peers)}
        idle = worker.idle(_IDLE_S)
        for number in range(options.rounds + 1):
            batch = worker.prepare(options.jobs if number else WARM)
            _round(number, batch, worker, peers, sides)
    return _tell(list(sides.values()), options.jobs, idle)


def _round(number: int, batch: Batch, worker: Worker, peers: dict[str, Peer], sides: dict[str, Side]) -> None:
    """Each side reads the batch; round 0 warms up and does not count."""
    order = list(sides)
    turn = number % len(order)
    for name in order[turn:] + order[:turn]:
        load = os.getloadavg()[0]
        measured, spent = (peers[name].read(batch), None) if name in peers else worker.read(batch)
        print(f"round {number}: {name}: {measured}, load before {load:.1f}", flush=True)
        if number:
            sides[name].rounds.append(measured)
            sides[name].servers_cpu_s.append(spent.servers if isinstance(spent, Spent) else 0.0)


def _tell(sides: Sequence[Side], jobs: int, idle: float) -> int:
    columns = ["side", "tokens/s, median", "from to", "output tokens a round", "own CPU ms/job"]
    show(f"{jobs} jobs a round, {len(sides[0].rounds)} rounds", columns, [side.row(jobs) for side in sides])
    docmill, bare, *others = sides
    outside = [1000 * (a.front_cpu_s - b.front_cpu_s) / jobs for a, b in zip(docmill.rounds, bare.rounds, strict=True)]
    figures = [
        Figure("ratio", median(docmill.rates) / median(bare.rates), ">= 0.95"),
        Figure("cpu_ms_outside", median(outside), "<= 6"),
        Figure("tokens_per_second", median(docmill.rates)),
        Figure("bare_tokens_per_second", median(bare.rates)),
        *(Figure("run_batch_tokens_per_second", median(side.rates)) for side in others),
        Figure("servers_cpu_ms", 1000 * median(docmill.servers_cpu_s) / jobs),
        Figure("idle_worker_share_of_a_core", idle),
        Figure("load", os.getloadavg()[1]),
    ]
    return finish("engine", figures, [(side.name, side.rounds) for side in sides])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, default=Path(".models/smollm2"))
    parser.add_argument("--jobs", type=int, default=96, help="jobs a round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-run-batch", action="store_true", help="only docmill and LLM.generate")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
