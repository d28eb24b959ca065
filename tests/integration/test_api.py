"""The API over a real PostgreSQL; no worker runs, so jobs stay where the door leaves them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from storage import api_keys
from tests.pdfs import text_pdf
from tests.services import services_on
from workers.api.app import make_api
from workers.services import Services


@pytest.fixture
def use(engine: Engine, tmp_path: Path) -> Iterator[Services]:
    with services_on(engine, tmp_path, max_bytes=100_000) as services:
        yield services


def post(
    client: TestClient, data: bytes, *, profile: str = "risk-report", name: str = "a.pdf", **headers: str
) -> object:
    files = {"file": (name, data, "application/pdf")}
    return client.post("/v1/documents", files=files, data={"profile": profile}, headers=headers)


def test_without_prefer_the_answer_is_a_link(client: TestClient) -> None:
    answer = post(client, text_pdf("one"))
    assert answer.status_code == 202
    job = client.get(answer.headers["Location"]).json()
    assert job["status"] == "received"
    assert client.get(job["links"]["document"]).json()["jobs"] == [job["job_id"]]


def test_with_prefer_it_waits_no_longer_than_asked(client: TestClient) -> None:
    answer = post(client, text_pdf("two"), Prefer="wait=1")
    assert answer.status_code == 202
    assert answer.headers["Preference-Applied"] == "wait=1"


def test_a_job_is_kept_while_the_broker_is_away(client: TestClient) -> None:
    answer = post(client, text_pdf("broker"), profile="transaction-monitoring")
    assert answer.status_code == 202


def test_the_same_bytes_again_are_the_same_job(client: TestClient) -> None:
    data = text_pdf("same")
    first, second = (post(client, data, name=name).json() for name in ("a.pdf", "b.pdf"))
    assert first["job_id"] == second["job_id"]


def test_a_refused_file_is_a_problem_with_its_code(client: TestClient) -> None:
    refused = post(client, b"")
    assert (refused.status_code, refused.json()["code"]) == (422, "empty_file")
    refused = post(client, b"x" * 200_000)
    assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
    assert refused.headers["content-type"] == "application/problem+json"


def test_an_unknown_profile_names_those_that_exist(client: TestClient) -> None:
    answer = post(client, text_pdf("x"), profile="tea-leaves")
    assert answer.status_code == 400
    assert "risk-report" in answer.json()["detail"]


def test_a_name_that_no_database_stores_is_written_in_another_way(client: TestClient) -> None:
    answer = post(client, text_pdf("odd name"), name="a\x07b\u202ec.pdf")
    assert answer.status_code == 202
    document = client.get(answer.json()["links"]["document"]).json()
    assert "\x07" not in document["name"]


def test_what_does_not_exist_is_not_found(client: TestClient) -> None:
    for path in ("/v1/jobs/job_0", "/v1/documents/doc_0", "/v1/jobs/job_0/result"):
        assert client.get(path).json()["code"] == "not_found"


def test_a_result_that_is_not_there_yet_says_where_the_job_is(client: TestClient) -> None:
    job = post(client, text_pdf("later")).json()
    answer = client.get(job["links"]["result"])
    assert answer.status_code == 404
    assert "received" in answer.json()["detail"]


def test_a_job_can_be_cancelled_once(client: TestClient) -> None:
    job = post(client, text_pdf("cancel")).json()
    for _ in range(2):
        answer = client.post(f"{job['links']['self']}/cancel")
        assert (answer.status_code, answer.json()["status"]) == (200, "cancelled")


def test_a_key_acts_for_its_tenant_alone(client: TestClient, use: Services) -> None:
    with use.database.begin() as connection:
        token = api_keys.create(connection, "other", "test")
    mine = post(client, text_pdf("mine")).json()
    other = client.get(mine["links"]["self"], headers={"Authorization": f"Bearer {token}"})
    assert other.status_code == 404
    wrong = client.get("/v1/jobs", headers={"Authorization": "Bearer docmill_wrong"})
    assert (wrong.status_code, wrong.json()["code"]) == (401, "unauthorised")


def test_keys_can_be_required(use: Services) -> None:
    strict = Services(use.settings.model_copy(update={"require_api_key": True}))
    with TestClient(make_api(strict)) as client:
        assert client.get("/v1/jobs").status_code == 401
    strict.database.dispose()


def test_the_openapi_page_needs_no_other_host(client: TestClient) -> None:
    page = client.get("/docs").text
    assert "https://" not in page
    assert client.get("/openapi.json").json()["info"]["title"] == "docmill"
