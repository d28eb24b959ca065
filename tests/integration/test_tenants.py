"""Tenants at the doors: what a key may do, what a quota leaves, what the audit keeps."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from docmill.errors import QuotaExceeded, RateLimited
from docmill.types import Source
from storage import api_keys, tenants
from storage.api_keys import Scope
from storage.audit import Entry, entries
from storage.jobs import JobStore
from storage.tenants import Quota
from tests.conftest import valkey
from tests.jobs import accepted
from tests.pdfs import text_pdf
from tests.services import NO_BROKER, services_on
from workers import cli, services
from workers.intake import submit
from workers.quotas import Quotas
from workers.services import Services


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    yield from valkey(tmp_path_factory.mktemp("valkey"))


@pytest.fixture
def use(engine: Engine, redis_url: str, tmp_path: Path) -> Iterator[Services]:
    with services_on(engine, tmp_path, broker_url=redis_url, require_api_key=True) as made:
        made.redis.flushall()
        yield made
        made.redis.close()


def key(use: Services, tenant: str, *scopes: Scope, label: str = "test") -> dict[str, str]:
    """The header of a new key."""
    with use.database.begin() as connection:
        token = api_keys.create(connection, tenant, label, scopes=scopes or api_keys.USUAL)
    return {"Authorization": f"Bearer {token}"}


def limit(use: Services, tenant: str, **limits: int | Decimal) -> None:
    with use.database.begin() as connection:
        tenants.set_quota(connection, tenant, limits)


def post(client: TestClient, headers: dict[str, str], words: str) -> Response:
    files = {"file": ("a.pdf", text_pdf(words), "application/pdf")}
    return client.post("/v1/documents", files=files, data={"profile": "risk-report"}, headers=headers)


def audit(use: Services, tenant: str) -> list[Entry]:
    with use.database.begin() as connection:
        return list(entries(connection, tenant=tenant))


# ---------------------------------------------------------------- keys


def test_a_key_for_reading_cannot_submit(client: TestClient, use: Services) -> None:
    reader = key(use, "acme", Scope.READ)
    assert client.get("/v1/jobs", headers=reader).status_code == 200
    refused = post(client, reader, "one")
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "submit" in refused.json()["detail"]


def test_a_decision_needs_a_key_for_reviewing(client: TestClient, use: Services) -> None:
    decision = {"action": "accept", "reviewer": "Li"}
    answers = [
        client.post("/v1/reviews/job_0", json=decision, headers=key(use, "acme", scope)).status_code
        for scope in (Scope.SUBMIT, Scope.REVIEW)
    ]
    assert answers == [403, 404]


def test_a_service_that_sends_passwords_only_sends_the_key_as_one(client: TestClient, use: Services) -> None:
    token = key(use, "acme")["Authorization"].removeprefix("Bearer ")
    basic = base64.b64encode(f"anything:{token}".encode()).decode()
    assert client.get("/v1/jobs", headers={"Authorization": f"Basic {basic}"}).status_code == 200


def test_every_answer_names_its_request(client: TestClient, use: Services) -> None:
    mine = key(use, "acme")
    assert client.get("/v1/jobs", headers={**mine, "X-Request-ID": "abc-1"}).headers["x-request-id"] == "abc-1"
    odd = client.get("/v1/jobs", headers={**mine, "X-Request-ID": "a b\tc"}).headers["x-request-id"]
    assert odd.startswith("req_")
    assert client.get("/v1/jobs").headers["x-request-id"].startswith("req_")


# ---------------------------------------------------------------- quotas


def test_one_request_too_many_is_told_when_to_come_again(client: TestClient, use: Services) -> None:
    mine = key(use, "acme")
    limit(use, "acme", requests_per_minute=3)
    answers = [client.get("/v1/jobs", headers=mine) for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    late = answers[-1]
    assert 1 <= int(late.headers["Retry-After"]) <= 60
    error = late.json()["error"]
    assert (error["type"], error["code"], error["param"]) == ("rate_limit_error", "rate_limit_exceeded", None)
    assert "acme" in error["message"]


def test_one_tenant_does_not_use_up_the_requests_of_another(client: TestClient, use: Services) -> None:
    for tenant in ("acme", "other"):
        limit(use, tenant, requests_per_minute=1)
    answers = [client.get("/v1/jobs", headers=key(use, tenant)).status_code for tenant in ("acme", "acme", "other")]
    assert answers == [200, 429, 200]


def test_money_that_is_used_up_refuses_work_until_tomorrow(
    client: TestClient, use: Services, spent: Callable[..., None]
) -> None:
    mine = key(use, "acme")
    limit(use, "acme", usd_per_day=Decimal("0.50"))
    spent("acme", usd="0.5")
    refused = post(client, mine, "two")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "insufficient_quota")
    assert refused.headers["x-should-retry"] == "false"
    assert 1 <= int(refused.headers["Retry-After"]) <= 86_400
    assert client.get("/v1/jobs", headers=mine).status_code == 200


def test_tokens_that_are_used_up_refuse_work_at_every_door(use: Services, spent: Callable[..., None]) -> None:
    limit(use, "acme", tokens_per_day=1000)
    spent("acme", tokens=1000)
    for source in Source:
        with pytest.raises(QuotaExceeded, match="tokens per day"):
            submit(text_pdf("three"), name="a", tenant="acme", profile_name="risk-report", source=source, use=use)


def test_files_of_the_command_line_count_as_requests(use: Services) -> None:
    limit(use, "acme", requests_per_minute=1)
    arguments: dict[str, Any] = {"name": "a", "tenant": "acme", "profile_name": "risk-report", "source": Source.CLI}
    submit(text_pdf("four"), use=use, **arguments)
    with pytest.raises(RateLimited):
        submit(text_pdf("five"), use=use, **arguments)


@pytest.fixture
def spent(use: Services) -> Callable[..., None]:
    """Puts an entry on the ledger, as a finished reading does."""

    def put(tenant: str, *, usd: str = "0", tokens: int = 0, at: datetime | None = None) -> None:
        job_id = accepted(JobStore(use.database), f"{tenant} {usd} {tokens} {at}".encode(), tenant=tenant)
        with use.database.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO ledger (at, tenant, job_id, attempt, kind, profile, amount_usd, prompt_tokens) "
                    "VALUES (coalesce(:at, now()), :tenant, :job, 1, 'settle', 'p', :usd, :tokens)"
                ),
                {"at": at, "tenant": tenant, "job": job_id, "usd": Decimal(usd), "tokens": tokens},
            )

    return put


def test_a_day_and_a_month_begin_at_midnight_of_utc(use: Services, spent: Callable[..., None]) -> None:
    now = datetime(2030, 5, 31, 23, 59, tzinfo=UTC)
    spent("acme", usd="1", at=now - timedelta(days=1))
    spent("acme", usd="2", at=now - timedelta(days=31))
    quotas = Quotas(use.database, use.settings.broker_url, Quota(), clock=lambda: now)
    assert (quotas.used_today("acme").usd, quotas.used_this_month("acme").usd) == (0, 1)
    limit(use, "acme", usd_per_month=Decimal(1))
    with pytest.raises(QuotaExceeded, match="go on in 60 s"):
        quotas.check_spending("acme")


def test_a_tenant_without_a_quota_of_its_own_has_that_of_the_settings(use: Services) -> None:
    usual = Quota(requests_per_minute=5, tokens_per_day=7)
    limit(use, "acme", requests_per_minute=0)
    quotas = Quotas(use.database, use.settings.broker_url, usual)
    assert quotas.quota("acme") == Quota(requests_per_minute=0, tokens_per_day=7)
    assert quotas.quota("unknown") == usual


def test_while_redis_is_away_requests_are_let_through(use: Services) -> None:
    limit(use, "acme", requests_per_minute=1)
    quotas = Quotas(use.database, NO_BROKER, Quota())
    for _ in range(3):
        quotas.count_request("acme")


# ---------------------------------------------------------------- audit


def test_a_call_that_changes_something_is_written_down_and_one_that_reads_is_not(
    client: TestClient, use: Services
) -> None:
    mine = key(use, "acme", label="importer")
    answer = post(client, mine, "six")
    client.get("/v1/jobs", headers=mine)
    (entry,) = audit(use, "acme")
    assert (entry.kind, entry.actor, entry.tenant) == ("call", "key:importer", "acme")
    assert entry.detail == {
        "method": "POST",
        "path": "/v1/documents",
        "request_id": answer.headers["x-request-id"],
        "key_id": api_keys.key_id_of(mine["Authorization"].removeprefix("Bearer ")),
    }


def test_a_call_that_was_not_carried_out_is_followed_by_its_status(client: TestClient, use: Services) -> None:
    client.post("/v1/jobs/job_0/cancel", headers=key(use, "acme"))
    refused, call = audit(use, "acme")
    assert (call.kind, refused.kind, refused.detail["status"]) == ("call", "call_refused", 404)
    assert call.detail["request_id"] == refused.detail["request_id"]


def test_an_administrator_reads_the_audit_of_its_own_tenant_alone(client: TestClient, use: Services) -> None:
    for tenant in ("acme", "other"):
        post(client, key(use, tenant), "seven")
    admin = key(use, "acme", Scope.ADMIN)
    shown = client.get("/v1/audit", headers=admin).json()
    assert [act["detail"]["path"] for act in shown] == ["/v1/documents"]
    assert client.get("/v1/audit", params={"before": shown[0]["event_id"]}, headers=admin).json() == []
    assert client.get("/v1/audit", headers=key(use, "acme")).status_code == 403


@pytest.mark.parametrize("statement", ["UPDATE events SET actor = 'nobody'", "DELETE FROM events"])
def test_the_database_refuses_to_rewrite_the_audit(client: TestClient, use: Services, statement: str) -> None:
    post(client, key(use, "acme"), "eight")
    with pytest.raises(DBAPIError, match="append-only"), use.database.begin() as connection:
        connection.execute(text(statement))


# ---------------------------------------------------------------- the command line


@contextmanager
def on_command_line(use: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Runs `docmill` in this process on this test's database."""
    monkeypatch.setattr(cli, "settings", lambda: use.settings)
    monkeypatch.setattr(cli, "use_running_stack", lambda: None)
    monkeypatch.setattr(services, "services", lambda: use)

    def run(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli.main, words)
        assert done.exit_code == code, done.output
        return done.output

    yield run


