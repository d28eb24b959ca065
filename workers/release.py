"""Which of the waiting jobs get their message now: pure, so that the simulator and the tests run the same code.

Hot work always does. Warm and cold work shares what a lane's slots, less a reserve, leave: tenants take turns by
weight, each in the order of its deadlines. Cold work comes while a lane is idle, or as fast as its deadlines need.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from docmill.types import Heat, LengthClass
from inference.qos import is_open
from storage.ports import Stage, Waiting

#: Cold parse messages that may be with the broker: enough to keep the parsers busy for a tick.
PARSE_DEPTH = 16
#: A lane is idle while hotter work holds no more than this share of its slots. With several engines some request is
#: always being read, so "nothing hotter at all" would never come.
IDLE_BELOW = 0.125
#: Deadlines near when cold work needs more than this share of the slots that it may have: the rest of the time must do
#: for the other half, and for what cannot be foreseen.
URGENT_FROM = 0.5
#: What is released together to a lane differs in length by no more than this factor, where the backlog allows it.
LENGTH_RATIO = 2.0
#: Work (tokens) by which a tenant that was away may be ahead of the others when it comes back.
CREDIT = 20_000.0
#: Work of a job beside its prompt: instructions, schema and answer.
BESIDE_PROMPT = 512
#: Deadlines are met with this share of the time to spare, for what cannot be foreseen.
SLACK = 0.2


@dataclass(frozen=True, slots=True)
class LaneState:
    """A lane as dispatch sees it: configuration, and what its engines last said.

    `share` is what admission allows of the slots; `engine_waiting` counts requests that the engines have not begun;
    `needed` is how many slots cold work needs to meet its deadlines; `length` is the mean prompt of the cold work that
    is being read, None where there is none; `tenants` own the lane, none of them: it is everybody's.
    """

    slots: int
    engines: int = 1
    share: float = 1.0
    engine_waiting: int = 0
    needed: float = 0.0
    length: float | None = None
    tenants: tuple[str, ...] = ()

    def bulk_slots(self, reserve: float) -> int:
        """Slots that warm and cold work may take: neither Celery nor vLLM gives back a slot that a cold one holds."""
        if self.slots == 0:
            return 0
        return max(1, math.floor((self.slots - math.ceil(self.slots * reserve)) * self.share))


@dataclass(frozen=True, slots=True)
class View:
    """All that a choice looks at beside the jobs. `served` is the work that each tenant was given of late."""

    lanes: Mapping[str, LaneState]
    reserve: float
    hold_cold: bool = False
    weights: Mapping[str, float] = field(default_factory=dict)
    served: Mapping[str, float] = field(default_factory=dict)
    length_ratio: float = LENGTH_RATIO
    idle_below: float = IDLE_BELOW

    def weight(self, tenant: str) -> float:
        return self.weights.get(tenant, 1.0)


@dataclass(slots=True)
class _Taken:
    """What one lane has in hand, counted up while choosing; `anchor` is the length that others are measured by."""

    hot: int = 0
    warm: int = 0
    cold: int = 0
    cold_long: int = 0
    anchor: float | None = None

    def add(self, heat: Heat, length: LengthClass, count: int = 1) -> None:
        setattr(self, heat, getattr(self, heat) + count)
        if heat is Heat.COLD and length is LengthClass.LONG:
            self.cold_long += count


def choose(waiting: Sequence[Waiting], in_flight: Mapping[str, int], view: View) -> list[Waiting]:
    """Which of the waiting jobs (hottest first, then by deadline) get their message now."""
    taken = _taken_by_lane(in_flight)
    parses = in_flight.get("parse.cold", 0)
    of_heat: dict[Heat, list[Waiting]] = {heat: [] for heat in Heat}
    for job in waiting:
        of_heat[heat_now(job)].append(job)

    def fits(job: Waiting) -> bool:
        nonlocal parses
        if job.stage == Stage.PARSE and not is_hot(job):
            room = parses < PARSE_DEPTH
            parses += room
            return room
        return job.stage != Stage.INFER or _lane_takes(job, taken, view)

    turns = Turns(waiting, view)
    chosen = [*turns.take(of_heat[Heat.HOT], fits), *turns.take(of_heat[Heat.WARM], fits)]
    alike, others = _by_likeness(of_heat[Heat.COLD], taken, view)
    return [*chosen, *turns.take(alike, fits), *turns.take(others, fits)]


def is_hot(job: Waiting) -> bool:
    """Before a job is parsed its length is unknown: somebody waits for it, or it is a VIP's."""
    return job.vip or job.window_s == 0


def heat_now(job: Waiting) -> Heat:
    """The heat of its route, or before it is parsed, of its need."""
    if job.route is not None:
        return job.route.heat
    return Heat.HOT if is_hot(job) else Heat.COLD


# ---------------------------------------------------------------- fairness


