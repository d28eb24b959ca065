"""The `openai` client's files and uploads against our API."""

from __future__ import annotations

import hashlib

import httpx
import openai
import pytest

from tests.door import Door
from tests.pdfs import text_pdf


def test_openai_uploads_looks_at_downloads_and_deletes_a_file(door: Door) -> None:
    data = text_pdf("a report")
    made = door.client.files.create(file=("report.pdf", data), purpose="user_data")
    assert (made.object, made.bytes, made.filename, made.purpose) == ("file", len(data), "report.pdf", "user_data")
    assert made.status == "processed"
    assert made.expires_at is None
    assert door.client.files.retrieve(made.id) == made
    assert door.client.files.content(made.id).read() == data
    assert door.client.files.delete(made.id).deleted is True
    for call in (door.client.files.retrieve, door.client.files.content, door.client.files.delete):
        with pytest.raises(openai.NotFoundError):
            call(made.id)


def test_openai_files_are_listed_in_pages_the_newest_first(door: Door) -> None:
    made = [door.pdf() for _ in range(5)]
    requests = door.upload([{}])
    assert [file.id for file in door.client.files.list(limit=2)] == [requests, *reversed(made)]
    assert [file.id for file in door.client.files.list(limit=2, order="asc", purpose="user_data")] == made
    page = door.client.files.list(limit=3)
    assert (page.has_more, len(page.data)) == (True, 3)
    assert page.data[-1].id == page.model_extra["last_id"]
    door.client.files.delete(page.data[-1].id)
    assert [file.id for file in page.get_next_page()] == made[2::-1], "a deleted file is a cursor all the same"


def test_openai_files_of_batches_are_named_jsonl_and_go_after_thirty_days(door: Door) -> None:
    made = door.client.files.retrieve(door.upload([{}]))
    assert made.expires_at == made.created_at + 30 * 86_400
    with pytest.raises(openai.BadRequestError) as refused:
        door.client.files.create(file=("requests.txt", b"{}"), purpose="batch")
    assert refused.value.type == "invalid_request_error"
    assert refused.value.param == "file"


def test_openai_files_may_say_when_they_expire(door: Door) -> None:
    until = {"anchor": "created_at", "seconds": 3600}
    made = door.client.files.create(file=("a.pdf", b"%PDF-"), purpose="user_data", expires_after=until)
    assert made.expires_at == made.created_at + 3600
    with pytest.raises(openai.BadRequestError):
        door.client.files.create(
            file=("a.pdf", b"%PDF-"), purpose="user_data", expires_after={"anchor": "created_at", "seconds": 1}
        )


@pytest.mark.parametrize(("purpose", "size"), [("batch", 1_000_001), ("user_data", 2_000_001)])
def test_openai_files_that_are_too_large_are_refused_and_not_kept(door: Door, purpose: str, size: int) -> None:
    with pytest.raises(openai.BadRequestError, match="too large"):
        door.client.files.create(file=("large.jsonl", b"x" * size), purpose=purpose)
    assert door.client.files.list().data == []
    assert door.kept("files") == set()


def test_openai_errors_have_all_four_keys(door: Door) -> None:
    answer = httpx.get(f"{door.url}/v1/files/file-none", headers={"Authorization": f"Bearer {door.client.api_key}"})
    assert answer.status_code == 404
    assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    with pytest.raises(openai.BadRequestError) as refused:
        door.client.files.list(limit=0)
    assert refused.value.param == "limit"
    with pytest.raises(openai.AuthenticationError):
        door.client.with_options(api_key="docmill_wrong").files.list()


def test_openai_another_tenants_file_does_not_exist(door: Door) -> None:
    made = door.pdf()
    for call in (door.other.files.retrieve, door.other.files.content, door.other.files.delete):
        with pytest.raises(openai.NotFoundError):
            call(made)
    assert door.other.files.list().data == []
    with pytest.raises(openai.NotFoundError):
        door.other.files.list(after=made)
    assert door.client.files.retrieve(made)


def test_openai_uploads_a_file_in_parts(door: Door) -> None:
    data = text_pdf(*(f"page {number}" for number in range(20)))
    upload = door.client.uploads.create(
        bytes=len(data), filename="long.pdf", mime_type="application/pdf", purpose="user_data"
    )
    assert upload.status == "pending"
    cut = len(data) // 3
    last = door.client.uploads.parts.create(upload.id, data=data[cut:])
    first = door.client.uploads.parts.create(upload.id, data=data[:cut])
    with pytest.raises(openai.BadRequestError, match="md5"):
        door.client.uploads.complete(upload.id, part_ids=[first.id, last.id], md5="0" * 32)
    with pytest.raises(openai.BadRequestError, match="bytes"):
        door.client.uploads.complete(upload.id, part_ids=[first.id])
    md5 = hashlib.md5(data).hexdigest()
    done = door.client.uploads.complete(upload.id, part_ids=[first.id, last.id], md5=md5)
    assert done.status == "completed"
    assert done.file is not None
    assert door.client.files.content(done.file.id).read() == data
    for call in (door.client.uploads.cancel, lambda id: door.client.uploads.parts.create(id, data=b"x")):
        with pytest.raises(openai.BadRequestError, match="completed"):
            call(upload.id)
    door.runner.purge()
    assert door.kept("uploads") == set(), "the parts are in the file now"


def test_openai_cancels_an_upload_and_one_over_its_hour_has_expired(door: Door) -> None:
    upload = door.client.uploads.create(bytes=1, filename="a.pdf", mime_type="application/pdf", purpose="user_data")
    with pytest.raises(openai.NotFoundError):
        door.other.uploads.cancel(upload.id)
    assert door.client.uploads.cancel(upload.id).status == "cancelled"
    late = door.client.uploads.create(bytes=1, filename="a.pdf", mime_type="application/pdf", purpose="user_data")
    door.execute("UPDATE uploads SET expires_at = now() WHERE upload_id = :id", id=late.id)
    with pytest.raises(openai.BadRequestError, match="expired"):
        door.client.uploads.parts.create(late.id, data=b"x")


def test_openai_deleted_files_leave_the_blob_store_but_not_a_documents_bytes(door: Door) -> None:
    batch = door.running(1)
    of_document, unused = door.client.files.list(purpose="user_data").data[0].id, door.pdf()
    for file_id in (of_document, unused):
        door.client.files.delete(file_id)
    door.runner.purge()
    assert of_document in door.kept("files")
    assert unused not in door.kept("files")
    door.read(batch.id)
    assert door.finish(batch.id).request_counts.completed == 1
