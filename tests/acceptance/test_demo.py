"""The demo's promise, on real processes and real vLLM: every sample ends once, with results that hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pymupdf
import pytest
import yaml

from inference.profile import load_profiles
from tests.batching import OVER, PROFILE, client_of, post_batch, rows_of, wait_for
from tests.stack import ENDED, ROOT, Stack, forget, new_home, notice, one_result_each, until
from workers.processes import marked

pytestmark = pytest.mark.timeout(900)

SAMPLES = ROOT / "samples"
MANIFEST = yaml.safe_load((SAMPLES / "manifest.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A stack with real vLLM, started by the demo, that has read all samples through its bucket."""
    running = Stack(new_home("acceptance"))
    try:
        (running.home / "demo.txt").write_text(running.demo(SAMPLES / "inbox"))
        yield running
    finally:
        running.down()
    forget(running.home)


def test_the_demo_tells_what_became_of_each_sample_and_where_to_look(stack: Stack) -> None:
    told = (stack.home / "demo.txt").read_text()
    for path in sample_files():
        assert path.stem[:20] in told
    assert stack.url in told
    assert "v_results" in told


def test_a_second_demo_submits_nothing_again(stack: Stack) -> None:
    before = stack.rows("SELECT count(*) AS n, max(created_at) AS last FROM submissions")
    read = stack.rows("SELECT count(*) AS n FROM attempts")
    stack.demo(SAMPLES / "inbox", within_s=120)
    assert stack.rows("SELECT count(*) AS n, max(created_at) AS last FROM submissions") == before
    assert stack.rows("SELECT count(*) AS n FROM attempts") == read


def sample_files() -> list[Path]:
    return [path for path in (SAMPLES / "inbox").rglob("*") if path.is_file()]


def results(stack: Stack) -> list[dict[str, Any]]:
    return stack.rows("SELECT * FROM v_results WHERE source = 'bucket' ORDER BY name")


def test_every_sample_has_one_row_one_end_and_a_reason(stack: Stack) -> None:
    rows = results(stack)
    assert sorted(row["name"] for row in rows) == sorted(
        str(path.relative_to(SAMPLES / "inbox")) for path in sample_files()
    )
    assert all(row["status"] in ENDED and row["reason"] for row in rows)


def test_the_samples_end_as_their_manifest_says(stack: Stack) -> None:
    ends = {row["name"]: row for row in results(stack)}
    for sample in MANIFEST["samples"]:
        row = ends[sample["file"]]
        status, _, code = sample["ends"].partition(": ")
        allowed = ("done", "needs_review") if status == "done_or_review" else (status,)
        assert row["status"] in allowed, (row["name"], row["status"], row["reason"])
        assert row["reason"].startswith(code), (row["name"], row["reason"])


def test_results_are_valid_against_their_schema(stack: Stack) -> None:
    profiles = load_profiles()
    found = [row for row in results(stack) if row["result"] is not None]
    assert len(found) >= 10
    for row in found:
        jsonschema.validate(row["result"], profiles[row["profile"]].schema)


def test_every_grounded_value_is_printed_in_its_box(stack: Stack) -> None:
    """Looked up with PyMuPDF alone, independently of our parser; scans have no text to look up."""
    fields = stack.rows("SELECT * FROM v_fields WHERE page IS NOT NULL")
    assert len(fields) >= 20
    checked = 0
    for field in fields:
        path = SAMPLES / "inbox" / field["name"]
        with pymupdf.open(path) as document:
            page = document[field["page"] - 1]
            if not page.get_text().strip():
                continue
            x0, y0, x1, y1 = field["bbox"]
            clip = pymupdf.Rect(x0 - 1, y0 - 1, x1 + 1, y1 + 1) * page.derotation_matrix
            printed = "".join(page.get_text(clip=clip).split())
        wanted = "".join(field["text"].split())
        assert wanted in printed, (field["name"], field["path"], wanted, printed)
        checked += 1
    assert checked >= 20


def test_grounded_fields_without_a_place_are_null(stack: Stack) -> None:
    profiles = load_profiles()
    for row in results(stack):
        if row["result"] is None or row["status"] == "duplicate":
            continue
        grounded = {
            f"/{name}" for name, spec in profiles[row["profile"]].schema["properties"].items() if "x-source" in spec
        }
        placed = {
            field["path"]
            for field in stack.rows("SELECT path FROM v_fields WHERE job_id = %s AND page IS NOT NULL", row["job_id"])
        }
        for path in grounded - placed:
            assert row["result"][path[1:]] is None, (row["name"], path, row["result"])


def test_tokens_and_cost_are_counted(stack: Stack) -> None:
    for row in results(stack):
        if row["result"] is not None and row["status"] != "duplicate":
            assert row["prompt_tokens"] > 0
            assert row["output_tokens"] > 0
            assert row["cost_usd"] > 0
    spent = stack.rows("SELECT sum(amount_usd) AS s FROM ledger")[0]["s"]
    assert spent == stack.rows("SELECT sum(cost_usd) AS s FROM v_results")[0]["s"]


def test_another_use_of_a_template_is_linked_with_what_changed_and_read_for_itself(stack: Stack) -> None:
    linked = [row for row in results(stack) if row["same_template_as"]]
    assert linked
    assert all(row["result"] is not None and row["differences"]["numbers"] for row in linked)
    assert not [row for row in results(stack) if row["near_duplicate_of"]]


