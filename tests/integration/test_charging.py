"""Money around a reading, on a real database: what is held, booked, refused or made cheaper before and after it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from docmill.codec import pack
from docmill.errors import DeadlineExceeded, EngineUnavailable, StaleAttempt
from docmill.likeness import LIKE_NOTHING
from docmill.types import Chunk, Heat, Piece, PreparedDocument, Record, Status
from inference.engine import Request
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.profile import load_profiles
from storage import ledger
from storage.blobs import prepared_key
from storage.bookkeeping import SPENDING, Entry, spent
from storage.ports import Stage
from storage.schema import events
from tests.jobs import accepted, claimed, route
from tests.parsing import tiny_tokenizer
from tests.services import services_on
from validation.examples import typed
from workers.pipeline import run
from workers.services import Services

PROFILE = load_profiles()["transaction-monitoring"]
TEXT = "Account number: ACC-100245\nTransaction amount: USD 12,000.50\nTransaction date: 15 March 2024"
GOOD = json.dumps(dict.fromkeys(PROFILE.schema["properties"]) | {"suspicious": "no", "amount": "12,000.50"})
#: Dollars per million tokens: a call of a thousand tokens costs 0.001 on the dear lane.
LANES = """
- {name: fp16, engine: stub, model: "0", precision: none, context_tokens: 4096,
   prices: {input: "1", cached: "1", output: "1"}}
- {name: fp8, engine: stub, model: "0", precision: none, context_tokens: 4096,
   prices: {input: "0.1", cached: "0.1", output: "0.1"}}
"""

Make = Callable[..., Services]


@pytest.fixture
def make(engine: Engine, tmp_path: Path) -> Iterator[Make]:
    """Services whose engine follows a script, with settings of the test's own."""
    with ExitStack() as stack:

        def made(script: StubScript, lanes: str = LANES, **given: Any) -> Services:
            (tmp_path / "lanes.yaml").write_text(lanes, "utf-8")
            fixed = {"lanes": tmp_path / "lanes.yaml", "tokenizer": tiny_tokenizer(tmp_path)}
            use = stack.enter_context(services_on(engine, tmp_path, **{**fixed, **given}))

            async def open_stub() -> StubEngine:
                return StubEngine(script, context_tokens=10**6)

            use.engine = EngineThread(open_stub)
            use.engine.start()
            stack.callback(use.engine.close)
            return use

        yield made


def waiting(use: Services, *, lane: str = "fp16", tokens: int = 30, data: bytes = b"notice") -> str:
    """A parsed document that waits to be read; `tokens` is the length that is told of each of its lines."""
    job_id = accepted(use.store, data, profile=PROFILE.name, window_s=86400)
    claim = claimed(use.store, job_id, Stage.PARSE)
    prepared = prepared_of(claim.document_id, tokens)
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    use.store.finish_parse(claim, prepared, route(Heat.COLD, lane=lane), likeness=LIKE_NOTHING)
    return job_id


def prepared_of(document_id: str, tokens: int) -> PreparedDocument:
    document = typed(TEXT)
    blocks = document.pages[0].blocks
    chunks = tuple(Chunk(block.printed.text, tokens, 1, (Piece(block.printed, 1),)) for block in blocks)
    return replace(document, document_id=document_id, chunks=chunks, tokens=tokens * len(blocks))


def book(use: Services, job_id: str) -> list[Entry]:
    """The job's entries, in books that balance."""
    with use.database.connect() as connection:
        assert ledger.check(connection) == []
        return ledger.book(connection, job_id)


def notes(use: Services, job_id: str) -> list[Mapping[str, Any]]:
    wanted = select(events.c.detail).where(events.c.job_id == job_id, events.c.kind == "cost_control")
    with use.database.connect() as connection:
        return list(connection.execute(wanted).scalars())


def wasted(entries: list[Entry]) -> set[str | None]:
    return {entry.waste for entry in entries if entry.kind in SPENDING}


def read(use: Services, job_id: str) -> Record:
    run(Stage.INFER, job_id, use)
    return use.store.record(job_id)


def test_a_reading_is_reserved_by_its_tokens_and_settled_by_what_it_used(make: Make) -> None:
    use = make(StubScript(answers=[GOOD]))
    job_id = waiting(use)
    assert read(use, job_id).status == Status.VALIDATING
    reserved, settled, refund = book(use, job_id)
    assert (reserved.kind, settled.kind, refund.kind) == ("reserve", "settle", "refund")
    assert reserved.amount_usd == -refund.amount_usd > settled.amount_usd > 0
    assert settled.amount_usd == Decimal(settled.prompt_tokens + settled.output_tokens) / 1_000_000
    assert settled.gpu_seconds >= 0