class Turns:
    """Tenants take turns: the next job is of the tenant that was given the least work for its weight.

    A tenant that comes back after a time away starts little behind the others: it must not stop them until it has
    caught up.
    """

    def __init__(self, waiting: Iterable[Waiting], view: View) -> None:
        self._view = view
        tenants = {job.tenant for job in waiting}
        known = [view.served[tenant] for tenant in tenants if tenant in view.served]
        least = max(known, default=0.0) - CREDIT
        self.served = {tenant: max(view.served.get(tenant, least), least) for tenant in tenants}

    def take(self, jobs: Sequence[Waiting], fits: Callable[[Waiting], bool]) -> Iterator[Waiting]:
        """The jobs that fit, in turn; each is charged to its tenant."""
        queues: dict[str, deque[tuple[int, Waiting]]] = {}
        for place, job in enumerate(jobs):
            queues.setdefault(job.tenant, deque()).append((place, job))
        heap = [(self.served[tenant], queue[0][0], tenant) for tenant, queue in queues.items()]
        heapq.heapify(heap)
        while heap:
            _, _, tenant = heapq.heappop(heap)
            _, job = queues[tenant].popleft()
            if fits(job):
                self.served[tenant] += work_of(job) / self._view.weight(tenant)
                yield job
            if queues[tenant]:
                heapq.heappush(heap, (self.served[tenant], queues[tenant][0][0], tenant))


def work_of(job: Waiting) -> float:
    """What a job costs its tenant's share, in tokens."""
    return float(job.tokens + BESIDE_PROMPT)


def charged(chosen: Iterable[Waiting], waiting: Iterable[Waiting], view: View) -> dict[str, float]:
    """`served` after these jobs were released."""
    served = Turns(waiting, view).served
    for job in chosen:
        served[job.tenant] += work_of(job) / view.weight(job.tenant)
    return {**view.served, **served}


# ---------------------------------------------------------------- lanes


def slots_needed(backlog: Iterable[tuple[float, int]], service_s: float) -> float:
    """Slots with which every deadline is met: `backlog` has seconds left and jobs, `service_s` is a slot's time a job.

    By earliest deadline first, work that is due by a moment must fit into the slots until then, for every such moment.
    """
    due, most = 0, 0.0
    for seconds_left, jobs in sorted(backlog):
        due += jobs
        most = max(most, due * service_s / max(seconds_left * (1 - SLACK), service_s))
    return most


def _taken_by_lane(in_flight: Mapping[str, int]) -> dict[str, _Taken]:
    taken: dict[str, _Taken] = {}
    for queue, count in in_flight.items():
        name, _, lane = queue.partition("@")
        if name.startswith("infer."):
            _, heat, length = name.split(".")
            taken.setdefault(lane, _Taken()).add(Heat(heat), LengthClass(length), count)
    return taken


def _lane_takes(job: Waiting, taken: dict[str, _Taken], view: View) -> bool:
    assert job.route is not None, "a queued job has been routed"
    of_lane = taken.setdefault(job.route.queue.partition("@")[2], _Taken())
    lane = view.lanes.get(job.route.lane, LaneState(slots=0))
    if not is_open(lane.tenants, job.tenant):
        return False
    fits = FITS[job.route.heat](job, of_lane, lane, view)
    if fits:
        of_lane.add(job.route.heat, job.route.length_class)
    return fits


def _warm_fits(job: Waiting, has: _Taken, lane: LaneState, view: View) -> bool:
    return has.warm + has.cold < max(1, lane.bulk_slots(view.reserve))


def _cold_fits(job: Waiting, has: _Taken, lane: LaneState, view: View) -> bool:
    """Cold work fills what an idle lane has free, less the reserve.

    On a busy one it gets what its deadlines need, once they near. A long one is alone on its engine (P3, one at a
    time), unless deadlines near.
    """
    assert job.route is not None, "a queued job has been routed"
    room = max(1, lane.bulk_slots(view.reserve))
    needed = math.ceil(lane.needed) if lane.needed > URGENT_FROM * room else 0
    due = has.cold < needed and has.warm + has.cold < room
    if job.route.length_class is LengthClass.LONG and has.cold_long >= max(lane.engines, needed):
        return False
    if view.hold_cold:
        return due
    hotter = has.hot + has.warm
    idle = lane.engine_waiting == 0 and hotter <= view.idle_below * lane.slots and hotter + has.cold < room
    return idle or due


FITS: dict[Heat, Callable[[Waiting, _Taken, LaneState, View], bool]] = {
    Heat.HOT: lambda job, has, lane, view: True,
    Heat.WARM: _warm_fits,
    Heat.COLD: _cold_fits,
}


# ---------------------------------------------------------------- length


def _by_likeness(cold: Sequence[Waiting], taken: dict[str, _Taken], view: View) -> tuple[list[Waiting], list[Waiting]]:
    """Cold jobs whose length is like that of what their lane reads, and the others, which come if room is left.

    The measure is the mean length of what the lane is reading, else the length of the lane's first job in line.
    """
    alike: list[Waiting] = []
    others: list[Waiting] = []
    within = math.sqrt(view.length_ratio)
    for job in cold:
        (alike if job.route is None or _is_alike(job, taken, view, within) else others).append(job)
    return alike, others


def _is_alike(job: Waiting, taken: dict[str, _Taken], view: View, within: float) -> bool:
    assert job.route is not None, "only routed jobs have a length"
    of_lane = taken.setdefault(job.route.queue.partition("@")[2], _Taken())
    if of_lane.anchor is None:
        lane = view.lanes.get(job.route.lane)
        of_lane.anchor = (lane.length if lane else None) or float(max(1, job.tokens))
    return of_lane.anchor / within <= max(1, job.tokens) <= of_lane.anchor * within
