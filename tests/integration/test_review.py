"""The review queue from a rejected reading to a decision, over PostgreSQL, the API and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text
from typer.testing import CliRunner

from docmill.codec import pack
from docmill.errors import BadCorrection, Conflict, NotFound
from docmill.likeness import LIKE_NOTHING
from docmill.types import Extraction
from inference.profile import load_profiles
from storage import api_keys
from storage import review as queue
from storage.blobs import prepared_key
from storage.ports import Stage
from storage.review import Reviewer
from tests.jobs import accepted, claimed, extraction, route
from tests.services import services_on
from validation.examples import typed
from validation.facts import facts_of
from workers import review
from workers import services as services_module
from workers.cli import main
from workers.judging import locate
from workers.pipeline import run
from workers.services import Services
from workers.settings import settings

PROFILE = load_profiles()["transaction-monitoring"]
DOCUMENT = typed(
    "Transaction notice\nAccount number: ACC-100245\nCounterparty: Harbour Trading Ltd\n"
    "Transaction amount: USD 12,000.50\nTransaction date: 15 March 2024\nThe payment was split over several days.",
    "Fees\nItem | Fee\nTransfer | 25.00\nReporting | 40.00",
)
RIGHT: dict[str, Any] = dict.fromkeys(PROFILE.schema["properties"]) | {
    "account": "ACC-100245",
    "counterparty": "Harbour Trading Ltd",
    "amount": "12,000.50",
    "currency": "USD",
    "date": "15 March 2024",
    "suspicious": "yes",
}
WRONG = RIGHT | {"amount": "12,000.51"}
ANNA = Reviewer("anna", "the notice says so", "acme")


@pytest.fixture
def use(engine: Engine, tmp_path: Path) -> Iterator[Services]:
    with services_on(engine, tmp_path, tenant="acme") as services:
        yield services


def read_as(result: dict[str, Any]) -> Extraction:
    cited = {citation.path: citation for citation in locate(result, PROFILE.schema, facts_of(DOCUMENT))}
    return replace(extraction(result), citations=tuple(cited.values()), raw=json.dumps(result))


def read_twice(use: Services, result: dict[str, Any] = WRONG, *, data: bytes = b"notice", tenant: str = "acme") -> str:
    """A job whose result the rules rejected at both readings; with a right result, one that is done."""
    job_id = accepted(use.store, data, profile=PROFILE.name, tenant=tenant, window_s=86400)
    claim = claimed(use.store, job_id, Stage.PARSE)
    prepared = replace(DOCUMENT, document_id=claim.document_id)
    use.store.finish_parse(claim, prepared, route(), likeness=LIKE_NOTHING)
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    for _ in range(2):
        if use.store.record(job_id).status == "queued":
            use.store.finish_infer(claimed(use.store, job_id, Stage.INFER), read_as(result))
            run(Stage.VALIDATE, job_id, use)
    return job_id


def rows(use: Services, sql: str) -> list[dict[str, Any]]:
    with use.database.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(sql))]


def answers(client: TestClient, job_id: str, action: str, **body: Any) -> Any:
    decision = {"action": action, "reviewer": "anna", "note": "as printed", **body}
    return client.post(f"/v1/reviews/{job_id}", json=decision)


# ---------------------------------------------------------------- the way into the queue


def test_what_the_rules_reject_twice_waits_for_a_person_and_what_they_pass_does_not(use: Services) -> None:
    wrong, right = read_twice(use), read_twice(use, RIGHT, data=b"right")
    assert use.store.record(wrong).status == "needs_review"
    assert use.store.record(right).status == "done"
    assert [row["job_id"] for row in rows(use, "SELECT * FROM v_reviews WHERE decision IS NULL")] == [wrong]
    assert rows(use, "SELECT outcome FROM attempts WHERE stage = 'validate' AND outcome = 'rejected'") != []


def test_a_policy_file_may_let_a_rejected_result_fail_without_a_person(use: Services, tmp_path: Path) -> None:
    strict = tmp_path / "policy.yaml"
    strict.write_text("default: {pass: [accept], flag: [accept], review: [review], reject: [reject]}", "utf-8")
    use = Services(use.settings.model_copy(update={"policy": strict}))
    job_id = read_twice(use)
    record = use.store.record(job_id)
    assert (record.status, record.result) == ("failed", None)
    assert "number-ungrounded" in (record.reason or "")
    use.database.dispose()


# ---------------------------------------------------------------- looking


def test_a_review_shows_each_value_with_its_evidence(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    (waiting,) = client.get("/v1/reviews").json()
    assert (waiting["job_id"], waiting["verdict"], waiting["decision"]) == (job_id, "reject", None)
    shown = client.get(waiting["links"]["self"]).json()
    by_path = {one["path"]: one for one in shown["evidence"]}
    account = by_path["/account"]
    assert (account["printed"], account["page"], account["version"]) == ("ACC-100245", 1, 1)
    assert account["surrounding"] == "Account number: ACC-100245"
    assert [found["rule"] for found in by_path["/amount"]["findings"]] == ["number-ungrounded"]
    assert by_path["/amount"]["page"] is None


def test_another_tenant_sees_no_review_and_decides_none(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    with use.database.begin() as connection:
        token = api_keys.create(connection, "other", "test")
    other = {"Authorization": f"Bearer {token}"}
    assert client.get("/v1/reviews", headers=other).json() == []
    assert client.get(f"/v1/reviews/{job_id}", headers=other).status_code == 404
    body = {"action": "accept", "reviewer": "eve"}
    assert client.post(f"/v1/reviews/{job_id}", json=body, headers=other).status_code == 404
    assert use.store.record(job_id).status == "needs_review"


def test_a_job_that_never_needed_a_review_has_none(client: TestClient, use: Services) -> None:
    answer = client.get(f"/v1/reviews/{read_twice(use, RIGHT)}")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "reopen" in answer.json()["detail"]
    assert client.get("/v1/reviews/job_0").status_code == 404


# ---------------------------------------------------------------- deciding


def test_accepting_ends_the_job_and_names_who_answers_for_it(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    answer = answers(client, job_id, "accept")
    assert (answer.status_code, answer.json()["decision"], answer.json()["status"]) == (200, "accepted", "done")
    assert client.get("/v1/reviews").json() == []
    assert {row["reviewer"] for row in rows(use, "SELECT * FROM v_fields")} == {"anna"}
    assert use.store.record(job_id).reason == "accepted by anna: as printed"


def test_a_rejected_result_is_kept_and_is_no_result_any_more(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    assert answers(client, job_id, "reject").json()["status"] == "failed"
    assert use.store.record(job_id).result is None
    assert rows(use, "SELECT * FROM v_fields") == []
    assert rows(use, "SELECT result, status FROM v_results") == [{"result": None, "status": "failed"}]
    assert client.get(f"/v1/jobs/{job_id}/result").status_code == 404
    kept = client.get(f"/v1/reviews/{job_id}").json()
    assert (kept["decision"], kept["result"], kept["evidence"]) == ("rejected", WRONG, [])
    assert len(rows(use, "SELECT * FROM v_field_versions")) == len(WRONG)


def test_a_rejected_job_that_is_read_again_goes_on_with_the_next_version(use: Services) -> None:
    job_id = read_twice(use)
    review.reject(job_id, ANNA, use)
    with use.database.begin() as connection:
        connection.execute(text("UPDATE jobs SET status = 'queued', finished_at = NULL"))
    use.store.finish_infer(claimed(use.store, job_id, Stage.INFER), read_as(RIGHT))
    run(Stage.VALIDATE, job_id, use)
    assert (use.store.record(job_id).status, use.store.record(job_id).result) == ("done", RIGHT)
    assert {row["version"] for row in rows(use, "SELECT version FROM v_fields")} == {2}


def test_a_correction_is_a_new_version_with_its_place_and_the_old_one_is_kept(
    client: TestClient, use: Services
) -> None:
    job_id = read_twice(use)
    answer = answers(client, job_id, "correct", corrections=[{"path": "/amount", "value": "12,000.50"}])
    assert (answer.status_code, answer.json()["decision"]) == (200, "corrected")
    assert answer.json()["result"] == RIGHT
    evidence = {one["path"]: one for one in answer.json()["evidence"]}
    assert list(evidence) == [f"/{name}" for name in RIGHT]
    assert (evidence["/amount"]["printed"], evidence["/amount"]["findings"]) == ("12,000.50", [])
    (amount,) = rows(use, "SELECT * FROM v_fields WHERE path = '/amount'")
    assert (str(amount["value"]), amount["page"], amount["version"], amount["reviewer"]) == ("12000.50", 1, 2, "anna")
    history = rows(use, "SELECT * FROM v_field_versions WHERE path = '/amount' ORDER BY version")
    assert [(one["text"], one["valid_until"] is None) for one in history] == [("12,000.51", False), ("12,000.50", True)]
    assert (history[1]["note"], history[0]["valid_until"]) == ("as printed", history[1]["valid_from"])
    assert {row["version"] for row in rows(use, "SELECT * FROM v_fields WHERE path <> '/amount'")} == {1}
    assert rows(use, "SELECT verdict FROM v_results") == [{"verdict": "pass"}]


def test_a_value_that_the_document_does_not_print_must_be_confirmed(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    other = [{"path": "/amount", "value": "99,999.00"}]
    refused = answers(client, job_id, "correct", corrections=other)
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_correction")
    assert "number-ungrounded" in refused.json()["detail"] or "not in the document" in refused.json()["detail"]
    assert use.store.record(job_id).status == "needs_review"
    assert answers(client, job_id, "correct", corrections=other, confirm=True).status_code == 200
    (amount,) = rows(use, "SELECT * FROM v_fields WHERE path = '/amount'")
    assert (amount["text"], amount["page"], amount["verdict"]) == ("99,999.00", None, "reject")


@pytest.mark.parametrize(
    ("corrections", "reason"),
    [
        ({"/amount": "12,000.51"}, "change nothing"),
        ({"/suspicious": "perhaps"}, "not of profile"),
        ({"/nothing": "x"}, "not of profile"),
        ({"/amount/0": "x"}, "nothing at"),
    ],
)
def test_a_correction_that_cannot_be_taken_changes_nothing(
    use: Services, corrections: dict[str, Any], reason: str
) -> None:
    job_id = read_twice(use)
    with pytest.raises(BadCorrection, match=reason):
        review.correct(job_id, ANNA, corrections, use, confirmed=True)
    assert use.store.record(job_id).result == WRONG


def test_the_body_of_a_decision_is_checked(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    for action, more in (("reject", {"note": " "}), ("correct", {}), ("shrug", {}), ("accept", {"reviewer": ""})):
        assert answers(client, job_id, action, **more).status_code == 422
    assert answers(client, job_id, "accept", reviewer="  ").status_code == 400
    assert use.store.record(job_id).status == "needs_review"


def test_every_act_is_an_event_by_whom_and_when(use: Services) -> None:
    job_id = read_twice(use)
    review.correct(job_id, ANNA, {"/amount": "12,000.50"}, use)
    review.reopen(job_id, replace(ANNA, name="boss", note="a spot check"), use)
    review.accept(job_id, replace(ANNA, name="boss", note=""), use)
    events = rows(use, "SELECT kind, at, tenant, detail FROM events WHERE kind LIKE 'review%' ORDER BY event_id")
    told = [(one["kind"], one["detail"]["reviewer"]) for one in events]
    assert told == [("review_corrected", "anna"), ("review_reopened", "boss"), ("review_accepted", "boss")]
    assert events[0]["detail"]["changes"] == [{"path": "/amount", "from": "12,000.51", "to": "12,000.50"}]
    assert all(one["tenant"] == "acme" and one["at"] for one in events)


def test_a_value_may_be_corrected_again_after_it_was_opened_again(use: Services) -> None:
    job_id = read_twice(use)
    for value in ("12,000.50", "12,000.51", "12,000.50"):
        review.correct(job_id, ANNA, {"/amount": value}, use, confirmed=True)
        review.reopen(job_id, ANNA, use)
    history = rows(use, "SELECT version, text FROM v_field_versions WHERE path = '/amount' ORDER BY version")
    assert [row["version"] for row in history] == [1, 2, 3, 4]
    assert [row["text"] for row in rows(use, "SELECT text FROM v_fields WHERE path = '/amount'")] == ["12,000.50"]


# ---------------------------------------------------------------- two at once


def test_of_two_reviewers_the_second_gets_a_conflict_that_names_the_first(client: TestClient, use: Services) -> None:
    job_id = read_twice(use)
    assert answers(client, job_id, "accept").status_code == 200
    for action, more in (
        ("accept", {}),
        ("reject", {}),
        ("correct", {"corrections": [{"path": "/amount", "value": "12,000.50"}]}),
    ):
        second = answers(client, job_id, action, reviewer="bert", **more)
        assert (second.status_code, second.json()["code"]) == (409, "conflict")
        assert "accepted by anna" in second.json()["detail"]
    assert use.store.record(job_id).result == WRONG


def test_of_many_reviewers_at_once_one_decides_and_nothing_is_double(use: Services) -> None:
    job_id = read_twice(use)

    def act(number: int) -> str:
        by = Reviewer(f"r{number}", "because", "acme")
        try:
            if number % 3 == 0:
                review.accept(job_id, by, use)
            elif number % 3 == 1:
                review.correct(job_id, by, {"/amount": "12,000.50"}, use)
            else:
                review.reject(job_id, by, use)
        except Conflict:
            return "conflict"
        return by.name

    with ThreadPoolExecutor(9) as threads:
        outcomes = list(threads.map(act, range(9)))
    (winner,) = [name for name in outcomes if name != "conflict"]
    assert [row["reviewer"] for row in rows(use, "SELECT reviewer FROM reviews")] == [winner]
    assert len(rows(use, "SELECT 1 FROM events WHERE kind ~ '^review_'")) == 1
    twice = "SELECT path FROM fields WHERE superseded_at IS NULL GROUP BY path HAVING count(*) > 1"
    assert rows(use, twice) == []


def test_a_correction_made_from_an_older_look_is_a_conflict(use: Services) -> None:
    job_id = read_twice(use)
    with use.database.begin() as connection:
        seen = queue.review_of(connection, job_id)
    review.accept(job_id, ANNA, use)
    review.reopen(job_id, ANNA, use)
    with pytest.raises(Conflict, match="meanwhile"), use.database.begin() as connection:
        queue.accept(connection, seen, ANNA)


def test_only_what_is_done_is_opened_again(use: Services) -> None:
    job_id = read_twice(use)
    with pytest.raises(Conflict, match="not done"):
        review.reopen(job_id, ANNA, use)
    with pytest.raises(NotFound):
        review.reopen(job_id, replace(ANNA, tenant="other"), use)


# ---------------------------------------------------------------- the command line


@pytest.fixture
def command(use: Services, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    for name in ("database_url", "blob_url", "home"):
        monkeypatch.setenv(f"DOCMILL_{name.upper()}", str(getattr(use.settings, name)))
    monkeypatch.chdir(tmp_path)
    settings.cache_clear()
    yield lambda *arguments: CliRunner().invoke(main, ["review", *arguments])
    for made in (services_module._made.pop(number) for number in list(services_module._made)):
        made.database.dispose()
    settings.cache_clear()


def test_the_queue_is_worked_off_on_the_command_line(command: Any, use: Services, tmp_path: Path) -> None:
    job_id, other = read_twice(use), read_twice(use, data=b"other")
    listed = [json.loads(line) for line in command("list", "--json").stdout.splitlines()]
    assert [one["job_id"] for one in listed] == [job_id, other]
    shown = command("show", job_id).stdout
    assert "“ACC-100245” on page 1 at (" in shown
    assert "number-ungrounded" in shown
    fixed = command("correct", job_id, "amount=12,000.50", "--by", "anna", "--note", "page 1")
    assert fixed.exit_code == 0, fixed.output
    refused = command("accept", job_id, "--by", "bert")
    assert isinstance(refused.exception, Conflict)
    assert command("reject", other, "--by", "bert", "--note", "illegible").exit_code == 0
    assert json.loads(command("show", job_id, "--json").stdout)["decision"] == "corrected"
    assert "0 results wait" in command("list").stdout


def test_corrections_become_examples_that_the_rules_are_tested_with(
    command: Any, use: Services, tmp_path: Path
) -> None:
    review.correct(read_twice(use), ANNA, {"/amount": "12,000.50"}, use)
    review.correct(read_twice(use, RIGHT | {"suspicious": "no"} | {"amount": "1"}, data=b"b"), ANNA, RIGHT, use)
    file = tmp_path / "corrections.yaml"
    assert command("examples", "--profile", PROFILE.name, "--out", str(file)).exit_code == 0
    tested = CliRunner().invoke(main, ["rules", "test", str(file)])
    assert tested.exit_code == 0, tested.output
    assert "4 of 4 examples hold" in tested.stdout
    broken = file.read_text("utf-8").replace("- number-ungrounded", "- date-ungrounded")
    file.write_text(broken, "utf-8")
    tested = CliRunner().invoke(main, ["rules", "test", str(file)])
    assert (tested.exit_code, "date-ungrounded" in tested.stdout) == (1, True)
