"""What must not be possible: to see another tenant, to exhaust the API, to leave a folder, to find a key in a log."""

from __future__ import annotations

import io
import logging
import re
import socket
import threading
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import Engine, text

from docmill.errors import BadTenant, RequestError, ZipBomb
from docmill.types import Outcome, Source
from ingest.zips import unpack
from storage import api_keys
from storage.api_keys import Scope
from storage.jobs import JobStore
from tests.jobs import through_all
from tests.pdfs import text_pdf
from tests.s3 import free_ports
from tests.services import services_on
from workers.api.app import make_api
from workers.intake import submit
from workers.services import Services

PROFILE = "risk-report"
MAX_BYTES = 100_000
EVERY = tuple(Scope)


@pytest.fixture
def use(engine: Engine, tmp_path: Path) -> Iterator[Services]:
    bounds = {"max_bytes": MAX_BYTES, "upload_max_bytes": 2 * MAX_BYTES, "upload_idle_s": 0.5}
    open_to = {"require_api_key": True, "webhook_hosts": ("127.0.0.1",)}
    with services_on(engine, tmp_path, **bounds, **open_to) as services:
        yield services


def token(use: Services, tenant: str, label: str = "test") -> str:
    with use.database.begin() as connection:
        return api_keys.create(connection, tenant, label, scopes=EVERY)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# ---------------------------------------------------------------- another tenant's ids


def everything_of(tenant_key: dict[str, str], client: TestClient, use: Services) -> dict[str, str]:
    """One thing of each kind that has an id, by the name of the parameter that takes it."""

    def made(path: str, **sent: Any) -> Any:
        answer = client.post(path, headers=tenant_key, **sent)
        assert answer.status_code < 300, answer.text
        return answer.json()

    pdf = ("a.pdf", text_pdf("theirs"), "application/pdf")
    job = made("/v1/documents", files={"file": pdf}, data={"profile": PROFILE})
    through_all(JobStore(use.database), job["job_id"], Outcome.REVIEW)
    lines = made("/v1/files", files={"file": ("a.jsonl", b"{}\n")}, data={"purpose": "batch"})
    batch = {"input_file_id": lines["id"], "endpoint": "/v1/documents", "completion_window": "24h"}
    upload = {"bytes": 3, "filename": "a.pdf", "mime_type": "application/pdf", "purpose": "user_data"}
    hook = {"name": "theirs", "url": "http://127.0.0.1:9/x", "event_types": ["batch.completed"]}
    return {
        "job_id": job["job_id"],
        "document_id": job["document_id"],
        "file_id": lines["id"],
        "batch_id": made("/v1/batches", json=batch)["id"],
        "upload_id": made("/v1/uploads", json=upload)["id"],
        "webhook_id": made("/v1/webhook_endpoints", json=hook)["id"],
    }


#: What a call must send for its id to be looked at; a call that is not here sends nothing.
SENT: dict[tuple[str, str], dict[str, Any]] = {
    ("post", "/v1/reviews/{job_id}"): {"json": {"action": "accept", "reviewer": "Li"}},
    ("post", "/v1/uploads/{upload_id}/parts"): {"files": {"data": b"abc"}},
    ("post", "/v1/uploads/{upload_id}/complete"): {"json": {"part_ids": []}},
    ("post", "/v1/webhook_endpoints/{webhook_id}"): {"json": {"name": "mine now"}},
    ("post", "/v1/webhook_endpoints/{webhook_id}/test"): {"json": {"event_type": "batch.completed"}},
}


def calls(client: TestClient) -> list[tuple[str, str]]:
    """Every method and path of `/v1` that the OpenAPI document has."""
    paths = client.get("/openapi.json").json()["paths"]
    return [(method, path) for path, item in paths.items() if path.startswith("/v1") for method in item]


def call(client: TestClient, method: str, path: str, ids: dict[str, str], headers: dict[str, str]) -> Response:
    filled = re.sub(r"\{(\w+)\}", lambda found: ids[found[1]], path)
    return client.request(method, filled, headers=headers, **SENT.get((method, path), {}))


