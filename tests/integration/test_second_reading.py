"""Documents that are read twice, on the best lane and told what was wrong, and documents that are not read at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine

from docmill.codec import pack
from docmill.likeness import LIKE_NOTHING
from docmill.types import Chunk, Piece, Record
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.profile import load_profiles
from preprocess.dedup import likeness_of
from storage.blobs import prepared_key
from storage.ports import Stage
from tests.jobs import accepted, claimed, extraction, route
from tests.parsing import tiny_tokenizer
from tests.services import services_on
from validation.examples import typed
from workers.pipeline import run
from workers.services import Services

PROFILE = load_profiles()["transaction-monitoring"]
TEXT = "Account number: ACC-100245\nTransaction amount: USD 12,000.50\nTransaction date: 15 March 2024"
DOCUMENT = typed(TEXT)
LANES = """
- {name: small, engine: stub, model: "0", precision: none, context_tokens: 4096, quality: 0}
- {name: large, engine: stub, model: "0", precision: none, context_tokens: 4096, quality: 2}
- {name: middle, engine: stub, model: "0", precision: none, context_tokens: 4096, quality: 1}
"""
WRONG = dict.fromkeys(PROFILE.schema["properties"]) | {"suspicious": "no", "amount": "99.00"}
RIGHT = WRONG | {"amount": "12,000.50"}


@pytest.fixture
def stub() -> StubEngine:
    return StubEngine(StubScript(answers=[json.dumps(RIGHT)]))


@pytest.fixture
def use(engine: Engine, tmp_path: Path, stub: StubEngine) -> Iterator[Services]:
    (tmp_path / "lanes.yaml").write_text(LANES, "utf-8")

    async def open_stub() -> StubEngine:
        return stub

    lanes, tokenizer = tmp_path / "lanes.yaml", tiny_tokenizer(tmp_path)
    with services_on(engine, tmp_path, lanes=lanes, tokenizer=tokenizer) as services:
        services.engine = EngineThread(open_stub)
        services.engine.start()
        yield services
        services.engine.close()


def test_a_rejected_reading_is_read_again_on_the_best_lane_and_told_what_was_wrong(
    use: Services, stub: StubEngine
) -> None:
    job_id = accepted(use.store, b"notice", profile=PROFILE.name, window_s=86400)
    claim = claimed(use.store, job_id, Stage.PARSE)
    chunks = tuple(Chunk(block.printed.text, 10, 1, (Piece(block.printed, 1),)) for block in DOCUMENT.pages[0].blocks)
    prepared = replace(DOCUMENT, document_id=claim.document_id, chunks=chunks, tokens=30)
    use.store.finish_parse(claim, prepared, route(lane="small"), likeness=LIKE_NOTHING)
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    first = replace(extraction(WRONG), raw=json.dumps(WRONG))
    use.store.finish_infer(claimed(use.store, job_id, Stage.INFER), first)

    run(Stage.VALIDATE, job_id, use)
    waiting = use.store.record(job_id)
    assert (waiting.status, waiting.lane) == ("queued", "large")

    run(Stage.INFER, job_id, use)
    (request,) = stub.requests
    assert "An earlier answer was rejected" in request.user
    assert "/amount: the number 99.00 is not in the document" in request.user
    assert request.user.index("An earlier answer") > request.user.index("Transaction date")

    run(Stage.VALIDATE, job_id, use)
    ended = use.store.record(job_id)
    assert (ended.status, ended.result) == ("done", RIGHT)


def read(use: Services, data: bytes, text: str) -> Record:
    """A document of this text through the stages."""
    job_id = accepted(use.store, data, profile=PROFILE.name, window_s=86400)
    claim = claimed(use.store, job_id, Stage.PARSE)
    pages = typed(text).pages
    chunks = tuple(Chunk(block.printed.text, 10, 1, (Piece(block.printed, 1),)) for block in pages[0].blocks)
    prepared = replace(DOCUMENT, document_id=claim.document_id, pages=pages, chunks=chunks, tokens=30)
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    use.store.finish_parse(claim, prepared, route(lane="small"), likeness=likeness_of(text))
    run(Stage.INFER, job_id, use)
    run(Stage.VALIDATE, job_id, use)
    return use.store.record(job_id)


def test_of_two_documents_with_the_same_text_the_model_reads_one(use: Services, stub: StubEngine) -> None:
    first, second = read(use, b"1", TEXT), read(use, b"2", TEXT + ".")
    assert [first.status, second.status] == ["done", "done"]
    assert first.result == second.result == RIGHT
    assert len(stub.requests) == 1


def test_a_document_with_another_amount_is_read_for_itself(use: Services, stub: StubEngine) -> None:
    read(use, b"1", TEXT)
    read(use, b"2", TEXT.replace("12,000.50", "12,000.51"))
    assert len(stub.requests) == 2
