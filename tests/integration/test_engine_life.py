"""Signals, cancels and deaths on a real worker; its engine is the scripted one, with a child process as vLLM has."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from storage.database import connect
from storage.jobs import JobStore
from tests.stack import Stack, forget, new_home, one_result_each, until
from workers.engine_report import reports

pytestmark = pytest.mark.timeout(400)

LANE = """
- name: cpu
  engine: stub
  model: "6 core"
  precision: none
  context_tokens: 4096
  max_num_seqs: 4
"""


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    home = new_home("engine-life")
    lanes = home / "lanes.yaml"
    lanes.write_text(LANE)
    with Stack(home, {"DOCMILL_LANES": str(lanes), "DOCMILL_DRAIN_S": "1"}).running() as running:
        yield running
    forget(home)


def decoding(stack: Stack) -> int:
    """Requests in the engine, as its worker last told."""
    return sum(report.running for report in reports(stack.redis()))


def given_to_the_engine(stack: Stack, count: int, start: int) -> list[str]:
    """That many jobs, all of them being decoded."""
    until(lambda: bool(reports(stack.redis())), 90, "an engine that is ready")
    jobs = stack.submit(count, start=start)
    until(lambda: decoding(stack) == count, 60, f"{count} requests in the engine")
    return jobs


def outcomes(stack: Stack, jobs: list[str]) -> list[str]:
    sql = "SELECT outcome FROM attempts WHERE stage = 'infer' AND job_id = ANY(%s) AND outcome IS NOT NULL"
    return [row["outcome"] for row in stack.rows(sql, jobs)]


def test_a_cancelled_job_leaves_the_engine_before_it_is_read_and_others_stay(stack: Stack) -> None:
    jobs = given_to_the_engine(stack, 3, start=100)
    database = connect(stack.address.database_url)
    assert all(JobStore(database).cancel(job_id, tenant="default") for job_id in jobs[:2])
    database.dispose()
    until(lambda: decoding(stack) <= 1, 30, "the engine to stop")
    stack.wait_for(jobs)
    assert sorted(outcomes(stack, jobs)) == ["cancelled", "cancelled", "finished"]
    one_result_each(stack, jobs[2:])


def test_sigusr1_tells_what_the_engine_and_the_queues_hold(stack: Stack) -> None:
    jobs = given_to_the_engine(stack, 2, start=200)
    os.kill(stack.pid("gpu"), signal.SIGUSR1)
    until(lambda: bool(dumps(stack)), 20, "the dump")
    [told] = dumps(stack)
    assert {reading["job_id"] for reading in told["decoding"]} == set(jobs)
    assert set(told["claims"]) == set(jobs)
    assert told["health"]["ready"]
    assert told["metrics"]["running"] == 2
    assert told["queues"]["infer.hot.short"] == 0
    stack.wait_for(jobs)


def dumps(stack: Stack) -> list[dict[str, Any]]:
    log = (stack.data / "logs" / "gpu.log").read_text()
    return [json.loads(line.partition("action=dump ")[2]) for line in log.splitlines() if "action=dump " in line]


def test_a_worker_that_is_told_to_end_hands_back_what_it_cannot_finish_in_time(stack: Stack) -> None:
    jobs = given_to_the_engine(stack, 3, start=300)
    told = stack.pid("gpu")
    os.kill(told, signal.SIGTERM)
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    assert stack.pid("gpu") != told
    assert sorted(outcomes(stack, jobs)) == ["finished"] * 3 + ["given_back"] * 3
    assert not stack.rows("SELECT 1 FROM jobs WHERE job_id = ANY(%s) AND retries + lost > 0", jobs)


def test_an_engine_that_dies_under_load_takes_its_worker_along_and_no_job_is_lost(stack: Stack) -> None:
    jobs = given_to_the_engine(stack, 4, start=400)
    worker = stack.pid("gpu")
    [core] = [member for member in stack.members("gpu") if member.ppid() == worker]
    core.kill()
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    assert stack.pid("gpu") != worker
    assert "status=70" in (stack.home / "up.log").read_text()


def test_an_engine_that_dies_while_nothing_is_read_is_replaced_too(stack: Stack) -> None:
    until(lambda: bool(reports(stack.redis())), 90, "an engine that is ready")
    worker = stack.pid("gpu")
    [core] = [member for member in stack.members("gpu") if member.ppid() == worker]
    core.kill()
    until(lambda: worker not in [member.pid for member in stack.members("gpu")], 60, "the worker to leave")
    stack.wait_for(stack.submit(1, start=500))