def test_another_tenants_id_is_not_found_on_any_route(client: TestClient, use: Services) -> None:
    theirs, mine = bearer(token(use, "theirs")), bearer(token(use, "mine"))
    ids = everything_of(theirs, client, use)
    with_id = [one for one in calls(client) if "{" in one[1]]
    assert len(with_id) > 15
    answers = {one: call(client, *one, ids, mine) for one in with_id}
    wrong = {one: answer.text for one, answer in answers.items() if answer.status_code != 404}
    assert not wrong
    leaks = [one for one, answer in answers.items() if "theirs" in answer.text]
    assert not leaks


def test_what_is_refused_to_others_was_there_for_its_owner(client: TestClient, use: Services) -> None:
    theirs = bearer(token(use, "theirs"))
    ids = everything_of(theirs, client, use)
    reading = [one for one in calls(client) if "{" in one[1] and one[0] == "get"]
    answers = {path: call(client, method, path, ids, theirs) for method, path in reading}
    # The evidence of a review is that of a parsed document, and nobody parsed this one.
    shown = answers.pop("/v1/reviews/{job_id}")
    assert "prepared" in shown.json()["detail"]
    assert {path: answer.text for path, answer in answers.items() if answer.status_code != 200} == {}


def test_no_list_shows_what_is_another_tenants(client: TestClient, use: Services) -> None:
    theirs, mine = bearer(token(use, "theirs")), bearer(token(use, "mine"))
    ids = everything_of(theirs, client, use)
    for method, path in calls(client):
        if method == "get" and "{" not in path:
            shown = client.get(path, headers=mine).text
            assert not [one for one in ids.values() if one in shown], path


def test_without_a_key_nothing_of_v1_answers(client: TestClient) -> None:
    ids = dict.fromkeys(("job_id", "document_id", "file_id", "batch_id", "upload_id", "webhook_id"), "x")
    answers = {one: call(client, *one, ids, {}).status_code for one in calls(client)}
    assert set(answers.values()) == {401}, answers
    assert client.post("/v1/no-such-route").status_code == 401


@pytest.mark.parametrize("path", ["/v1/jobs/a%00b", "/v1/documents/%00", "/v1/reviews?profile=%00"])
def test_a_nul_in_a_call_is_refused(client: TestClient, use: Services, path: str) -> None:
    assert client.get(path, headers=bearer(token(use, "mine"))).status_code == 400


# ---------------------------------------------------------------- large and slow bodies


