"""Batches of the `openai` client in every state: cancelled, expired, retried, killed; the counts always add up."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter

import openai
import pytest

from storage.ports import Stage
from tests.door import CHAT, DOCUMENTS, PROFILE, Door, balanced
from tests.jobs import claimed, through_parse
from tests.stack import ROOT
from workers.batches import Runner
from workers.settings import child_environment

#: A batch worker whose pieces are small, so that a kill comes between two of them.
WORKER = """
import threading
from workers import batch_input, batches
from workers.services import services
batch_input.PIECE_BYTES, batches.OPENED_AT_ONCE = 2048, 7
print("ready", flush=True)
batches.Runner(services()).run(threading.Event())
"""


def cancel(door: Door, batch_id: str) -> str:
    return str(door.client.batches.cancel(batch_id).status)


def test_openai_cancel_while_validating_leaves_nothing_to_do(door: Door) -> None:
    batch = door.batch(door.requests(2))
    assert cancel(door, batch.id) == "cancelling"
    done = door.finish(batch.id)
    assert (done.status, done.output_file_id, done.error_file_id) == ("cancelled", None, None)
    assert done.cancelling_at is not None
    assert done.cancelled_at >= done.cancelling_at
    assert balanced(done)


def test_openai_cancel_keeps_what_is_done_and_tells_the_rest_that_it_was_not(door: Door) -> None:
    batch = door.running(4)
    door.read(batch.id, 1)
    first_parsed = door.open_jobs(batch.id)[1]
    through_parse(door.use.store, first_parsed)
    claimed(door.use.store, first_parsed, Stage.INFER)
    assert cancel(door, batch.id) == "cancelling"
    assert cancel(door, batch.id) == "cancelling", "to ask again changes nothing"
    done = door.finish(batch.id)
    assert (done.status, done.request_counts.completed, done.request_counts.failed) == ("cancelled", 1, 3)
    assert door.outcomes(done) == (["request-0"], ["request-1", "request-2", "request-3"])
    for row in door.rows(done.error_file_id):
        assert (row["response"], row["error"]["code"]) == (None, "batch_cancelled")
    jobs = door.column("SELECT status FROM jobs WHERE batch_id = :id", id=batch.id)
    assert Counter(jobs) == {"done": 1, "cancelled": 3}
    assert cancel(door, batch.id) == "cancelled"


def test_openai_cancel_of_what_is_over_or_about_to_be_changes_nothing(door: Door) -> None:
    batch = door.running(1)
    door.read(batch.id)
    door.until(batch.id, "finalizing")
    assert cancel(door, batch.id) == "finalizing"
    done = door.finish(batch.id)
    assert cancel(door, batch.id) == "completed"
    failed = door.finish(door.batch([]).id)
    assert cancel(door, failed.id) == "failed"
    assert door.get(batch.id) == done


def test_openai_cancel_spares_a_document_that_somebody_else_waits_for(door: Door) -> None:
    pdf = door.pdf()
    first, second = (door.batch([door.line("a", pdf)]) for _ in range(2))
    for batch in (first, second):
        door.step_until(batch.id, lambda batch=batch: len(door.open_jobs(batch.id)) == 1)
    cancel(door, first.id)
    assert door.finish(first.id).status == "cancelled"
    door.read(second.id)
    assert door.finish(second.id).request_counts.completed == 1


def test_openai_window_that_ends_expires_what_is_unfinished(door: Door) -> None:
    batch = door.running(3, window="1h")
    assert batch.expires_at - batch.created_at == 3600
    door.read(batch.id, 1)
    door.step_until(batch.id, lambda: door.get(batch.id).request_counts.completed == 1)
    door.execute("UPDATE batch_runs SET expires_at = now() WHERE batch_id = :id", id=batch.id)
    done = door.finish(batch.id)
    assert (done.status, done.request_counts.completed, done.request_counts.failed) == ("expired", 1, 2)
    assert done.expired_at is not None
    assert [row["error"]["code"] for row in door.rows(done.error_file_id)] == ["batch_expired"] * 2
    assert door.outcomes(done) == (["request-0"], ["request-1", "request-2"])


def test_openai_input_that_is_deleted_while_the_batch_runs_does_not_matter(door: Door) -> None:
    batch = door.batch(door.requests(2))
    for file in door.client.files.list():
        door.client.files.delete(file.id)
    door.runner.purge()
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 2)
    door.runner.purge()
    door.read(batch.id)
    done = door.finish(batch.id)
    assert (done.status, done.request_counts.completed) == ("completed", 2)
    with pytest.raises(openai.NotFoundError):
        door.client.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")


def test_openai_failed_requests_are_tried_again_in_a_child(door: Door) -> None:
    batch = door.running(3)
    door.fail(batch.id, 2)
    with pytest.raises(openai.BadRequestError):
        door.client.post(f"/batches/{batch.id}/retry_failed", cast_to=object)
    door.read(batch.id)
    parent = door.finish(batch.id)
    assert door.outcomes(parent)[1] == ["request-0", "request-1"]
    child = door.client.batches.create(
        input_file_id=parent.input_file_id,
        endpoint=CHAT,
        completion_window="1h",
        extra_body={"docmill": {"retry_failed_of": parent.id}},
    )
    assert child.model_extra["docmill"]["parent_batch_id"] == parent.id
    door.step_until(child.id, lambda: len(door.open_jobs(child.id)) == 2)
    door.read(child.id)
    done = door.finish(child.id)
    assert (done.status, door.outcomes(done)[0]) == ("completed", ["request-0", "request-1"])
    assert door.get(parent.id) == parent, "the parent says what it said"


def test_openai_same_idempotency_key_gives_the_same_batch(door: Door) -> None:
    asked = {"input_file_id": door.upload(door.requests(1)), "endpoint": CHAT, "completion_window": "24h"}
    headers = {"Idempotency-Key": "monday"}
    first, second = (door.client.batches.create(**asked, extra_headers=headers) for _ in range(2))
    assert first.id == second.id
    assert len(door.client.batches.list().data) == 1
    with pytest.raises(openai.BadRequestError) as reused:
        door.client.batches.create(**{**asked, "completion_window": "1h"}, extra_headers=headers)
    assert reused.value.code == "idempotency_key_reused"


def test_openai_priority_deadline_and_order_of_a_line_reach_its_job(door: Door) -> None:
    deadline = int(time.time()) + 1800
    lines = [
        door.line("plain", door.pdf()),
        door.line("high", door.pdf(), docmill={"priority": "high"}),
        door.line("soon", door.pdf(), docmill={"deadline": deadline, "ordering_key": "account-2"}),
    ]
    batch = door.batch(lines, window="2h", extra_body={"docmill": {"ordering_key": "account-1"}})
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 3)
    found = {}
    for custom_id, window_s, key, left in door.use.database.connect().exec_driver_sql(
        "SELECT custom_id, window_s, j.ordering_key, extract(epoch FROM j.deadline - j.created_at) FROM batch_lines "
        f"JOIN jobs j USING (job_id) WHERE batch_lines.batch_id = '{batch.id}'"
    ):
        found[custom_id] = (window_s, key, float(left))
    assert found["high"][0] == 0
    assert found["high"][2] <= 61
    assert found["plain"][1] == "account-1"
    assert 7000 < found["plain"][0] <= 7200
    assert found["soon"][1] == "account-2"
    assert 1500 < found["soon"][2] <= 1800


def test_openai_dry_run_tells_the_cost_and_runs_nothing(door: Door) -> None:
    known = door.running(1)
    door.read(known.id)
    door.finish(known.id)
    lines = [
        *door.requests(3),
        door.line("known", door.rows(door.get(known.id).output_file_id)[0]["response"]["body"]["docmill"]["file_id"]),
    ]
    done = door.finish(door.batch(lines, extra_body={"docmill": {"dry_run": True}}).id)
    assert (done.status, done.request_counts.total, done.output_file_id) == ("completed", 0, None)
    told = done.model_extra["docmill"]["estimate"]
    assert told["requests"] == 4
    assert (told["prompt_tokens"], told["output_tokens"]) == (300, 30)
    assert told["profiles"][0]["already_read"] == 1
    assert door.column("SELECT 1 FROM jobs WHERE batch_id = :id", id=done.id) == []


def test_openai_batch_of_pdfs_and_a_zip_is_one_request_a_document(door: Door) -> None:
    import io
    import zipfile

    from tests.pdfs import text_pdf

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("q3/one.pdf", text_pdf(f"one {door.tenant}"))
        archive.writestr("q3/two.pdf", text_pdf(f"two {door.tenant}"))
        archive.writestr("readme.txt", "no document")
        archive.writestr("q3/", "")
    bundle = door.client.files.create(file=("bundle.zip", packed.getvalue()), purpose="user_data")
    single = door.pdf()
    asked = {"profile": PROFILE, "file_ids": [single]}
    with pytest.raises(openai.BadRequestError):
        door.client.batches.create(input_file_id=bundle.id, endpoint=DOCUMENTS, completion_window="24h")
    batch = door.client.batches.create(
        input_file_id=bundle.id,
        endpoint=DOCUMENTS,
        completion_window="24h",
        extra_body={"docmill": asked},
    )
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 3)
    door.read(batch.id)
    done = door.finish(batch.id)
    good, bad = door.outcomes(done)
    assert good == sorted([f"{bundle.id}/q3/one.pdf", f"{bundle.id}/q3/two.pdf", single])
    assert bad == [f"{bundle.id}/readme.txt"]
    assert balanced(done)


def test_openai_zip_that_is_damaged_fails_its_batch(door: Door) -> None:
    broken = door.client.files.create(file=("broken.zip", b"PK\x03\x04" + b"x" * 1000), purpose="user_data")
    batch = door.client.batches.create(
        input_file_id=broken.id,
        endpoint=DOCUMENTS,
        completion_window="24h",
        extra_body={"docmill": {"profile": PROFILE}},
    )
    failed = door.finish(batch.id)
    assert failed.status == "failed"
    assert failed.errors.data[0].code == "invalid_request"


def test_openai_batch_goes_on_with_another_worker_in_every_state(door: Door) -> None:
    batch = door.batch(door.requests(4))
    seen = []
    for _ in range(200):
        Runner(door.use, looking=1.0).tick()
        state = door.get(batch.id)
        seen.append(state.status)
        if state.status == "in_progress":
            door.read(batch.id, 1)
        if state.status == "completed":
            break
    assert list(dict.fromkeys(seen)) == ["in_progress", "finalizing", "completed"]
    assert door.outcomes(state) == ([f"request-{number}" for number in range(4)], [])
    assert balanced(state)


def test_openai_two_workers_on_one_batch_do_it_once(door: Door) -> None:
    batch = door.batch(door.requests(3))
    old = door.use.batches.get(batch.id)
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 3)
    late = Runner(door.use)
    late.validate(old)
    assert (door.get(batch.id).request_counts.total, len(door.open_jobs(batch.id))) == (3, 3)
    door.read(batch.id)
    finalizing = door.until(batch.id, "finalizing")
    row = door.use.batches.get(batch.id)
    done = door.finish(batch.id)
    late.write(row)
    assert door.get(batch.id) == done
    assert done.finalizing_at == finalizing.finalizing_at


def test_openai_batch_whose_worker_is_killed_at_any_line_has_every_line_once(door: Door) -> None:
    pdf = door.pdf()
    lines = [door.line(f"request-{number}", pdf, url=DOCUMENTS) for number in range(200)]
    batch = door.batch(lines, endpoint=DOCUMENTS)
    variables = {
        "DOCMILL_DATABASE_URL": door.use.settings.database_url,
        "DOCMILL_BLOB_URL": door.use.settings.blob_url,
        "DOCMILL_BROKER_URL": door.use.settings.broker_url,
        "DOCMILL_BATCH_MAX_LINES": "2000",
    }
    counts = "SELECT count(*) FROM batch_lines WHERE batch_id = :id AND state = ANY(:states)"
    for states, enough in ((["new", "open"], 40), (["open"], 60)):
        with subprocess.Popen(
            [sys.executable, "-c", WORKER], cwd=ROOT, env=child_environment(**variables), stderr=subprocess.DEVNULL
        ) as worker:
            end = time.monotonic() + 120
            while door.column(counts, id=batch.id, states=states)[0] < enough:
                assert worker.poll() is None, "the worker ended by itself"
                assert time.monotonic() < end, f"no {enough} lines are {states}"
                time.sleep(0.005)
            worker.kill()
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 200)
    numbers = door.column("SELECT line_no FROM batch_lines WHERE batch_id = :id ORDER BY 1", id=batch.id)
    assert numbers == list(range(1, 201))
    door.read(batch.id)
    done = door.finish(batch.id)
    assert (done.status, done.request_counts.total, done.request_counts.completed) == ("completed", 200, 200)
    rows = door.rows(done.output_file_id)
    assert len({row["custom_id"] for row in rows}) == len(rows) == 200


def test_openai_batch_reads_again_what_failed_before_but_not_what_a_person_ended(door: Door) -> None:
    batch = door.running(2)
    door.fail(batch.id)
    door.finish(batch.id)
    ids = door.column("SELECT file_id FROM batch_lines WHERE batch_id = :id ORDER BY line_no", id=batch.id)
    jobs = door.column("SELECT job_id FROM batch_lines WHERE batch_id = :id ORDER BY line_no", id=batch.id)
    door.execute("INSERT INTO reviews (job_id, decision, decided_at) VALUES (:id, 'rejected', now())", id=jobs[0])
    again = door.batch([door.line(name, file) for name, file in zip(("person", "machine"), ids, strict=True)])
    door.step_until(again.id, lambda: door.get(again.id).request_counts.failed == 1)
    assert door.open_jobs(again.id) == [jobs[1]]
    door.read(again.id)
    assert door.outcomes(door.finish(again.id)) == (["machine"], ["person"])