def test_keys_are_made_listed_and_revoked_by_command(
    client: TestClient, use: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_command_line(use, monkeypatch) as docmill:
        token = docmill("keys", "create", "acme", "--label", "importer", "--scope", "read", "--expires", "90d").strip()
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/v1/jobs", headers=headers).status_code == 200
        shown = docmill("keys", "list")
        assert api_keys.key_id_of(token) in shown and "importer" in shown and token not in shown
        docmill("keys", "revoke", api_keys.key_id_of(token))
        assert client.get("/v1/jobs", headers=headers).status_code == 401
        docmill("keys", "revoke", api_keys.key_id_of(token), code=1)
        acts = docmill("audit", "--tenant", "acme")
    assert "key_created" in acts and "key_revoked" in acts and token not in acts


def test_quotas_are_set_and_taken_back_by_command(use: Services, monkeypatch: pytest.MonkeyPatch) -> None:
    with on_command_line(use, monkeypatch) as docmill:
        docmill("tenants", "set", "acme", "--requests-per-minute", "60", "--usd-per-month", "12.50")
        with use.database.begin() as connection:
            assert tenants.quota(connection, "acme") == Quota(60, None, None, Decimal("12.5"))
        assert "12.5" in docmill("tenants", "list")
        docmill("tenants", "set", "acme", "--usd-per-month", "default")
        docmill("tenants", "set", "acme", "--usd-per-day", "a lot", code=2)
        with use.database.begin() as connection:
            assert tenants.quota(connection, "acme") == Quota(60, None, None, None)
        assert "tenant_set" in docmill("audit")