def test_one_pdf_through_three_doors_is_one_document_with_one_result(stack: Stack) -> None:
    data = notice(77)
    target = stack.inbox / "default" / "transaction-monitoring" / "three-doors.pdf"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    by_api = stack.post(data, name="api.pdf", wait=60)
    assert by_api.status_code == 200, by_api.text
    local = stack.home / "cli.pdf"
    local.write_bytes(data)
    by_cli = stack.command("submit", str(local), "--profile", "transaction-monitoring")
    job = by_api.json()
    assert job["job_id"] in by_cli
    sql = "SELECT * FROM v_results WHERE job_id = %s"
    until(lambda: len(stack.rows(sql, job["job_id"])) == 3, 30, "the bucket")
    rows = stack.rows(sql, job["job_id"])
    assert {row["source"] for row in rows} == {"api", "bucket", "cli"}
    assert len({row["document_id"] for row in rows}) == 1
    assert all(row["result"] == job["result"] for row in rows)
    assert len(stack.rows("SELECT 1 FROM attempts WHERE stage = 'infer' AND job_id = %s", job["job_id"])) <= 2


def test_hot_jobs_that_come_later_are_read_before_a_backlog_of_cold_ones(stack: Stack) -> None:
    cold = stack.submit(14, start=300, profile="risk-report")
    until(lambda: bool(stack.rows("SELECT 1 FROM jobs WHERE status = 'running' AND heat = 'cold'")), 60, "cold work")
    hot = stack.submit(6, start=400)
    stack.wait_for([*cold, *hot], within_s=400)
    one_result_each(stack, [*cold, *hot])
    started = stack.rows(
        "SELECT job_id, min(started_at) AS at FROM attempts WHERE stage = 'infer' AND job_id = ANY(%s) GROUP BY 1",
        [*cold, *hot],
    )
    asked = stack.rows("SELECT max(at) AS at FROM events WHERE kind = 'queued' AND job_id = ANY(%s)", hot)[0]["at"]
    last_hot = max(row["at"] for row in started if row["job_id"] in set(hot))
    overtaken = [row for row in started if row["job_id"] in set(cold) and asked < row["at"] < last_hot]
    assert not overtaken, f"{len(overtaken)} cold jobs started while hot ones waited"


def test_a_killed_gpu_worker_with_jobs_in_flight_loses_nothing_and_leaves_no_engine(stack: Stack) -> None:
    jobs = stack.submit(6, start=500)
    until(lambda: bool(stack.rows("SELECT 1 FROM jobs WHERE status = 'running'")), 60, "a running job")
    orphans = [process.pid for process in stack.members("gpu")]
    stack.kill("gpu")
    stack.wait_for(jobs, within_s=400)
    one_result_each(stack, jobs)
    now = {process.pid for process in marked(str(stack.data.resolve()), "gpu")}
    assert not now & set(orphans), "an engine process of the killed worker is still there"


def test_the_rows_can_be_read_with_documented_views(stack: Stack) -> None:
    commented = stack.rows(
        "SELECT c.relname, a.attname, col_description(c.oid, a.attnum) AS words FROM pg_class c "
        "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 "
        "WHERE c.relname IN ('v_results', 'v_fields')"
    )
    assert commented
    assert all(row["words"] for row in commented)
    assert "three-doors" in stack.command("results", "--json")


def test_the_api_describes_itself(stack: Stack) -> None:
    import httpx

    spec = httpx.get(f"{stack.url}/openapi.json").json()
    assert {"/v1/documents", "/v1/jobs/{job_id}", "/v1/jobs/{job_id}/result"} <= set(spec["paths"])
    assert httpx.get(f"{stack.url}/docs").status_code == 200
    unknown = httpx.get(f"{stack.url}/v1/jobs/job_nothing")
    assert unknown.status_code == 404
    assert unknown.json()["code"] == "not_found"


def test_openai_client_has_a_batch_read_by_the_model(stack: Stack) -> None:
    with client_of(stack) as client:
        batch_id = post_batch(client, range(900, 904), docmill={"priority": "high"})
        done = wait_for(client, batch_id, lambda batch: batch.status in OVER, within_s=600)
        assert (done.status, done.error_file_id) == ("completed", None)
        assert (done.request_counts.total, done.request_counts.completed) == (4, 4)
        assert done.usage.input_tokens > 0
        assert done.usage.output_tokens > 0
        rows = rows_of(client, done.output_file_id)
        assert {row["custom_id"] for row in rows} == {str(number) for number in range(900, 904)}
        for row in rows:
            completion = row["response"]["body"]
            result = json.loads(completion["choices"][0]["message"]["content"])
            jsonschema.validate(result, load_profiles()[PROFILE].schema)
            assert completion["usage"]["completion_tokens"] > 0
            assert completion["model"] == PROFILE


def test_openai_client_cancels_a_batch_that_the_model_reads(stack: Stack) -> None:
    with client_of(stack) as client:
        batch_id = post_batch(client, range(910, 922))
        wait_for(client, batch_id, lambda batch: batch.request_counts.completed > 0, within_s=400)
        client.batches.cancel(batch_id)
        done = wait_for(client, batch_id, lambda batch: batch.status in OVER)
        assert done.status == "cancelled"
        counts = done.request_counts
        assert counts.completed + counts.failed == counts.total == 12
        told = [row["custom_id"] for file in (done.output_file_id, done.error_file_id) for row in rows_of(client, file)]
        assert sorted(told) == [str(number) for number in range(910, 922)]
