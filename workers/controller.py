"""What dispatch looks at beside the jobs: what the engines last said, admission, the ladder, fairness between tenants.

GPU workers report to Redis each second (`workers/engine_report.py`). All that Redis holds here may be lost at any
time: without reports a lane has its configured slots and nothing is known of its cache. The ladder's state and the
holds are the database's.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kombu.exceptions import OperationalError as BrokerError
from redis import Redis
from redis.exceptions import RedisError

from docmill.log import logger, say
from docmill.types import Heat, Route
from inference.admission import Bucket, next_share
from inference.degrade import Action, Reading, actions
from inference.lanes import Lane
from storage.ports import Claim, Stage, Waiting
from workers.admission import Buckets
from workers.celery_app import app
from workers.engine_report import Report, reports
from workers.ladder import climb
from workers.release import LaneState, View, slots_needed
from workers.services import Services

log = logger("controller")

#: Finished bulk work frees a slot; dispatch is asked to fill it no more often than this.
WAKE_KEY, WAKE_EVERY_MS = "docmill:wake", 250
SHARES_KEY, SERVED_KEY = "docmill:shares", "docmill:served"
#: Fairness looks back no longer than this.
FORGET_S = 3600
#: A slot's time for a cold job where no engine has told one yet; on the safe side for a GPU.
SERVICE_S = 3.0


@dataclass(frozen=True, slots=True)
class Look:
    """What a tick saw: the view that jobs are chosen by, and each lane's admission share."""

    view: View
    shares: Mapping[str, float]


class Controller:
    """One tick's worth of looking and remembering."""

    def __init__(self, use: Services) -> None:
        self._use = use
        self._redis: Redis = use.redis

    def look(self) -> Look:
        """Read the engines, move the ladder, and say what dispatch may do."""
        told = by_lane(self._reports())
        shares = self._shares(told)
        state = climb(
            self._use.control, self._use.ladder, readings_of(report for lane in told.values() for report in lane)
        )
        lanes = self._lanes(told, shares)
        view = View(
            lanes=lanes,
            reserve=self._use.settings.reserve,
            hold_cold=Action.HOLD_COLD in actions(self._use.ladder, state),
            weights=self._use.settings.tenant_weights,
            served=self._floats(SERVED_KEY),
        )
        return Look(view, shares)

    def admits(self, job: Waiting, look: Look) -> bool:
        """Whether the buckets of the job's lane and tenant have a token; hot work and what is not read needs none."""
        if job.stage is not Stage.INFER or job.route is None or job.route.heat is Heat.HOT:
            return True
        lane = look.view.lanes.get(job.route.lane, LaneState(slots=1))
        depth = float(max(1, lane.slots))
        buckets = {f"lane:{job.route.lane}": Bucket(depth, depth)}
        rate = self._use.settings.tenant_rates.get(job.tenant)
        if rate is not None:
            buckets[f"tenant:{job.tenant}"] = Bucket(max(1.0, rate), rate)
        try:
            return Buckets(self._redis).take(buckets, shares={f"lane:{job.route.lane}": lane.share})
        except RedisError as error:
            # The broker is the same Redis: the publisher will find it away too, and the job waits.
            say(log, "no_buckets", level=logging.WARNING, why=error)
            return True

    def remember(self, served: Mapping[str, float], look: Look) -> None:
        """Keep what fairness and admission go on from."""
        try:
            for key, numbers in ((SERVED_KEY, served), (SHARES_KEY, look.shares)):
                if numbers:
                    self._redis.hset(key, mapping={name: repr(number) for name, number in numbers.items()})
                    self._redis.expire(key, FORGET_S)
        except RedisError as error:
            say(log, "not_remembered", level=logging.WARNING, why=error)

    def _reports(self) -> list[Report]:
        try:
            return reports(self._redis)
        except RedisError as error:
            say(log, "no_reports", level=logging.WARNING, why=error)
            return []

    def _shares(self, told: Mapping[str, list[Report]]) -> dict[str, float]:
        """Each lane's share of its depth, one step on from the last tick's."""
        before = self._floats(SHARES_KEY)
        return {
            lane: next_share(before.get(lane, 1.0), max(report.kv_cache_usage for report in of_lane))
            for lane, of_lane in told.items()
        }

    def _lanes(self, told: Mapping[str, list[Report]], shares: Mapping[str, float]) -> dict[str, LaneState]:
        backlog, lengths = self._use.backlog.value(), self._use.control.cold_lengths()
        return {
            name: lane_state(
                lane,
                told.get(name, []),
                share=shares.get(name, 1.0),
                backlog=backlog.get(name, []),
                length=lengths.get(name),
            )
            for name, lane in self._use.lanes.items()
        }

    def _floats(self, key: str) -> dict[str, float]:
        try:
            found: Mapping[bytes, bytes] = self._redis.hgetall(key)  # type: ignore[assignment]  # redis-py types async too
            return {name.decode(): float(number) for name, number in found.items()}
        except RedisError:
            say(log, "forgotten", level=logging.WARNING, key=key)
            return {}


def by_lane(told: Iterable[Report]) -> dict[str, list[Report]]:
    found: defaultdict[str, list[Report]] = defaultdict(list)
    for report in told:
        found[report.lane].append(report)
    return dict(found)


def lane_state(
    lane: Lane, told: list[Report], *, share: float, backlog: list[tuple[float, int]], length: float | None
) -> LaneState:
    """A lane as its engines tell; one that nobody tells of has the slots of one engine."""
    engines = max(1, len(told))
    times = [report.seconds_a_job for report in told if report.seconds_a_job > 0]
    service_s = sum(times) / len(times) if times else SERVICE_S
    return LaneState(
        slots=lane.max_num_seqs * engines,
        engines=engines,
        share=share,
        engine_waiting=sum(report.waiting for report in told),
        needed=slots_needed(backlog, service_s),
        length=length,
        tenants=lane.tenants,
    )


# ---------------------------------------------------------------- the ladder


def readings_of(told: Iterable[Report]) -> dict[Reading, float]:
    """What the ladder's triggers look at; empty while no engine tells anything."""
    all_told = list(told)
    if not all_told:
        return {}
    return {
        Reading.REQUESTS_PER_SECOND: sum(report.requests_per_second for report in all_told),
        Reading.KV_CACHE_USAGE: max(report.kv_cache_usage for report in all_told),
        Reading.WAITING: float(sum(report.waiting for report in all_told)),
        Reading.HOT_P99_S: max(report.hot_p99_s for report in all_told),
    }


# ---------------------------------------------------------------- around a reading


@contextmanager
def watched(claim: Claim, use: Services) -> Iterator[None]:
    """Around the reading of a job: its time is counted, and it is marked with the ladder's steps that touched it."""
    began, steps = time.monotonic(), use.glance.steps()
    yield
    took = time.monotonic() - began
    heat = claim.route.heat if claim.route is not None else None
    use.watch.saw(heat, took_s=took, since_needed_s=claim.age_s + took)
    if steps:
        use.control.mark(claim.job_id, attempt=claim.attempt, steps=steps)


def wake(route: Route, use: Services) -> None:
    """A slot is free that warm or cold work may have: let dispatch look before its next tick."""
    if route.heat is Heat.HOT:
        return
    try:
        if use.redis.set(WAKE_KEY, "1", nx=True, px=WAKE_EVERY_MS):
            app.send_task("docmill.dispatch", queue="control", retry=False, ignore_result=True, expires=5)
    except (BrokerError, RedisError, OSError) as error:
        say(log, "no_wake", level=logging.DEBUG, why=error)
