"""What a worker does with a job when its engine has no time: it waits as long as the engine asks for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from docmill.errors import DeadlineExceeded, DocmillError, EngineUnavailable
from storage.memory import MemoryJobStore
from storage.ports import Stage
from tests.jobs import accepted, claimed, through_parse
from workers.pipeline import settle
from workers.services import Services
from workers.settings import Settings


@pytest.mark.parametrize(
    ("error", "free_after_s"),
    [
        (EngineUnavailable("busy", retry_after_s=60.0), 60.0),
        (EngineUnavailable("busy"), 1.0),
        (DeadlineExceeded("too late"), 1.0),
    ],
)
def test_a_job_waits_as_long_as_the_engine_asks_for(error: DocmillError, free_after_s: float) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    store = MemoryJobStore(clock=lambda: now)
    use = Services(Settings())
    use.store = store  # type: ignore[assignment]  # the fake that passes the same conformance tests
    job_id = accepted(store, b"one")
    through_parse(store, job_id)
    settle(error, claimed(store, job_id, Stage.INFER), use)
    now += timedelta(seconds=free_after_s - 0.1)
    assert store.claim(job_id, Stage.INFER, worker="w", lease_s=60) is None
    now += timedelta(seconds=0.2)
    again = store.claim(job_id, Stage.INFER, worker="w", lease_s=60)
    assert again is not None
    assert again.retries == 1
