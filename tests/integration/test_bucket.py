"""An S3 bucket as the inbox, on a real S3 server and a real PostgreSQL: each version of each object is taken once."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from docmill.errors import BucketUnavailable, NotFound
from docmill.types import Outcome
from ingest.bucket import Bucket
from storage import bucket as kept
from storage import tenants
from storage.jobs import JobStore
from tests import s3 as server
from tests.jobs import through_all
from tests.services import services_on
from workers import bucket_objects
from workers.api.app import make_api
from workers.services import Services

#: A thousand objects take half a minute where nobody else computes.
WITHIN_S = 400


@pytest.fixture(scope="module")
def s3(s3_bucket: server.Bucket) -> Any:
    """A client of the S3 server."""
    client = s3_bucket.client()
    yield client
    client.close()


@pytest.fixture
def bucket(s3: Any) -> Bucket:
    """An inbox of this test's own on the server."""
    return Bucket(f"s3://docmill/inbox-{secrets.token_hex(4)}/", s3)


@pytest.fixture
def make_use(engine: Engine, bucket: Bucket, tmp_path: Path) -> Iterator[Callable[..., Services]]:
    with ExitStack() as made:

        def make(**settings: Any) -> Services:
            fixed = {"inbox": bucket.url, "bucket_list_every_s": 0.0}
            use = made.enter_context(services_on(engine, tmp_path, **{**fixed, **settings}))
            use.bucket = bucket
            return use

        yield make


@pytest.fixture
def use(make_use: Callable[..., Services]) -> Services:
    return make_use()


def pdf(words: str) -> bytes:
    """Bytes that a door accepts; nobody parses them here."""
    return f"%PDF-1.7\n% {words}\n".encode()


def put(s3: Any, bucket: Bucket, key: str, data: bytes) -> str:
    """Put an object below the inbox; its etag."""
    return str(s3.put_object(Bucket=bucket.name, Key=bucket.prefix + key, Body=data)["ETag"].strip('"'))


def keys_in(s3: Any, bucket: Bucket) -> list[str]:
    found = s3.list_objects_v2(Bucket=bucket.name, Prefix=bucket.prefix).get("Contents", [])
    return [one["Key"].removeprefix(bucket.prefix) for one in found]


def submitted(use: Services, columns: str = "name, outcome") -> list[Any]:
    with use.database.begin() as connection:
        return list(connection.execute(text(f"SELECT {columns} FROM submissions ORDER BY submission_id")))


def event(bucket: Bucket, key: str, etag: str) -> dict[str, Any]:
    object_ = {"key": quote_plus(bucket.prefix + key), "eTag": etag}
    return {"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": bucket.name}, "object": object_}}


def until_quiet(use: Services) -> None:
    """Look at the bucket until a whole listing has been made and nothing waits."""
    waiting = "SELECT count(*) FROM bucket_objects WHERE waiting"
    listed = "SELECT count(*) FROM bucket_listings WHERE finished_at IS NOT NULL"
    deadline = time.monotonic() + WITHIN_S
    while time.monotonic() < deadline:
        bucket_objects.tick(use)
        with use.database.begin() as connection:
            if connection.execute(text(listed)).scalar_one() and not connection.execute(text(waiting)).scalar_one():
                return
    raise AssertionError(f"the bucket did not come to rest within {WITHIN_S} s")


# ---------------------------------------------------------------- a thousand, with events that go wrong


