"""What every store of parts does: the one on PostgreSQL, and the one in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from sqlalchemy import Engine, func, select

from docmill.errors import StaleAttempt
from docmill.types import LengthClass
from storage.jobs import JobStore
from storage.memory import MemoryJobStore
from storage.memory_parts import MemoryParts
from storage.part_schema import parts
from storage.parts import LAST, Parts, PartStore, Usual
from storage.ports import Claim, Jobs, Stage
from tests.jobs import accepted, claimed, extraction, through_parse


@dataclass(frozen=True)
class Backend:
    """A store of jobs with its store of parts, and how many answers are kept in all."""

    store: Jobs
    parts: Parts
    rows: Callable[[], int]


@pytest.fixture(params=["memory", "postgresql"])
def backend(request: pytest.FixtureRequest) -> Backend:
    if request.param == "memory":
        jobs = MemoryJobStore()
        memory = MemoryParts(jobs)
        return Backend(jobs, memory, lambda: sum(map(len, memory._kept.values())))
    return on_postgresql(request.getfixturevalue("engine"))


def on_postgresql(engine: Engine) -> Backend:
    def rows() -> int:
        with engine.connect() as connection:
            return connection.execute(select(func.count()).select_from(parts)).scalar_one()

    return Backend(JobStore(engine), PartStore(engine), rows)


def reading(backend: Backend, data: bytes = b"a") -> Claim:
    """The claim of a job that is being read."""
    job_id = accepted(backend.store, data)
    through_parse(backend.store, job_id)
    return claimed(backend.store, job_id, Stage.INFER)


def read_once(backend: Backend, number: int, tokens: int, *, of: int = 1) -> Claim:
    claim = reading(backend, str(number).encode())
    backend.store.finish_infer(claim, replace(extraction(), longest_output=tokens, parts=of))
    return claim


def test_what_an_attempt_has_kept_the_next_one_finds(backend: Backend) -> None:
    first = reading(backend)
    backend.parts.keep_part(first, "one", b"answer")
    backend.parts.keep_part(first, "two", b"other")
    backend.store.give_back(first, reason="the engine died", delay_s=0, counts=True)
    again = claimed(backend.store, first.job_id, Stage.INFER)
    assert backend.parts.kept_parts(again) == {"one": b"answer", "two": b"other"}


def test_a_part_is_kept_once(backend: Backend) -> None:
    claim = reading(backend)
    backend.parts.keep_part(claim, "one", b"answer")
    backend.parts.keep_part(claim, "one", b"answer")
    assert backend.rows() == 1


def test_parts_are_of_their_job(backend: Backend) -> None:
    one, other = reading(backend, b"a"), reading(backend, b"b")
    backend.parts.keep_part(one, "one", b"answer")
    assert backend.parts.kept_parts(other) == {}


def test_a_stale_attempt_keeps_nothing(backend: Backend) -> None:
    first = reading(backend)
    backend.store.give_back(first, reason="drained", delay_s=0, counts=False)
    claimed(backend.store, first.job_id, Stage.INFER)
    with pytest.raises(StaleAttempt):
        backend.parts.keep_part(first, "one", b"answer")
    assert backend.rows() == 0


def test_a_job_that_was_cancelled_keeps_nothing_more(backend: Backend) -> None:
    claim = reading(backend)
    assert backend.store.cancel(claim.job_id, tenant=claim.tenant)
    with pytest.raises(StaleAttempt):
        backend.parts.keep_part(claim, "one", b"answer")


def test_a_document_that_was_read_needs_its_parts_no_more(backend: Backend) -> None:
    claim = reading(backend)
    backend.parts.keep_part(claim, "one", b"answer")
    backend.store.finish_infer(claim, replace(extraction(), parts=2))
    assert backend.parts.kept_parts(claim) == {}
    assert backend.rows() == 0


def test_the_usual_answer_is_the_95th_percentile_of_readings_that_are_alike(backend: Backend) -> None:
    for tokens in range(1, 21):
        read_once(backend, tokens, tokens)
    assert backend.parts.usual_answer("risk-report", "1", LengthClass.SHORT) == Usual(20, 19)
    assert backend.parts.usual_answer("risk-report", "2", LengthClass.SHORT) == Usual(0, 0)
    assert backend.parts.usual_answer("risk-report", "1", LengthClass.LONG) == Usual(0, 0)


def test_a_reading_that_asked_no_model_says_nothing_of_answers(backend: Backend) -> None:
    read_once(backend, 1, 0)
    assert backend.parts.usual_answer("risk-report", "1", LengthClass.SHORT) == Usual(0, 0)


def test_only_the_last_readings_count() -> None:
    backend = Backend(store := MemoryJobStore(), MemoryParts(store), lambda: 0)
    for number in range(LAST + 10):
        read_once(backend, number, 500 if number < 10 else 7)
    assert backend.parts.usual_answer("risk-report", "1", LengthClass.SHORT) == Usual(LAST, 7)