@contextmanager
def served(use: Services) -> Iterator[tuple[str, int]]:
    """The API behind a real socket."""
    (port,) = free_ports(1)
    server = uvicorn.Server(uvicorn.Config(make_api(use), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            thread.join(0.05)
        yield "127.0.0.1", port
    finally:
        server.should_exit = True
        thread.join(30)


def status_of(
    address: tuple[str, int],
    headers: dict[str, str],
    send: Callable[[socket.socket], None],
) -> int:
    """The status that a hand-made POST is answered with."""
    lines = ["POST /v1/documents HTTP/1.1", "Host: docmill", *(f"{name}: {value}" for name, value in headers.items())]
    with socket.create_connection(address, timeout=60) as connection:
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        send(connection)
        return int(connection.makefile("rb").readline().split()[1])


FORM = {"Content-Type": "multipart/form-data; boundary=b", "Transfer-Encoding": "chunked"}
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def test_a_body_without_end_is_cut_off_at_the_limit_in_bounded_memory(use: Services) -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        try:
            connection.sendall(chunk(HEAD))
            for _ in range(10_000):
                connection.sendall(chunk(bytes(10_000)))
                sent += 10_000
        except OSError:  # cut off, as it should be
            pass

    with served(use) as address:
        tracemalloc.start()
        headers = {**FORM, **bearer(token(use, "mine"))}
        try:
            assert status_of(address, headers, flood) == 413
        except (ConnectionError, IndexError):  # reset before the answer could be read
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert sent < 50_000_000
    assert peak < 32_000_000


def test_a_body_that_stops_coming_is_given_up(use: Services) -> None:
    with served(use) as address:
        headers = {**FORM, **bearer(token(use, "mine"))}
        assert status_of(address, headers, lambda connection: connection.sendall(chunk(HEAD))) == 408


def test_a_body_that_drips_is_given_up_when_its_time_is_over(use: Services) -> None:
    slow = Services(use.settings.model_copy(update={"upload_s": 1.0}))
    stop = threading.Event()

    def drip(connection: socket.socket) -> None:
        def go_on() -> None:
            try:
                connection.sendall(chunk(HEAD))
                while not stop.wait(0.1):
                    connection.sendall(chunk(b"x"))
            except OSError:
                pass

        threading.Thread(target=go_on, daemon=True).start()

    with served(slow) as address:
        assert status_of(address, {**FORM, **bearer(token(use, "mine"))}, drip) == 408
        stop.set()
    slow.database.dispose()


def test_nobody_without_a_key_is_listened_to(use: Services) -> None:
    with served(use) as address:
        assert status_of(address, FORM, lambda connection: None) == 401


def test_json_without_end_is_refused(client: TestClient, use: Services) -> None:
    body = b'{"Records": [' + b" " * (17 * 1024 * 1024)
    headers = {**bearer(token(use, "mine")), "Content-Type": "application/json"}
    assert client.post("/v1/bucket-events", content=body, headers=headers).status_code == 413


# ---------------------------------------------------------------- archives and paths


def test_a_zip_bomb_is_refused() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.pdf", bytes(50_000_000))
    with pytest.raises(ZipBomb):
        list(unpack(file))


@pytest.mark.parametrize("tenant", ["", ".", "..", "../other", "a/b", "a\\b", "a\x00b", "a\nb", "\u202eb", "x" * 300])
def test_no_path_hides_in_the_name_of_a_tenant(use: Services, tenant: str) -> None:
    with pytest.raises(BadTenant):
        submit(text_pdf("x"), name="a.pdf", tenant=tenant, profile_name=PROFILE, source=Source.CLI, use=use)
    assert not (use.settings.home / "blobs").exists()


@pytest.mark.parametrize("profile", ["../../etc/passwd", "risk-report/../x", "a\nb", "", "%2e%2e"])
def test_no_path_hides_in_the_name_of_a_profile(use: Services, profile: str) -> None:
    with pytest.raises(RequestError):
        submit(text_pdf("x"), name="a.pdf", tenant="mine", profile_name=profile, source=Source.CLI, use=use)


@pytest.mark.parametrize("name", ["../../../etc/cron.d/x.pdf", "/etc/passwd", "..\\..\\x.pdf", "a\nb.pdf", "C:\\x.pdf"])
def test_a_file_is_kept_by_its_content_whatever_its_name_is(client: TestClient, use: Services, name: str) -> None:
    headers = bearer(token(use, "mine"))
    answer = client.post(
        "/v1/documents", files={"file": (name, text_pdf("same"))}, data={"profile": PROFILE}, headers=headers
    )
    assert answer.status_code == 202, answer.text
    kept = [path for path in use.settings.home.rglob("*") if path.is_file()]
    assert [path.relative_to(use.settings.home).parts[:3] for path in kept] == [("blobs", "originals", "mine")]


# ---------------------------------------------------------------- keys


def test_a_key_is_in_no_log_answer_or_table(
    client: TestClient, use: Services, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    good, revoked = token(use, "mine", "good"), token(use, "mine", "revoked")
    with use.database.begin() as connection:
        api_keys.revoke(connection, "mine", "revoked")
    wrong = api_keys.PREFIX + "0123456789abcdef"
    answers = [client.get("/v1/jobs", headers=bearer(one)) for one in (good, revoked, wrong)]
    answers += [client.get("/v1/audit", headers=bearer(good)), client.post("/v1/documents", headers=bearer(good))]
    in_a_path = client.post(f"/v1/jobs/{good}/cancel", headers=bearer(good))
    assert in_a_path.status_code == 404
    monkeypatch.setattr(JobStore, "record", lambda *_, **__: 1 / 0)
    answers += [client.get("/v1/jobs/x", headers=bearer(good))]
    assert [answer.status_code for answer in answers[:3]] == [200, 401, 401]
    assert answers[-1].status_code == 500
    kept = everything_kept(use)
    # The test's own client logs what it calls.
    logged = "\n".join(str(record.__dict__) for record in caplog.records if not record.name.startswith("httpx"))
    assert "unforeseen" in logged
    for one in (good, revoked, wrong):
        assert one not in logged
        assert one not in kept
        assert not [answer for answer in answers if one in answer.text]


def everything_kept(use: Services) -> str:
    """Every row of every table, as text."""
    with use.database.begin() as connection:
        names = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        return "\n".join(str(row) for name in names for row in connection.execute(text(f"SELECT * FROM {name}")))