@pytest.mark.parametrize(
    ("script", "waste"),
    [
        (StubScript(answers=["not JSON"]), "unusable"),
        (StubScript(failures={0: DeadlineExceeded("late")}), "failed"),
    ],
    ids=["unusable", "failed"],
)
def test_an_attempt_that_brings_nothing_is_on_the_ledger(make: Make, script: StubScript, waste: str) -> None:
    use = make(script)
    job_id = waiting(use)
    assert read(use, job_id).status == Status.QUEUED
    entries = book(use, job_id)
    assert wasted(entries) == {waste}
    assert spent(entries) > 0


def test_an_engine_that_refuses_costs_nothing(make: Make) -> None:
    use = make(StubScript(failures={0: EngineUnavailable("overloaded")}))
    job_id = waiting(use)
    assert read(use, job_id).status == Status.QUEUED
    assert [entry.kind for entry in book(use, job_id)] == ["reserve", "refund"]


def test_a_reading_that_was_cancelled_while_it_ran_costs_what_it_used(make: Make) -> None:
    use = make(StubScript(answer=lambda request: cancelled(request)))

    def cancelled(request: Request) -> str:
        assert use.store.cancel(request.request_id.split(".")[0], tenant="acme")
        return GOOD

    job_id = waiting(use)
    assert read(use, job_id).status == Status.CANCELLED
    entries = book(use, job_id)
    assert wasted(entries) == {"cancelled"}
    assert [entry.estimated for entry in entries] == [False, True, False, True, False]
    assert spent(entries) == entries[-1].amount_usd < entries[0].amount_usd


def test_a_lane_with_a_price_for_an_hour_is_paid_by_its_time(make: Make) -> None:
    lanes = LANES.replace('output: "1"}', 'output: "1", gpu_hour: "3600"}')
    use = make(StubScript(answers=[GOOD], delay_s=0.05), lanes)
    job_id = waiting(use)
    read(use, job_id)
    settled = book(use, job_id)[1]
    assert settled.gpu_seconds >= Decimal("0.05")
    assert settled.amount_usd == settled.gpu_seconds


def test_a_call_over_the_cap_is_refused_before_it_is_made_and_the_record_says_why(make: Make) -> None:
    use = make(StubScript(answers=[GOOD]), call_cap_usd=Decimal("0.0001"))
    job_id = waiting(use, tokens=500)
    record = read(use, job_id)
    assert record.status == Status.FAILED
    assert str(record.reason).startswith("over_cost_cap: a call of")
    assert "raise the cap" in str(record.reason)
    assert book(use, job_id) == []


def test_a_tenant_may_have_a_cap_of_its_own(make: Make) -> None:
    use = make(StubScript(answers=[GOOD]), call_cap_usd=Decimal("0.0001"), call_caps_usd={"acme": Decimal(1)})
    assert read(use, waiting(use, tokens=500)).status == Status.VALIDATING


def test_parts_are_shorter_where_one_call_would_cost_too_much(make: Make) -> None:
    use = make(StubScript(), call_cap_usd=Decimal("0.0015"))
    job_id = waiting(use, tokens=450)
    assert read(use, job_id).status == Status.VALIDATING
    (note,) = notes(use, job_id)
    assert (note["action"], note["lane"], note["cap_usd"]) == ("shorter_parts", "fp16", "0.0015")
    assert note["tokens"] < note["instead_of"]
    whole = make(StubScript())
    second = waiting(whole, tokens=450, data=b"another")
    read(whole, second)
    assert notes(whole, second) == []
    # Two prompts instead of one.
    assert book(use, job_id)[1].prompt_tokens > book(whole, second)[1].prompt_tokens


def test_cold_work_goes_to_a_cheaper_lane_where_a_call_would_cost_more_than_it_should(make: Make) -> None:
    use = make(StubScript(answers=[GOOD]), call_targets_usd={"long": Decimal("0.0021")})
    lanes = [
        use.route(tokens, "risk-report", age_s=0, window_s=86400, vip=vip).lane
        for tokens, vip in ((1000, False), (3000, False), (2500, True), (3900, True))
    ]
    assert lanes == ["fp16", "fp8", "fp16", "fp8"]


def test_the_record_says_that_a_cheaper_lane_was_taken(make: Make) -> None:
    use = make(StubScript(answers=[GOOD] * 9), call_targets_usd={"short": Decimal("0.0003")})
    profiles = dict(use.profiles)
    profiles[PROFILE.name] = replace(PROFILE, lanes=("fp16", "fp8"))
    use.__dict__["profiles"] = profiles
    job_id = waiting(use, lane="fp8", tokens=100)
    read(use, job_id)
    assert [(note["action"], note["instead_of"], note["lane"]) for note in notes(use, job_id)] == [
        ("cheaper_lane", "fp16", "fp8")
    ]


def test_a_reservation_of_a_lost_claim_is_refused(make: Make) -> None:
    use = make(StubScript())
    job_id = waiting(use)
    claim = claimed(use.store, job_id, Stage.INFER)
    use.store.cancel(job_id, tenant="acme")
    with pytest.raises(StaleAttempt):
        use.store.reserve(claim, Decimal(1))
