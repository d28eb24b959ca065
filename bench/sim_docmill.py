"""docmill in the simulator: the product's own code decides, on what the simulated house tells it."""

from __future__ import annotations

import heapq
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from bench.sim_world import Job, Policy, World
from docmill.types import Heat, Route
from inference.admission import next_share
from inference.degrade import Action, Ladder, Reading, State, actions, load_ladder, step
from inference.route import QUEUES_IN_ORDER, RECENCY_S
from storage.ports import Stage, Waiting
from workers.engine_report import hot_reading
from workers.release import LaneState, View, charged, choose, slots_needed

MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)
#: Waiting jobs of a queue and tenant that one tick looks at, for each slot that is free, at least and at most: fewer
#: than the product looks at, for the speed of the simulation.
LOOKS_AT_FREE, LOOKS_AT_LEAST, LOOKS_AT_MOST = 3, 12, 48


@dataclass(frozen=True, slots=True)
class Options:
    """What an ablation takes away."""

    length_ratio: float = 2.0
    admission: bool = True
    ladder: bool = True
    tick_s: float = 0.25
    #: Seconds that a slot is assumed to take for a cold job.
    service_s: float = 1.5
    reserve: float = 0.25


class Docmill:
    """Hot jobs at once in strict queues; the rest waits outside and is released each tick by the product's code."""

    def __init__(self, world: World, options: Options) -> None:
        self._world, self._options = world, options
        self._queues: dict[str, deque[Job]] = {name: deque() for name in QUEUES_IN_ORDER}
        self._waits: dict[tuple[str, str], list[tuple[float, int, Job]]] = {}
        self._flying: Counter[str] = Counter()
        self._lengths: dict[int, int] = {}
        self._due: Counter[int] = Counter()
        self._share, self._served = 1.0, dict[str, float]()
        self._ladder: Ladder = load_ladder() if options.ladder else ()
        self._state = State()
        self.changes: list[tuple[float, str, bool]] = []
        self._recent: deque[tuple[float, float]] = deque()
        self._seen = 0
        world.env.process(self._ticks())

    # -- the policy's three verbs

    def add(self, job: Job) -> None:
        if job.attempt:
            # Its engine was lost: it waits again and is no longer in flight.
            self._flying[job.route.queue] -= 1
            self._lengths.pop(id(job), None)
        if job.route.heat is Heat.HOT:
            self._publish(job)
        else:
            entry = (job.deadline, job.doc.number, job)
            heapq.heappush(self._waits.setdefault((job.route.queue, job.doc.tenant), []), entry)
            self._due[self._hour(job)] += 1

    def next(self) -> Job | None:
        for queue in self._queues.values():
            if queue:
                return queue.popleft()
        return None

    def engine_priority(self, job: Job) -> int:
        return job.route.priority

    # -- one tick of dispatch

    def _ticks(self) -> Any:
        while True:
            yield self._world.env.timeout(self._options.tick_s)
            self._count_done()
            self._climb()
            self._release()

    def _count_done(self) -> None:
        """What has finished since is no longer in flight."""
        now = self._world.env.now
        for job in self._world.done[self._seen :]:
            self._flying[job.route.queue] -= 1
            self._lengths.pop(id(job), None)
            if job.hot_at_arrival:
                self._recent.append((now, job.latency))
        self._seen = len(self._world.done)
        while self._recent and self._recent[0][0] < now - 60:
            self._recent.popleft()

    def _release(self) -> None:
        waiting = [self._waiting(job) for job in self._foremost()]
        if not waiting:
            return
        view = self._view()
        chosen = choose([shown for shown, _ in waiting], self._flying, view)
        jobs = {shown.job_id: job for shown, job in waiting}
        for shown in chosen:
            assert shown.route is not None
            self._take(jobs[shown.job_id], shown.route)
        self._served = charged(chosen, [shown for shown, _ in waiting], view)
        self._world.fill()

    def _foremost(self) -> Iterable[Job]:
        """The foremost of every queue and tenant, hottest first, then by deadline, as storage gives them."""
        bulk = sum(count for queue, count in self._flying.items() if not queue.startswith("infer.hot"))
        free = max(0, sum(self._world.up) * self._world.hardware.slots - bulk)
        most = min(LOOKS_AT_MOST, LOOKS_AT_LEAST + LOOKS_AT_FREE * free)
        found: list[tuple[float, int, Job]] = []
        for waits in self._waits.values():
            # A heap's head is sorted enough: children come after their parents, and ties are all that is left open.
            found += heapq.nsmallest(most, waits[: 2 * most])
        return [entry[2] for entry in sorted(found, key=lambda entry: (_ORDER[entry[2].route.heat], entry[:2]))]

    def _waiting(self, job: Job) -> tuple[Waiting, Job]:
        """What dispatch sees; its heat changes only within recency's ten minutes of the deadline."""
        age = self._world.env.now - job.arrived
        near = (job.doc.window_s - age) * self._world.day.scale < RECENCY_S
        if job.shown is None or (near and age - job.shown.age_s > 1.0):
            aged = self._world.route_of(job.doc, age) if near else job.route
            job.shown = Waiting(
                job_id=str(job.doc.number),
                stage=Stage.INFER,
                tenant=job.doc.tenant,
                profile="",
                vip=job.doc.vip,
                age_s=age,
                window_s=int(job.doc.window_s),
                deadline=MIDNIGHT + timedelta(seconds=job.deadline),
                tokens=job.doc.tokens,
                route=aged,
            )
        return job.shown, job

    def _take(self, job: Job, aged: Route) -> None:
        waits = self._waits[job.route.queue, job.doc.tenant]
        if waits[0][2] is job:
            heapq.heappop(waits)
        else:
            waits.remove((job.deadline, job.doc.number, job))
            heapq.heapify(waits)
        self._due[self._hour(job)] -= 1
        job.route = aged
        self._publish(job)

    def _publish(self, job: Job) -> None:
        self._queues[job.route.queue].append(job)
        self._flying[job.route.queue] += 1
        if job.route.heat is Heat.COLD:
            self._lengths[id(job)] = job.doc.tokens

    def _view(self) -> View:
        world, hardware = self._world, self._world.hardware
        up = sum(world.up)
        kv = max(engine.kv_use for engine in world.engines)
        self._share = next_share(self._share, kv) if self._options.admission else 1.0
        flying = list(self._lengths.values())
        lane = LaneState(
            slots=up * hardware.slots,
            engines=up,
            share=self._share,
            engine_waiting=sum(len(engine.waiting) for engine in world.engines),
            needed=slots_needed(self._backlog(), self._options.service_s),
            length=sum(flying) / len(flying) if flying else None,
        )
        return View(
            {world.lane.name: lane},
            self._options.reserve,
            hold_cold=Action.HOLD_COLD in actions(self._ladder, self._state),
            served=self._served,
            length_ratio=self._options.length_ratio,
        )

    # -- deadlines and ladder

    def _hour(self, job: Job) -> int:
        """Deadlines in twenty-fourths of the day, rounded down: the tighter side."""
        return int(job.deadline / (self._world.day.seconds / 24))

    def _backlog(self) -> list[tuple[float, int]]:
        hour, now = self._world.day.seconds / 24, self._world.env.now
        return [(number * hour - now, jobs) for number, jobs in self._due.items() if jobs]

    def _climb(self) -> None:
        if not self._ladder:
            return
        now = self._world.env.now
        latencies = [latency for _, latency in self._recent]
        readings = {
            Reading.REQUESTS_PER_SECOND: len(latencies) / 60,
            Reading.KV_CACHE_USAGE: max(engine.kv_use for engine in self._world.engines),
            Reading.HOT_P99_S: hot_reading(latencies),
        }
        self._state, change = step(self._ladder, self._state, readings, now)
        if change is not None:
            self.changes.append((now, change.rung.name, change.taken))
            cheaper = Action.CHEAPER_LANE in actions(self._ladder, self._state)
            for engine in self._world.engines:
                # Assumption: the cheaper lane is a second, warm engine on the same GPU (24 of its 80 GB are weights).
                engine.gpu = self._world.hardware.cheaper if cheaper else self._world.hardware.gpu


#: Nothing taken away.
WHOLE = Options()
_ORDER = {Heat.HOT: 0, Heat.WARM: 1, Heat.COLD: 2}


def docmill(options: Options = WHOLE) -> Callable[[World], Policy]:
    """The policy, or what is left of it without some of its parts."""
    return lambda world: Docmill(world, options)