@pytest.mark.timeout(900)
def test_a_thousand_objects_are_each_taken_once_while_events_are_lost_doubled_and_late(
    make_use: Callable[..., Services], s3: Any, bucket: Bucket
) -> None:
    use = make_use(bucket_list_every_s=5.0)
    chance = random.Random(7)
    names = {number: f"tenant-{number % 3}/risk-report/{number // 100}/{number}.pdf" for number in range(1000)}
    files = {name: pdf(str(number)) for number, name in names.items()}
    with ThreadPoolExecutor(8) as threads, TestClient(make_api(use)) as client:
        etags = dict(zip(files, threads.map(lambda item: put(s3, bucket, *item), files.items()), strict=True))
        told = [event(bucket, key, etag) for key, etag in etags.items() for _ in range(chance.choice((0, 0, 1, 2)))]
        chance.shuffle(told)
        # Late: a third of them comes after all has been taken.
        send(client, told[len(told) // 3 :])
        until_quiet(use)
        send(client, told[: len(told) // 3])
        until_quiet(use)
    rows = submitted(use, "name, etag, outcome, count(*) OVER () AS all_of_them")
    assert len(rows) == len({row.name for row in rows}) == 1000
    assert {row.name.removeprefix(bucket.url): row.etag for row in rows} == etags
    assert {row.outcome for row in rows} == {"accepted"}
    with use.database.begin() as connection:
        counted = "SELECT tenant, count(*) FROM jobs GROUP BY 1 ORDER BY 1"
        assert [tuple(row) for row in connection.execute(text(counted))] == [
            ("tenant-0", 334),
            ("tenant-1", 333),
            ("tenant-2", 333),
        ]


def send(client: TestClient, told: list[dict[str, Any]]) -> None:
    for start in range(0, len(told), 200):
        message = {"Type": "Notification", "Message": json.dumps({"Records": told[start : start + 200]})}
        answer = client.post("/v1/bucket-events", json=message)
        assert answer.status_code == 202, answer.text
        assert answer.json()["looked_at"] == answer.json()["told"] == len(told[start : start + 200])


# ---------------------------------------------------------------- versions


def test_a_new_version_is_taken_and_an_unchanged_one_is_not_read_again(
    use: Services, s3: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(s3, bucket, "acme/risk-report/a.pdf", pdf("first"))
    until_quiet(use)
    read: list[str] = []
    get = bucket.get
    monkeypatch.setattr(bucket, "get", lambda key, **more: read.append(key) or get(key, **more))
    until_quiet(use)
    assert read == []
    put(s3, bucket, "acme/risk-report/a.pdf", pdf("second"))
    until_quiet(use)
    assert read == ["acme/risk-report/a.pdf"]
    assert len({row.etag for row in submitted(use, "etag")}) == 2


def test_an_event_that_was_overtaken_takes_nothing_twice(use: Services, s3: Any, bucket: Bucket) -> None:
    key = "acme/risk-report/a.pdf"
    old = put(s3, bucket, key, pdf("first"))
    put(s3, bucket, key, pdf("second"))
    until_quiet(use)
    with TestClient(make_api(use)) as client:
        client.post("/v1/bucket-events", json=event(bucket, key, old)).raise_for_status()
    until_quiet(use)
    assert len(submitted(use)) == 1


def test_an_object_that_is_seen_anew_while_it_is_taken_waits_again(use: Services, s3: Any, bucket: Bucket) -> None:
    key = "acme/risk-report/a.pdf"
    put(s3, bucket, key, pdf("first"))
    bucket_objects.list_on(bucket, use)
    with use.database.begin() as connection:
        (held,) = kept.hold(connection, bucket.url, limit=9, hold_s=60)
    put(s3, bucket, key, pdf("second"))
    taken = bucket_objects.take(held, bucket, use)
    with use.database.begin() as connection:
        kept.taken(connection, bucket.url, [taken])
    put(s3, bucket, key, pdf("third"))
    until_quiet(use)
    assert len(submitted(use)) == 2


def test_two_workers_do_not_hold_the_same_object(use: Services, s3: Any, bucket: Bucket) -> None:
    put(s3, bucket, "acme/risk-report/a.pdf", pdf("only"))
    bucket_objects.list_on(bucket, use)
    held = []
    for _ in range(2):
        with use.database.begin() as connection:
            held.append(len(kept.hold(connection, bucket.url, limit=9, hold_s=60)))
    assert held == [1, 0]


def test_an_object_that_is_gone_before_it_is_taken_is_forgotten(use: Services, s3: Any, bucket: Bucket) -> None:
    with TestClient(make_api(use)) as client:
        client.post("/v1/bucket-events", json=event(bucket, "acme/risk-report/a.pdf", "0")).raise_for_status()
    until_quiet(use)
    assert submitted(use) == []


# ---------------------------------------------------------------- places


def test_a_listing_goes_on_where_it_was_broken_off(
    use: Services, s3: Any, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ingest.bucket.PAGE_KEYS", 2)
    # `-` sorts before `/`: a server that walks folders lists them in another order than one that sorts keys.
    keys = [f"{folder}/risk-report/{name}.pdf" for folder in ("a", "a-b", "a.b", "b") for name in ("1", "2")]
    for key in keys:
        put(s3, bucket, key, pdf(key))
    pages = 0
    while True:
        pages += 1
        fresh = Services(use.settings)
        fresh.bucket = bucket
        more = bucket_objects.list_on(bucket, fresh)
        fresh.database.dispose()
        if not more:
            break
    assert pages >= len(keys) / 2
    with use.database.begin() as connection:
        seen = connection.execute(text('SELECT key FROM bucket_objects ORDER BY key COLLATE "C"')).scalars().all()
    assert seen == sorted(keys)


def test_keys_are_read_by_their_prefix_or_by_the_map(
    make_use: Callable[..., Services], s3: Any, bucket: Bucket
) -> None:
    use = make_use(bucket_places={"scans/": "bank/customer-screening"})
    for key in ("acme/risk-report/deep/er/a.pdf", "scans/b.pdf", "lost.pdf", "acme/no-such-profile/c.pdf"):
        put(s3, bucket, key, pdf(key))
    put(s3, bucket, "acme/risk-report/", b"")
    until_quiet(use)
    found = {row.name.removeprefix(bucket.url): tuple(row)[1:] for row in submitted(use, "name, tenant, profile, code")}
    assert found == {
        "acme/risk-report/deep/er/a.pdf": ("acme", "risk-report", None),
        "scans/b.pdf": ("bank", "customer-screening", None),
        "lost.pdf": ("default", "", "misplaced"),
        "acme/no-such-profile/c.pdf": ("acme", "no-such-profile", "unknown_profile"),
    }


def test_a_name_of_any_letters_is_taken(use: Services, s3: Any, bucket: Bucket) -> None:
    keys = ["银行/risk-report/报告 1.pdf", "acme/risk-report/50%+a&b=c#d?.pdf", "acme/risk-report/back\\slash.pdf"]
    for key in keys:
        put(s3, bucket, key, pdf(key))
    until_quiet(use)
    assert {row.outcome for row in submitted(use)} == {"accepted"}
    assert len(submitted(use)) == len(keys)


# ---------------------------------------------------------------- quotas


def test_objects_over_the_quota_wait_and_hold_up_nobody(use: Services, s3: Any, bucket: Bucket) -> None:
    with use.database.begin() as connection:
        tenants.set_quota(connection, "poor", {"tokens_per_day": 1})
    for tenant in ("poor", "rich"):
        put(s3, bucket, f"{tenant}/risk-report/a.pdf", pdf(tenant))
    spend(use, "poor")
    bucket_objects.tick(use)
    assert [row.tenant for row in submitted(use, "tenant") if row.tenant in ("poor", "rich")] == ["rich"]
    with use.database.begin() as connection:
        tenants.set_quota(connection, "poor", {"tokens_per_day": 0})
    again = Services(use.settings)
    again.bucket = bucket
    until_quiet(again)
    again.database.dispose()
    assert sorted(row.tenant for row in submitted(use, "tenant")) == ["poor", "rich"]


def spend(use: Services, tenant: str) -> None:
    """An entry of a finished reading on the tenant's ledger."""
    with use.database.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO documents (document_id, tenant, sha256, size_bytes, name, source, blob_key) "
                "VALUES ('doc_spent', :tenant, 'spent', 1, 'spent', 'api', 'none'); "
            ),
            {"tenant": tenant},
        )
        connection.execute(
            text(
                "INSERT INTO jobs (job_id, document_id, tenant, profile, profile_version, status, deadline) "
                "VALUES ('job_spent', 'doc_spent', :tenant, 'p', '1', 'done', now())"
            ),
            {"tenant": tenant},
        )
        connection.execute(
            text(
                "INSERT INTO ledger (tenant, job_id, attempt, kind, profile, amount_usd, prompt_tokens) "
                "VALUES (:tenant, 'job_spent', 1, 'settle', 'p', 0, 10)"
            ),
            {"tenant": tenant},
        )


# ---------------------------------------------------------------- what becomes of the originals


def test_an_object_gets_its_receipt_and_is_moved_by_its_end(
    make_use: Callable[..., Services], s3: Any, bucket: Bucket
) -> None:
    use = make_use(bucket_receipts=True, bucket_moves={"done": "done/", "refused": "refused/"})
    put(s3, bucket, "acme/risk-report/good.pdf", pdf("good"))
    put(s3, bucket, "acme/risk-report/bad.pdf", b"no PDF")
    put(s3, bucket, "acme/risk-report/running.pdf", pdf("running"))
    until_quiet(use)
    finish(use, "good.pdf")
    bucket_objects.tick(use)
    until_quiet(use)
    assert sorted(keys_in(s3, bucket)) == [
        "acme/risk-report/bad.pdf.docmill.json",
        "acme/risk-report/good.pdf.docmill.json",
        "acme/risk-report/running.pdf",
        "done/acme/risk-report/good.pdf",
        "refused/acme/risk-report/bad.pdf",
    ]
    receipt = s3.get_object(Bucket=bucket.name, Key=f"{bucket.prefix}acme/risk-report/bad.pdf.docmill.json")["Body"]
    told = json.loads(receipt.read())
    assert (told["outcome"], told["key"]) == ("refused", f"{bucket.prefix}acme/risk-report/bad.pdf")
    assert "PDF" in told["reason"]
    assert len(submitted(use)) == 3


def test_a_file_that_comes_again_after_it_was_moved_is_moved_again(
    make_use: Callable[..., Services], s3: Any, bucket: Bucket
) -> None:
    use = make_use(bucket_moves={"refused": "refused/"})
    for _ in range(2):
        put(s3, bucket, "acme/risk-report/bad.pdf", b"no PDF")
        until_quiet(use)
        bucket_objects.tick(use)
        assert keys_in(s3, bucket) == ["refused/acme/risk-report/bad.pdf"]


def test_an_object_is_tagged_by_its_end(make_use: Callable[..., Services], s3: Any, bucket: Bucket) -> None:
    use = make_use(bucket_tags=True)
    put(s3, bucket, "acme/risk-report/bad.pdf", b"no PDF")
    until_quiet(use)
    bucket_objects.tick(use)
    tags = s3.get_object_tagging(Bucket=bucket.name, Key=f"{bucket.prefix}acme/risk-report/bad.pdf")["TagSet"]
    assert tags == [{"Key": "docmill", "Value": "refused"}]


def test_what_was_replaced_meanwhile_is_neither_moved_nor_tagged(s3: Any, bucket: Bucket) -> None:
    old = put(s3, bucket, "acme/risk-report/a.pdf", pdf("first"))
    put(s3, bucket, "acme/risk-report/a.pdf", pdf("second"))
    assert not bucket.move("acme/risk-report/a.pdf", old, "done/")
    assert not bucket.tag("acme/risk-report/a.pdf", old, {"docmill": "done"})
    got = bucket.get("acme/risk-report/a.pdf", max_bytes=100)
    assert got is not None and got.data == pdf("second")


def test_the_receipt_of_an_object_is_in_the_database(use: Services, s3: Any, bucket: Bucket) -> None:
    etag = put(s3, bucket, "acme/risk-report/a.pdf", pdf("only"))
    until_quiet(use)
    with use.database.begin() as connection:
        receipt = kept.receipt(connection, bucket.url, "acme/risk-report/a.pdf")
        assert kept.receipt(connection, bucket.url, "acme/risk-report/b.pdf") is None
    assert receipt is not None
    assert (receipt["etag"], receipt["outcome"], receipt["status"]) == (etag, "accepted", "received")


def finish(use: Services, name: str) -> None:
    """Carry the job of an object to its end."""
    with use.database.begin() as connection:
        job_id = connection.execute(
            text("SELECT job_id FROM submissions WHERE name LIKE :name"), {"name": f"%/{name}"}
        ).scalar_one()
    through_all(JobStore(use.database), job_id, Outcome.PASS)


# ---------------------------------------------------------------- the bucket itself


def test_no_more_of_an_object_is_read_than_is_needed_to_refuse_it(s3: Any, bucket: Bucket) -> None:
    put(s3, bucket, "a", bytes(3_000_000))
    got = bucket.get("a", max_bytes=1_500_000)
    assert got is not None
    assert (len(got.data), got.size) == (1_500_001, 3_000_000)


def test_what_is_not_there_is_not_found(bucket: Bucket) -> None:
    with pytest.raises(NotFound, match="was removed"):
        bucket.get("nothing", max_bytes=1)


def test_a_bucket_that_refuses_us_is_unavailable_and_the_tick_goes_on(
    make_use: Callable[..., Services], s3: Any
) -> None:
    nowhere = Bucket("s3://there-is-none-of-this-name/", s3)
    with pytest.raises(BucketUnavailable, match="list_objects_v2"):
        nowhere.page()
    use = make_use()
    use.bucket = nowhere
    bucket_objects.tick(use)


def test_events_of_another_bucket_are_heard_and_not_looked_at(use: Services, s3: Any, bucket: Bucket) -> None:
    other = Bucket("s3://another/", s3)
    with TestClient(make_api(use)) as client:
        answer = client.post("/v1/bucket-events", json=event(other, "acme/risk-report/a.pdf", "0"))
        assert answer.json() == {"told": 1, "looked_at": 0}
        assert client.post("/v1/bucket-events", json={"no": "event"}).status_code == 400


def test_a_folder_needs_no_events(make_use: Callable[..., Services], tmp_path: Path) -> None:
    with TestClient(make_api(make_use(inbox=str(tmp_path)))) as client:
        assert client.post("/v1/bucket-events", json={"Records": []}).status_code == 404
