"""Leases, delays and deadlines are by the database's clock: a worker whose own is wrong disturbs nobody."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime
from typing import Any

from sqlalchemy import Engine, event

from storage.jobs import JobStore
from storage.ports import Stage
from tests.jobs import accepted, claimed, through_infer, through_parse
from workers.celery_app import app

#: The clocks of a cluster without NTP.
APART_S = 300


def moments(values: Any) -> Iterable[object]:
    """Every date and time among the parameters of a statement."""
    if isinstance(values, dict):
        values = values.values()
    if isinstance(values, list | tuple | type({}.values())):
        for value in values:
            yield from moments(value)
    elif isinstance(values, date | datetime):
        yield values


def test_no_worker_tells_the_database_what_time_it_is(engine: Engine) -> None:
    told: dict[str, list[object]] = {}

    @event.listens_for(engine, "before_cursor_execute")
    def note(_: Any, __: Any, statement: str, parameters: Any, ___: Any, ____: Any) -> None:
        told.setdefault(statement, []).extend(moments(parameters))

    try:
        store, job_id = JobStore(engine), accepted(JobStore(engine), b"one")
        store.mark_published([job_id])
        claim = claimed(store, job_id, Stage.PARSE)
        store.renew([claim], lease_s=60)
        store.give_back(claim, reason="busy", delay_s=0, counts=True)
        through_parse(store, job_id)
        through_infer(store, job_id)
        store.sweep(republish_after_s=60, max_lost=3, grace_s=30)
        store.waiting(limit=10)
    finally:
        event.remove(engine, "before_cursor_execute", note)
    assert any("UPDATE jobs" in statement for statement in told)
    own = {statement: found for statement, found in told.items() if found}
    assert not own, "a moment of this process's clock"


def test_a_tick_is_carried_out_where_clocks_differ() -> None:
    """Its message ends by the clock of the worker that takes it, and was sent by that of another machine."""
    for entry in app.conf.beat_schedule.values():
        assert entry["options"]["expires"] > APART_S
