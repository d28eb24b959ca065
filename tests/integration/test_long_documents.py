"""A long document through the stages: its parts, what a failed attempt leaves for the next, what is left out."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from docmill.codec import pack
from docmill.errors import EngineUnavailable
from docmill.likeness import LIKE_NOTHING
from docmill.types import Outcome, PreparedDocument, Status
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.profile import load_profiles
from inference.prompt import overhead
from preprocess.tokens import counter
from storage import ledger
from storage.blobs import prepared_key
from storage.ports import Stage
from tests.jobs import accepted, claimed, route
from tests.pages import paragraph, prepared
from tests.parsing import tiny_tokenizer
from tests.services import services_on
from workers.pipeline import run
from workers.services import Services

PROFILE = load_profiles()["transaction-monitoring"]
ROOM = 150
AMOUNTS = ("1,001.50", "2,002.50", "3,003.50")
WITHIN_S = 30.0


def report() -> PreparedDocument:
    """Three pages; each fills a part and prints one amount."""
    filler = "Nothing of note was found by the auditors here. " * 10
    return prepared(
        [[paragraph(f"Transaction amount: USD {amount}. {filler}", page)] for page, amount in enumerate(AMOUNTS, 1)]
    )


def answer(amount: str | None) -> str:
    return json.dumps(dict.fromkeys(PROFILE.schema["properties"]) | {"suspicious": "no", "amount": amount})


ANSWERS = tuple(answer(amount) for amount in AMOUNTS)


@pytest.fixture
def use(engine: Engine, tmp_path: Path) -> Iterator[Services]:
    tokenizer = tiny_tokenizer(tmp_path)
    beside = overhead(PROFILE, lambda text: counter(tokenizer)([text])[0])
    lane = {"name": "one", "engine": "stub", "model": "0", "precision": "none", "max_num_seqs": 1}
    lane["context_tokens"] = beside + PROFILE.max_output_tokens + ROOM
    (tmp_path / "lanes.yaml").write_text(json.dumps([lane]), "utf-8")
    with services_on(engine, tmp_path, lanes=tmp_path / "lanes.yaml", tokenizer=tokenizer) as services:
        yield services


def queued(use: Services, document: PreparedDocument) -> str:
    """A job that waits to be read."""
    job_id = accepted(use.store, b"long", profile=PROFILE.name, window_s=86400)
    claim = claimed(use.store, job_id, Stage.PARSE)
    own = replace(document, document_id=claim.document_id)
    use.blobs.put(prepared_key(claim.document_id), pack(own))
    use.store.finish_parse(claim, own, route(lane="one"), likeness=LIKE_NOTHING)
    return job_id


def read(use: Services, job_id: str, script: StubScript, until: Status) -> StubEngine:
    """Try to read the job on a new engine until it is there: after a failure it waits a moment first."""
    stub = StubEngine(script, context_tokens=100_000)

    async def open_stub() -> StubEngine:
        return stub

    use.engine = EngineThread(open_stub)
    use.engine.start()
    end = time.monotonic() + WITHIN_S
    while not stub.requests or use.store.record(job_id).status == Status.RUNNING:
        run(Stage.INFER, job_id, use)
        assert time.monotonic() < end
    use.engine.close()
    assert use.store.record(job_id).status == until
    return stub


def pages_of(stub: StubEngine) -> list[str]:
    return [next(amount for amount in AMOUNTS if amount in request.user) for request in stub.requests]


def money(use: Services, job_id: str) -> Any:
    """Prompt tokens by attempt, and whether the books are balanced."""
    with use.database.connect() as connection:
        book = ledger.book(connection, job_id)
        assert ledger.check(connection) == []
    return {entry.attempt: entry.prompt_tokens for entry in book if entry.prompt_tokens}


def test_after_an_engine_that_went_away_only_the_missing_parts_are_read_and_paid(use: Services) -> None:
    job_id = queued(use, report())
    gone = StubScript(answers=ANSWERS[:2], failures={2: EngineUnavailable("the engine is gone")})
    first = read(use, job_id, gone, Status.QUEUED)
    assert pages_of(first) == list(AMOUNTS)
    second = read(use, job_id, StubScript(answers=ANSWERS[2:]), Status.VALIDATING)
    assert pages_of(second) == [AMOUNTS[2]]
    paid = money(use, job_id)
    assert len(paid) == 2
    assert sum(paid.values()) == sum(len_of(request) for request in (*first.requests[:2], *second.requests))


def len_of(request: Any) -> int:
    return -(-len(request.system) // 4) + -(-len(request.user) // 4)


def test_one_unusable_part_is_read_again_alone(use: Services) -> None:
    job_id = queued(use, report())
    read(use, job_id, StubScript(answers=(ANSWERS[0], "not json", ANSWERS[2])), Status.QUEUED)
    second = read(use, job_id, StubScript(answers=ANSWERS[1:2]), Status.VALIDATING)
    assert pages_of(second) == [AMOUNTS[1]]
    assert second.requests[0].seed == 1


def test_parts_that_disagree_are_a_finding_that_an_analyst_sees(use: Services) -> None:
    job_id = queued(use, report())
    read(use, job_id, StubScript(answers=ANSWERS), Status.VALIDATING)
    run(Stage.VALIDATE, job_id, use)
    (finding,) = [one for one in use.store.record(job_id).findings if one.rule == "parts-disagree"]
    assert (finding.path, finding.outcome) == ("/amount", Outcome.REVIEW)
    assert all(amount in finding.message for amount in AMOUNTS)


def test_what_a_budget_leaves_out_is_a_finding_that_an_analyst_sees(use: Services) -> None:
    use.__dict__["profiles"] = {PROFILE.name: replace(PROFILE, document_tokens=120, critical_terms=())}
    job_id = queued(use, report())
    stub = read(use, job_id, StubScript(answers=(ANSWERS[0],) * 3), Status.VALIDATING)
    assert "[...]" in "".join(request.user for request in stub.requests) or len(stub.requests) == 1
    run(Stage.VALIDATE, job_id, use)
    (finding,) = [one for one in use.store.record(job_id).findings if one.rule == "text-left-out"]
    assert "tokens of text" in finding.message


def test_answers_get_the_room_that_they_usually_need(use: Services) -> None:
    job_id = queued(use, report())
    roomy = read(use, job_id, StubScript(answers=ANSWERS), Status.VALIDATING)
    assert {request.max_tokens for request in roomy.requests} == {PROFILE.max_output_tokens}
    usual = use.parts.usual_answer(PROFILE.name, "1", route().length_class)
    assert (usual.readings, usual.tokens) == (1, -(-len(ANSWERS[0]) // 4))
