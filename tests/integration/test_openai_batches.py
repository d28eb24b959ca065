"""The `openai` client's batches against our API: what is in a file, what comes out, what goes wrong."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import openai
import pytest
from openai.types import Batch
from openai.types.chat import ChatCompletion

from docmill.types import Outcome
from tests.door import CHAT, DOCUMENTS, OVER, PROFILE, Door, balanced

NULLABLE = (
    *("model", "errors", "output_file_id", "error_file_id", "in_progress_at", "expires_at", "finalizing_at"),
    *(
        "completed_at",
        "failed_at",
        "expired_at",
        "cancelling_at",
        "cancelled_at",
        "request_counts",
        "usage",
        "metadata",
    ),
)


def codes(batch: Batch) -> list[tuple[str | None, int | None]]:
    assert batch.errors is not None
    return [(error.code, error.line) for error in batch.errors.data or []]


def test_openai_batch_of_chat_completions_from_upload_to_results(door: Door) -> None:
    made = door.batch(door.requests(3), metadata={"quarter": "Q3"})
    assert (made.status, made.object, made.endpoint) == ("validating", "batch", CHAT)
    assert made.request_counts.model_dump() == {"total": 0, "completed": 0, "failed": 0}
    assert made.metadata == {"quarter": "Q3"}
    running = door.step_until(made.id, lambda: len(door.open_jobs(made.id)) == 3)
    assert (running.status, running.model, running.request_counts.total) == ("in_progress", PROFILE, 3)
    door.read(made.id, 2)
    door.step_until(made.id, lambda: door.get(made.id).request_counts.completed == 2)
    door.read(made.id)
    done = door.finish(made.id)
    assert (done.status, done.error_file_id) == ("completed", None)
    assert door.outcomes(done) == (["request-0", "request-1", "request-2"], [])
    assert done.created_at <= done.in_progress_at <= done.finalizing_at <= done.completed_at < done.expires_at
    assert (done.failed_at, done.expired_at, done.cancelling_at, done.cancelled_at) == (None,) * 4
    assert done.usage.model_dump() == {
        "input_tokens": 300,
        "input_tokens_details": {"cached_tokens": 120},
        "output_tokens": 30,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 330,
    }


def test_openai_result_row_is_a_chat_completion_whose_content_is_the_result(door: Door) -> None:
    batch = door.running(1)
    door.read(batch.id)
    done = door.finish(batch.id)
    (row,) = door.rows(done.output_file_id)
    assert row["id"].startswith("batch_req_")
    assert row["error"] is None
    assert row["response"]["status_code"] == 200
    completion = ChatCompletion.model_validate(row["response"]["body"])
    assert json.loads(completion.choices[0].message.content or "") == {"total": "5.2"}
    assert completion.usage is not None
    assert (completion.model, completion.usage.prompt_tokens, completion.usage.completion_tokens) == (PROFILE, 100, 10)
    file = door.client.files.retrieve(done.output_file_id)
    assert file.purpose == "batch_output"
    assert file.expires_at == pytest.approx(file.created_at + 30 * 86_400, abs=1)


def test_openai_batch_of_our_documents_endpoint_gives_our_record(door: Door) -> None:
    batch = door.batch(door.requests(1, url=DOCUMENTS), endpoint=DOCUMENTS)
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 1)
    door.read(batch.id, outcome=Outcome.REVIEW)
    (row,) = door.rows(door.finish(batch.id).output_file_id)
    body = row["response"]["body"]
    assert (body["status"], body["result"], body["profile"]) == ("needs_review", {"total": "5.2"}, PROFILE)
    assert body["findings"][0]["rule"] == "rule"
    assert Decimal(body["cost_usd"]) == Decimal("0.001")


def test_openai_batch_object_has_every_key(door: Door) -> None:
    made = door.client.batches.with_raw_response.retrieve(door.batch(door.requests(1)).id)
    told = json.loads(made.content)
    assert set(NULLABLE) <= set(told)
    assert told["errors"] is None


def test_openai_batches_are_listed_in_pages_the_newest_first(door: Door) -> None:
    file = door.upload(door.requests(1))
    made = [door.client.batches.create(input_file_id=file, endpoint=CHAT, completion_window="24h").id for _ in range(5)]
    assert [batch.id for batch in door.client.batches.list(limit=2)] == made[::-1]
    assert door.client.batches.list(limit=2).has_more is True
    for limit in (0, 101):
        with pytest.raises(openai.BadRequestError):
            door.client.batches.list(limit=limit)


def test_openai_every_request_failed_is_completed_with_an_error_file_alone(door: Door) -> None:
    batch = door.running(2)
    door.fail(batch.id, reason="engine_dead: it is gone")
    door.fail(batch.id, 1)
    done = door.finish(batch.id)
    assert (done.status, done.output_file_id) == ("completed", None)
    assert (done.request_counts.failed, balanced(done)) == (2, True)
    rows = {row["response"]["status_code"]: row for row in door.rows(done.error_file_id)}
    assert set(rows) == {422, 500}
    for row in rows.values():
        assert row["error"] is None, "OpenAI's rows of requests that were made have no error of their own"
        assert set(row["response"]["body"]["error"]) == {"message", "type", "param", "code"}
    assert rows[422]["response"]["body"]["error"]["code"] == "no_text"


def test_openai_request_for_a_document_that_cannot_be_read_fails_alone(door: Door) -> None:
    no_pdf = door.client.files.create(file=("a.pdf", b"plain text"), purpose="user_data").id
    theirs = door.pdf(door.other)
    late = {"docmill": {"deadline": 1}}
    good, nothing = door.line("good", door.pdf()), door.line("nothing", "")
    nothing["body"]["messages"] = [{"role": "user", "content": "no document"}]
    wrong = [door.line("gone", "file-none"), door.line("theirs", theirs), door.line("text", no_pdf)]
    batch = door.batch([good, *wrong, nothing, door.line("late", door.pdf(), **late)])
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 1)
    door.read(batch.id)
    done = door.finish(batch.id)
    assert door.outcomes(done) == (["good"], ["gone", "late", "nothing", "text", "theirs"])
    told = {row["custom_id"]: row["response"] for row in door.rows(done.error_file_id)}
    assert {name: row["status_code"] for name, row in told.items()} == {
        **{"gone": 404, "theirs": 404, "text": 422, "nothing": 400, "late": 400}
    }
    assert balanced(done)


LINE: dict[str, Any] = {"custom_id": "a", "method": "POST", "url": CHAT, "body": {"model": PROFILE, "messages": []}}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([b"{"], [("invalid_json_line", 1)]),
        ([b"[]"], [("invalid_json_line", 1)]),
        ([b"\xff\xfe"], [("invalid_json_line", 1)]),
        ([b"[" * 100_000], [("invalid_json_line", 1)]),
        ([LINE, LINE], [("duplicate_custom_id", 2)]),
        ([{**LINE, "url": "/v1/embeddings"}], [("url_mismatch", 1)]),
        ([{**LINE, "method": "GET"}], [("invalid_request", 1)]),
        ([{**LINE, "custom_id": 7}], [("invalid_request", 1)]),
        ([{**LINE, "custom_id": "a\0b"}], [("invalid_request", 1)]),
        ([{**LINE, "body": None}], [("invalid_request", 1)]),
        ([{key: value for key, value in LINE.items() if key != "custom_id"}], [("invalid_request", 1)]),
        ([{**LINE, "body": {**LINE["body"], "stream": True}}], [("invalid_request", 1)]),
        ([{**LINE, "body": {"model": "gpt-4o", "messages": []}}], [("model_not_found", 1)]),
        ([LINE, {**LINE, "custom_id": "b", "body": {"model": "risk-report"}}], [("model_mismatch", 2)]),
        ([{**LINE, "docmill": {"priority": "soon"}}], [("invalid_request", 1)]),
        ([], [("empty_file", None)]),
        ([b"", b"  ", b""], [("empty_file", None)]),
        ([{**LINE, "custom_id": str(number)} for number in range(2_001)], [("too_many_tasks", None)]),
    ],
)
def test_openai_bad_file_is_taken_and_the_batch_fails_with_its_line(door: Door, lines: list[Any], told: Any) -> None:
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    batch = door.batch(data)
    assert batch.status == "validating"
    failed = door.finish(batch.id)
    assert (failed.status, codes(failed)) == ("failed", told)
    assert failed.failed_at is not None
    assert failed.errors.object == "list"
    assert failed.request_counts.total == 0
    assert (failed.output_file_id, failed.error_file_id) == (None, None)


def test_openai_byte_order_mark_line_ends_of_windows_and_blank_lines_are_taken(door: Door) -> None:
    lines = [json.dumps(line).encode() for line in door.requests(2)]
    batch = door.batch(b"\xef\xbb\xbf" + lines[0] + b"\r\n\r\n   \r\n" + lines[1] + b"\r\n\n")
    running = door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 2)
    assert running.request_counts.total == 2


def test_openai_errors_of_a_file_name_the_line_in_the_file_and_are_a_hundred_at_most(door: Door) -> None:
    good = json.dumps(LINE).encode()
    failed = door.finish(door.batch(b"\n\n" + good + b"\n" + b"{\n" * 150).id)
    assert codes(failed) == [("invalid_json_line", number) for number in range(4, 104)]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"completion_window": "soon"}, "completion_window"),
        ({"completion_window": "99d"}, "completion_window"),
        ({"metadata": {str(number): "" for number in range(17)}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires_after"),
        ({"extra_body": {"docmill": {"profile": "tea-leaves"}}}, "docmill.profile"),
        ({"extra_body": {"docmill": {"colour": "red"}}}, "docmill.colour"),
    ],
)
def test_openai_wrong_parameter_is_a_bad_request_that_names_it(door: Door, change: Any, param: str) -> None:
    asked = {"input_file_id": door.upload([LINE]), "endpoint": CHAT, "completion_window": "24h", **change}
    with pytest.raises(openai.BadRequestError) as refused:
        door.client.batches.create(**asked)
    assert str(refused.value.param).startswith(param)


def test_openai_another_tenants_batch_and_file_do_not_exist(door: Door) -> None:
    batch = door.running(1)
    for call in (door.other.batches.retrieve, door.other.batches.cancel):
        with pytest.raises(openai.NotFoundError):
            call(batch.id)
    with pytest.raises(openai.NotFoundError):
        door.other.batches.create(input_file_id=batch.input_file_id, endpoint=CHAT, completion_window="24h")
    assert door.other.batches.list().data == []
    door.read(batch.id)
    done = door.finish(batch.id)
    with pytest.raises(openai.NotFoundError):
        door.other.files.content(done.output_file_id)


def test_openai_output_files_go_when_the_caller_says(door: Door) -> None:
    made = door.batch(door.requests(1), output_expires_after={"anchor": "created_at", "seconds": 3600})
    door.step_until(made.id, lambda: len(door.open_jobs(made.id)) == 1)
    door.read(made.id)
    file = door.client.files.retrieve(door.finish(made.id).output_file_id)
    assert file.expires_at == pytest.approx(file.created_at + 3600, abs=1)


def test_openai_requests_for_one_document_share_its_reading_and_pay_once(door: Door) -> None:
    pdf = door.pdf()
    batch = door.batch([door.line(name, pdf) for name in ("first", "second")])
    door.step_until(batch.id, lambda: len(door.open_jobs(batch.id)) == 2)
    door.read(batch.id)
    done = door.finish(batch.id)
    assert (done.request_counts.completed, done.usage.input_tokens) == (2, 100)
    ours = [row["response"]["body"]["docmill"] for row in door.rows(done.output_file_id)]
    assert [row["shared"] for row in ours] == [False, True]
    assert ours[1]["cost_usd"] == "0"
    again = door.batch([door.line("third", pdf)])
    done = door.finish(again.id)
    assert (done.status, done.request_counts.completed, done.usage.total_tokens) == ("completed", 1, 0)
    assert done.status in OVER
