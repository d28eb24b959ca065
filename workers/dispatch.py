"""Releasing what waits in the database: hot at once, warm and cold only while their lane has room.

The broker never holds a backlog, so a hot document that comes late, a cancelled batch or a nearer deadline takes
effect at once. `choose` is pure; `tick` runs it each second, and after every change that frees a slot.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from docmill.log import logger, say
from docmill.types import Heat, LengthClass
from inference.route import queue_name
from storage.ports import Stage, Waiting
from workers.services import Services

log = logger("dispatch")

#: Waiting jobs that one tick looks at.
HORIZON = 500
#: Cold parse messages that may be with the broker: enough to keep the parsers busy for a tick.
PARSE_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Lanes:
    """What dispatch knows of the lanes: slots by name, and the share that warm and cold work leave free."""

    slots: Mapping[str, int]
    reserve: float

    def bulk_slots(self, lane: str) -> int:
        """Slots that warm and cold work may take: neither Celery nor vLLM gives back a slot that a cold one holds."""
        slots = self.slots.get(lane, 0)
        return max(1, slots - math.ceil(slots * self.reserve))


@dataclass
class _Taken:
    """What one lane has in hand, counted up while choosing."""

    hot: int = 0
    warm: int = 0
    cold: int = 0
    cold_long: int = 0

    @property
    def bulk(self) -> int:
        return self.warm + self.cold


def choose(waiting: Sequence[Waiting], in_flight: Mapping[str, int], lanes: Lanes) -> list[Waiting]:
    """Which of the waiting jobs (hottest first, then by deadline) get their message now."""
    taken = _taken_by_lane(in_flight)
    cold_parses = in_flight.get("parse.cold", 0)
    chosen = []
    for job in in_turn(waiting):
        if job.stage == Stage.PARSE and not is_hot(job):
            fits = cold_parses < PARSE_DEPTH
            cold_parses += fits
        else:
            fits = job.stage != Stage.INFER or _fits(job, taken, lanes)
        if fits:
            chosen.append(job)
    return chosen


def in_turn(waiting: Sequence[Waiting]) -> Iterator[Waiting]:
    """Within each heat the tenants take turns, each in its own order."""
    for heat in (Heat.HOT, Heat.WARM, Heat.COLD):
        by_tenant: dict[str, list[Waiting]] = {}
        for job in waiting:
            if _heat(job) == heat:
                by_tenant.setdefault(job.tenant, []).append(job)
        for turn in zip_longest(*by_tenant.values()):
            yield from (job for job in turn if job is not None)


def is_hot(job: Waiting) -> bool:
    """Before a job is parsed its length is unknown: somebody waits for it, or it is a VIP's."""
    return job.vip or job.window_s == 0


def _heat(job: Waiting) -> Heat:
    if job.route is not None:
        return job.route.heat
    return Heat.HOT if is_hot(job) else Heat.COLD


def _taken_by_lane(in_flight: Mapping[str, int]) -> dict[str, _Taken]:
    taken: dict[str, _Taken] = {}
    for queue, count in in_flight.items():
        name, _, lane = queue.partition("@")
        if name.startswith("infer."):
            of_lane = taken.setdefault(lane, _Taken())
            heat = name.split(".")[1]
            setattr(of_lane, heat, getattr(of_lane, heat) + count)
            of_lane.cold_long += count if name == "infer.cold.long" else 0
    return taken


def _fits(job: Waiting, taken: dict[str, _Taken], lanes: Lanes) -> bool:
    assert job.route is not None, "a queued job has been routed"
    of_lane = taken.setdefault(job.route.queue.partition("@")[2], _Taken())
    room = lanes.bulk_slots(job.route.lane)
    fits = FITS[job.route.heat](job, of_lane, room)
    if fits:
        setattr(of_lane, job.route.heat, getattr(of_lane, job.route.heat) + 1)
        of_lane.cold_long += job.route.heat == Heat.COLD and job.route.length_class == LengthClass.LONG
    return fits


def _cold_fits(job: Waiting, lane: _Taken, room: int) -> bool:
    """Cold work fills a lane on which nothing hot or warm is; a long one only alone (P3, one at a time)."""
    idle = lane.hot == 0 and lane.warm == 0
    assert job.route is not None, "a queued job has been routed"
    alone = job.route.length_class != LengthClass.LONG or lane.cold_long == 0
    return idle and alone and lane.bulk < room


FITS: dict[Heat, Callable[[Waiting, _Taken, int], bool]] = {
    Heat.HOT: lambda job, lane, room: True,
    Heat.WARM: lambda job, lane, room: lane.bulk < room,
    Heat.COLD: _cold_fits,
}


def tick(use: Services) -> None:
    """Age what waits, choose, publish."""
    waiting = [_aged(job, use) for job in use.store.waiting(limit=HORIZON)]
    lanes = Lanes({lane.name: lane.max_num_seqs for lane in use.lanes.values()}, use.settings.reserve)
    chosen = choose(waiting, use.store.in_flight(), lanes)
    for job in chosen:
        if not use.publisher.publish(job.job_id, job.stage, job.route, hot=is_hot(job)):
            break
    if chosen:
        say(log, "released", jobs=len(chosen), waiting=len(waiting))


def _aged(job: Waiting, use: Services) -> Waiting:
    """The job with the heat that it has by now: a deadline that nears warms it up."""
    if job.stage != Stage.INFER or job.route is None:
        return job
    now = use.route(job.tokens, job.profile, age_s=job.age_s, window_s=job.window_s, vip=job.vip)
    if now.heat == job.route.heat:
        return job
    # It stays on its lane: a job that was rejected once waits for a better one.
    lane = use.lane(job.route.lane)
    now = replace(now, lane=lane.name, queue=queue_name(now.heat, now.length_class, lane, use.lanes))
    if now.queue != job.route.queue:
        use.store.reroute(job.job_id, now)
        say(log, "aged", job_id=job.job_id, was=job.route.queue, now=now.queue)
    return replace(job, route=now)
