"""The simulated house: a lane of engines behind a queue, and three peers to order what waits for them.

The peers are one queue, Celery's strict queue order, and the shortest first; `bench/sim_docmill.py` runs the product's
own code on the same engines.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import simpy

from bench.engine_model import H100_BF16, H100_FP8, EngineModel, Gpu, Sequence
from bench.sim_day import HOUR_S, Day, Doc, arrivals
from docmill.types import Heat, Route
from inference.lanes import Lane
from inference.profile import Profile, load_profiles
from inference.route import QUEUES_IN_ORDER, Need, route
from storage.ports import Waiting

#: What a prompt holds beside the document and what its answer may take; measured with the built-in profiles.
BESIDE = 700
#: Assumption: broker, claim, load and save around a model call.
OVERHEAD_S = 0.05
#: Assumption: an engine that died is back after this long (weights from the page cache, warm-up).
RESTART_S = 90.0
#: What the pipeline's table of errors waits before a job of a dead engine is tried again.
RETRY_S = 1.0


@dataclass(frozen=True, slots=True)
class Hardware:
    """What all policies get alike."""

    gpus: int
    gpu: Gpu = H100_BF16
    cheaper: Gpu = H100_FP8
    slots: int = 16
    #: Sequences of one engine: a long document's parts run side by side, so there may be more than slots.
    max_num_seqs: int = 32
    context_tokens: int = 4096
    #: Assumption: failures of one engine in 24 hours; the rate does not grow when the day is made shorter.
    failures: float = 2.0
    #: The hour at which the first engine dies in any case, or None.
    dies_at: float | None = None


@dataclass(slots=True)
class Job:
    """A document on its way."""

    doc: Doc
    route: Route
    arrived: float
    parts_left: int = 0
    #: Raised when its engine is lost, so that a late part of the old attempt counts for nothing.
    attempt: int = 0
    finished: float = math.nan
    hot_at_arrival: bool = False
    shown: Waiting | None = None

    @property
    def latency(self) -> float:
        return self.finished - self.arrived + OVERHEAD_S

    @property
    def deadline(self) -> float:
        return self.arrived + self.doc.window_s


class Policy(Protocol):
    """The order in which jobs get to the engines."""

    def add(self, job: Job) -> None: ...

    def next(self) -> Job | None: ...

    def engine_priority(self, job: Job) -> int: ...


@dataclass
class _Heap:
    """A queue by a key; ties in order of arrival."""

    key: Callable[[Job], Any]
    jobs: list[tuple[Any, int, Job]] = field(default_factory=list)
    count: int = 0

    def add(self, job: Job) -> None:
        self.count += 1
        heapq.heappush(self.jobs, (self.key(job), self.count, job))

    def next(self) -> Job | None:
        return heapq.heappop(self.jobs)[2] if self.jobs else None

    def engine_priority(self, job: Job) -> int:
        return 0


def fifo(_: World) -> Policy:
    return _Heap(lambda job: 0)


def celery_priorities(_: World) -> Policy:
    """The same routes in strict order of queues, all published as they come."""
    order = {name: place for place, name in enumerate(QUEUES_IN_ORDER)}
    return _Heap(lambda job: order[job.route.queue])


def shortest_first(_: World) -> Policy:
    return _Heap(lambda job: job.doc.tokens)


@dataclass
class World:
    """One run: a day on this hardware under one policy."""

    day: Day
    hardware: Hardware
    make_policy: Callable[[World], Policy]
    env: simpy.Environment = field(default_factory=simpy.Environment)
    engines: list[EngineModel] = field(default_factory=list)
    busy: list[dict[int, Job]] = field(default_factory=list)
    up: list[bool] = field(default_factory=list)
    done: list[Job] = field(default_factory=list)
    jobs: list[Job] = field(default_factory=list)
    kv_peak: float = 0.0

    def __post_init__(self) -> None:
        hardware = self.hardware
        self.lane = Lane("fp16", "", "stub", "fp16", hardware.context_tokens, max_num_seqs=hardware.slots)
        self.profile: Profile = load_profiles()["risk-report"]
        for _ in range(hardware.gpus):
            self.engines.append(EngineModel(self.env, hardware.gpu, hardware.max_num_seqs))
            self.busy.append({})
            self.up.append(True)
        self.policy = self.make_policy(self)
        self._chance = random.Random(self.day.seed + 1)

    def run(self) -> World:
        self.env.process(self._arrive())
        for number in range(len(self.engines)):
            self.env.process(self._break(number))
        # The next morning: what is late is counted as late, not as lost.
        self.env.run(self.day.seconds * 1.4)
        return self

    def route_of(self, doc: Doc, age_s: float) -> Route:
        # Windows are shorter by the day's scale, recency's ten minutes are not: ages are told as of the real day.
        real = self.day.scale if doc.window_s else 1.0
        need = Need(age_s=age_s * real, window_s=doc.window_s * real)
        lanes = {self.lane.name: self.lane}
        return route(doc.tokens, self.lane.context_tokens, need, doc.vip, self.profile, lanes)

    def fill(self) -> None:
        """Idle slots take what the policy has for them; the engine with the most of them first."""
        while True:
            free = [(len(busy), number) for number, busy in enumerate(self.busy) if self.up[number]]
            if not free or min(free)[0] >= self.hardware.slots:
                return
            job = self.policy.next()
            if job is None:
                return
            self._begin(job, min(free)[1])

    def _arrive(self) -> Any:
        for doc in arrivals(self.day):
            if doc.at > self.env.now:
                yield self.env.timeout(doc.at - self.env.now)
            job = Job(doc, self.route_of(doc, 0.0), self.env.now)
            job.hot_at_arrival = job.route.heat is Heat.HOT
            self.jobs.append(job)
            self.policy.add(job)
            self.fill()

    def _begin(self, job: Job, engine: int) -> None:
        self.busy[engine][id(job)] = job
        room = self.hardware.context_tokens - BESIDE
        job.parts_left = max(1, math.ceil(job.doc.tokens / room))
        attempt = job.attempt
        for _ in range(job.parts_left):
            prompt = job.doc.tokens / job.parts_left + BESIDE / 2
            part = Sequence(
                prompt, job.doc.output, self.policy.engine_priority(job), lambda: self._part(job, engine, attempt)
            )
            self.engines[engine].submit(part)
        self.kv_peak = max(self.kv_peak, self.engines[engine].kv_use)

    def _part(self, job: Job, engine: int, attempt: int) -> None:
        job.parts_left -= 1
        if attempt != job.attempt or job.parts_left:
            return
        job.finished = self.env.now
        del self.busy[engine][id(job)]
        self.done.append(job)
        self.fill()

    def _break(self, number: int) -> Any:
        """An engine dies at random moments and comes back."""
        if self.hardware.dies_at is not None and number == 0:
            yield self.env.timeout(self.day.at(self.hardware.dies_at))
            yield from self._die(number)
        while self.hardware.failures:
            yield self.env.timeout(self._chance.expovariate(self.hardware.failures / (24 * HOUR_S)))
            yield from self._die(number)

    def _die(self, number: int) -> Any:
        """Its jobs come back after a moment, the engine after its restart."""
        self.up[number] = False
        self.engines[number].fail()
        lost, self.busy[number] = list(self.busy[number].values()), {}
        yield self.env.timeout(RETRY_S)
        for job in lost:
            job.attempt += 1
            self.policy.add(job)
        self.fill()
        yield self.env.timeout(RESTART_S)
        self.up[number] = True
        self.fill()
