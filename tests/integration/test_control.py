"""Holds, order by key, backlog and the ladder's state, on a real PostgreSQL (order also in memory)."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, select

from docmill.types import Heat, Outcome, Status
from storage.control import ControlStore
from storage.holds import Hold, Scope
from storage.jobs import JobStore
from storage.memory import MemoryJobStore
from storage.ports import Jobs, Stage
from storage.schema import events
from tests.jobs import accepted, claimed, extraction, route, through_all, through_parse, verdict

COLD = route(Heat.COLD)


@pytest.fixture
def control(engine: Engine) -> ControlStore:
    return ControlStore(engine)


@pytest.fixture
def store(engine: Engine) -> JobStore:
    return JobStore(engine)


def queued(store: Jobs, data: bytes, **need: Any) -> str:
    job_id = accepted(store, data, name=f"{data.decode()}.pdf", **need)
    through_parse(store, job_id, to=COLD)
    return job_id


def waits(store: Jobs) -> set[str]:
    return {job.job_id for job in store.waiting(limit=100)}


# ---------------------------------------------------------------- order


@pytest.fixture(params=["memory", "postgresql"])
def either(request: pytest.FixtureRequest) -> Jobs:
    return MemoryJobStore() if request.param == "memory" else JobStore(request.getfixturevalue("engine"))


def test_of_one_key_the_first_job_that_is_not_over_waits_to_be_read_and_the_next_after_it(either: Jobs) -> None:
    first, second, third = (queued(either, name, ordering_key="acct-1") for name in (b"one", b"two", b"three"))
    other = queued(either, b"other", ordering_key="acct-2")
    assert waits(either) == {first, other}
    claim = claimed(either, first, Stage.INFER)
    assert waits(either) == {other}, "while the first is read the second must not overtake it"
    read = extraction()
    either.finish_infer(claim, read)
    either.finish_validate(claimed(either, first, Stage.VALIDATE), verdict(Outcome.REJECT), read, retry=COLD)
    assert waits(either) == {first, other}, "a second reading comes before the next of the key"
    through_all(either, first)
    assert waits(either) == {second, other}
    assert either.cancel(second, tenant="acme")
    assert waits(either) == {third, other}


def test_a_key_orders_results_and_not_parses(either: Jobs) -> None:
    jobs = {accepted(either, name, name=f"{name!r}.pdf", ordering_key="k") for name in (b"one", b"two")}
    assert waits(either) == jobs


def test_the_claim_tells_that_a_key_has_an_order(either: Jobs) -> None:
    job_id = accepted(either, b"one", ordering_key="k")
    assert claimed(either, job_id, Stage.PARSE).ordering_key == "k"


# ---------------------------------------------------------------- holds


def test_a_drained_tenant_gets_nothing_new_and_ends_what_is_on_its_way(store: JobStore, control: ControlStore) -> None:
    waiting_job, published = queued(store, b"one"), queued(store, b"two")
    store.mark_published([published])
    assert control.hold(Scope.TENANT, "acme", Hold.DRAIN) == 2
    assert waits(store) == set()
    assert store.claim(published, Stage.INFER, worker="w", lease_s=60) is not None
    assert control.release(Scope.TENANT, "acme")
    assert waits(store) == {waiting_job}


def test_what_a_pause_finds_with_the_broker_is_not_begun_and_comes_back_at_its_end(
    store: JobStore, control: ControlStore
) -> None:
    published = queued(store, b"one")
    store.mark_published([published])
    control.hold(Scope.TENANT, "acme", Hold.PAUSE, reason="audit")
    assert store.claim(published, Stage.INFER, worker="w", lease_s=60) is None
    assert waits(store) == set()
    assert [(held.name, held.kind, held.reason) for held in control.held()] == [("acme", Hold.PAUSE, "audit")]
    control.release(Scope.TENANT, "acme")
    assert waits(store) == {published}


def test_a_paused_lane_stops_reading_there_and_nothing_else(store: JobStore, control: ControlStore) -> None:
    there, unparsed = queued(store, b"one"), accepted(store, b"two", name="two.pdf")
    control.hold(Scope.LANE, COLD.lane, Hold.PAUSE)
    assert waits(store) == {unparsed}
    assert store.claim(there, Stage.INFER, worker="w", lease_s=60) is None
    control.hold(Scope.LANE, "elsewhere", Hold.PAUSE)
    control.release(Scope.LANE, COLD.lane)
    assert waits(store) == {there, unparsed}


def test_what_runs_when_a_pause_begins_is_finished(store: JobStore, control: ControlStore) -> None:
    job_id = queued(store, b"one")
    claim = claimed(store, job_id, Stage.INFER)
    control.hold(Scope.TENANT, "acme", Hold.PAUSE)
    store.finish_infer(claim, extraction())
    assert store.record(job_id).status == Status.VALIDATING


def test_a_hold_that_there_is_not_cannot_be_ended(control: ControlStore) -> None:
    assert not control.release(Scope.BATCH, "batch_1")


def test_holds_are_events(control: ControlStore, engine: Engine) -> None:
    control.hold(Scope.BATCH, "batch_1", Hold.DRAIN)
    control.release(Scope.BATCH, "batch_1")
    with engine.connect() as connection:
        assert list(connection.execute(select(events.c.kind).order_by(events.c.event_id)).scalars())[-2:] == [
            "held_drain",
            "resumed",
        ]


# ---------------------------------------------------------------- backlog, lengths, ladder


def test_the_backlog_counts_waiting_cold_work_by_lane_and_deadline(store: JobStore, control: ControlStore) -> None:
    for name, window in ((b"a", 7200), (b"b", 7200), (b"c", 90_000)):
        queued(store, name, window_s=window)
    through_parse(store, accepted(store, b"warm", name="w.pdf", window_s=7200), to=route(Heat.WARM))
    found = sorted(control.backlog()[COLD.lane])
    assert [jobs for _, jobs in found] == [2, 1]
    assert 3600 <= found[0][0] <= 7200


def test_the_length_of_a_lane_is_that_of_the_cold_work_it_reads(store: JobStore, control: ControlStore) -> None:
    job_id = queued(store, b"one")
    assert control.cold_lengths() == {}
    store.mark_published([job_id])
    tokens = store.record(job_id).tokens
    assert control.cold_lengths() == {COLD.lane: tokens}


def test_many_controllers_at_once_climb_one_after_the_other(control: ControlStore, engine: Engine) -> None:
    def up(state: dict[str, Any], now: float) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
        return {"taken": state.get("taken", 0) + 1}, {"at": now}

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: control.climb(up), range(24)))
    assert control.ladder() == {"taken": 24}
    with engine.connect() as connection:
        kinds = connection.execute(select(events.c.kind).where(events.c.kind == "ladder")).scalars().all()
    assert len(kinds) == 24
