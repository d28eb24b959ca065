"""Reading parts side by side: every answer is checked, merged, cited and paid for."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from docmill.errors import (
    EmptyOutput,
    EngineDead,
    EngineUnavailable,
    InvalidOutput,
    LoopingOutput,
    OutputTruncated,
    StaleAttempt,
)
from docmill.types import Extraction, Outcome, Part
from inference.cost import Prices
from inference.engines.stub import StubEngine, StubScript
from inference.extract import ExtractConfig, extract, request_id
from inference.profile import load_profiles
from tests.reading import CHINESE, ENGLISH, part_of

PROFILES = load_profiles()
TRANSACTION = PROFILES["transaction-monitoring"]
RISK = PROFILES["risk-report"]


#: An answer that does not end and does not repeat itself.
ENDLESS = " ".join(map(str, range(600)))


def read(*parts: Part, script: StubScript | None = None, profile: Any = TRANSACTION, **job: Any) -> Extraction:
    engine = StubEngine(script)
    return asyncio.run(extract(parts, profile, engine, ExtractConfig("job", **job)))


def transaction(**fields: Any) -> str:
    answer = dict.fromkeys(TRANSACTION.schema["properties"]) | {"suspicious": "no"} | fields
    return json.dumps(answer, ensure_ascii=False)


def answering(*answers: str) -> StubScript:
    return StubScript(answers=answers)


def test_every_grounded_value_of_a_result_is_cited_with_its_box() -> None:
    extraction = read(part_of(*ENGLISH), script=answering(transaction(amount="5,280,000.00", date="31 December 2024")))
    amount = next(citation for citation in extraction.citations if citation.path == "/amount")
    start = ENGLISH[4].index("5,280,000.00")
    assert (amount.text, amount.page) == ("5,280,000.00", 1)
    assert amount.bbox == (50 + 6 * start, 180, 50 + 6 * (start + 12), 192)
    assert {citation.path for citation in extraction.citations} == {"/amount", "/date"}


def test_the_answer_of_a_constrained_engine_is_taken_as_it_is() -> None:
    extraction = read(part_of(*CHINESE), profile=RISK)
    assert extraction.result["report_date"] == "2024年12月31日"
    assert (extraction.engine, extraction.finish_reason, extraction.parts) == ("stub", "stop", 1)


def test_a_second_reading_is_told_what_was_wrong_with_the_first() -> None:
    engine = StubEngine()
    job = ExtractConfig("job", objections={"en": ("/amount: 12 is not in the document",)})
    asyncio.run(extract((part_of(*ENGLISH), part_of(*ENGLISH)), TRANSACTION, engine, job))
    assert [request.user.count("12 is not in the document") for request in engine.requests] == [1, 1]


def test_an_empty_answer_is_an_error_with_a_name() -> None:
    with pytest.raises(EmptyOutput, match="grammar"):
        read(part_of(*ENGLISH), script=answering(" \n"))


def test_an_answer_that_ran_out_of_tokens_is_never_a_result() -> None:
    with pytest.raises(OutputTruncated, match="200 tokens"):
        read(part_of(*ENGLISH), script=answering(transaction(counterparty=ENDLESS)))


@pytest.mark.parametrize(
    "answer", ["not json", '{"account": null', "[]", '{"account":null}', transaction(currency="XXX")]
)
def test_an_answer_of_another_shape_is_invalid(answer: str) -> None:
    with pytest.raises(InvalidOutput):
        read(part_of(*ENGLISH), script=answering(answer))


def test_an_engine_that_ignores_the_grammar_is_found_out() -> None:
    with pytest.raises(InvalidOutput, match=r"/amount is '5,280,001\.00', which the document does not print"):
        read(part_of(*ENGLISH), script=answering(transaction(amount="5,280,001.00")))


def test_without_grounding_an_invented_value_stays_and_has_no_citation() -> None:
    extraction = read(part_of(*ENGLISH), script=answering(transaction(amount="9.99")), grounded=False)
    assert extraction.result["amount"] == "9.99"
    assert extraction.citations == ()


def test_the_request_carries_what_the_job_says() -> None:
    engine = StubEngine()
    job = ExtractConfig("job", attempt=2, priority=1, deadline_s=9, seed=7, cache_salt="tenant-a")
    asyncio.run(extract((part_of(*ENGLISH),), TRANSACTION, engine, job))
    (request,) = engine.requests
    assert (request.priority, request.deadline_s, request.seed, request.cache_salt) == (1, 9, 7, "tenant-a")
    assert request.request_id == request_id("job", 2, 1)
    assert request.user.endswith(ENGLISH[-1])
    assert request.json_schema is None


def test_without_grounding_the_engine_gets_a_schema_in_standard_words_only() -> None:
    engine = StubEngine()
    asyncio.run(extract((part_of(*ENGLISH),), TRANSACTION, engine, ExtractConfig("job", grounded=False)))
    assert engine.requests[0].grammar is None
    assert "x-" not in json.dumps(engine.requests[0].json_schema)


def two_parts() -> tuple[Part, Part]:
    return part_of(*ENGLISH[:3], page=1, number=1, of=2), part_of(*ENGLISH[3:], page=2, number=2, of=2)


def test_the_parts_of_a_document_become_one_result_with_the_citations_of_the_right_part() -> None:
    first, second = transaction(account="6222021234567890"), transaction(amount="1,250.00", suspicious="yes")
    extraction = read(*two_parts(), script=answering(first, second))
    assert extraction.result["account"] == "6222021234567890"
    assert extraction.result["amount"] == "1,250.00"
    assert extraction.result["suspicious"] == "yes"
    assert {citation.path: citation.page for citation in extraction.citations} == {"/account": 1, "/amount": 2}
    assert extraction.parts == 2


def test_parts_are_read_side_by_side() -> None:
    async def timed() -> float:
        started = asyncio.get_running_loop().time()
        await extract(two_parts(), TRANSACTION, StubEngine(StubScript(delay_s=0.2)), ExtractConfig("job"))
        return asyncio.get_running_loop().time() - started

    assert asyncio.run(timed()) < 0.4


def test_the_first_part_that_fails_stops_the_others() -> None:
    async def failing() -> float:
        engine = StubEngine(StubScript(delay_s=0.05, failures={1: EngineUnavailable("refused")}))
        with pytest.raises(EngineUnavailable, match="refused"):
            await extract(two_parts(), TRANSACTION, engine, ExtractConfig("job"))
        return (await engine.metrics())["running"]

    assert asyncio.run(failing()) == 0


def test_tokens_add_up_and_have_their_price() -> None:
    prices = Prices(input=Decimal("1"), cached=Decimal("0.1"), output=Decimal("2"))
    one = read(part_of(*ENGLISH), prices=prices).usage
    assert one.cost_usd == Decimal(one.prompt_tokens + 2 * one.output_tokens) / 1_000_000
    both = read(*two_parts(), prices=prices).usage
    assert both.prompt_tokens > one.prompt_tokens


def test_the_same_prompts_have_the_same_hash() -> None:
    first, again, other = read(part_of(*ENGLISH)), read(part_of(*ENGLISH)), read(part_of(*CHINESE))
    assert first.prompt_sha256 == again.prompt_sha256 != other.prompt_sha256


def test_a_document_without_a_part_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="no part to read"):
        read()


# ---------------------------------------------------------------- parts that fail are read again alone


class Shelf(dict[str, bytes]):
    """Keeps answers as a store does."""

    def keep(self, key: str, answer: bytes) -> None:
        self[key] = answer


FIRST, SECOND = transaction(account="6222021234567890"), transaction(amount="1,250.00", suspicious="yes")


def attempt(shelf: Shelf, engine: StubEngine, *, number: int = 1, **job: Any) -> Extraction:
    return asyncio.run(extract(two_parts(), TRANSACTION, engine, ExtractConfig("job", number, kept=shelf, **job)))


def test_after_an_engine_death_only_what_is_missing_is_read() -> None:
    shelf, dying = Shelf(), StubEngine(StubScript(answers=(FIRST,), failures={1: EngineDead("died")}))
    with pytest.raises(EngineDead):
        attempt(shelf, dying, at_once=1)
    again = StubEngine(answering(SECOND))
    extraction = attempt(shelf, again, number=2)
    assert len(again.requests) == 1
    assert (extraction.result["account"], extraction.result["amount"]) == ("6222021234567890", "1,250.00")
    assert {citation.path: citation.page for citation in extraction.citations} == {"/account": 1, "/amount": 2}
    assert extraction.usage.output_tokens == len(SECOND) // 4 + (len(SECOND) % 4 > 0)


def test_one_unusable_part_does_not_cost_the_others_their_answers() -> None:
    shelf = Shelf()
    with pytest.raises(InvalidOutput, match="part 1 of 2"):
        attempt(shelf, StubEngine(answering("not json", SECOND)))
    again = StubEngine(answering(FIRST))
    attempt(shelf, again, number=2, seed=1)
    assert ["part 1 of 2" in request.user for request in again.requests] == [True]


def test_a_reading_that_the_rules_rejected_keeps_nothing_for_the_next() -> None:
    shelf, engine = Shelf(), StubEngine(answering(FIRST, SECOND, FIRST, SECOND))
    attempt(shelf, engine)
    attempt(shelf, engine, number=2, reading=1)
    assert len(engine.requests) == 4


def test_a_document_of_one_part_keeps_nothing() -> None:
    shelf = Shelf()
    read(part_of(*ENGLISH), kept=shelf)
    assert shelf == {}


def test_an_attempt_that_another_has_overtaken_ends_at_its_next_part() -> None:
    class Overtaken(Shelf):
        def keep(self, key: str, answer: bytes) -> None:
            raise StaleAttempt("job: attempt 1 is over")

    with pytest.raises(StaleAttempt):
        attempt(Overtaken(), StubEngine(answering(FIRST, SECOND)))


def test_no_more_parts_are_read_at_once_than_the_lane_has_slots() -> None:
    async def most() -> float:
        engine = StubEngine(StubScript(delay_s=0.02))
        parts = tuple(part_of(*ENGLISH, number=n, of=6) for n in range(1, 7))
        reading = asyncio.ensure_future(extract(parts, TRANSACTION, engine, ExtractConfig("job", at_once=2)))
        seen = 0.0
        while not reading.done():
            seen = max(seen, (await engine.metrics())["running"])
            await asyncio.sleep(0.001)
        return seen

    assert asyncio.run(most()) == 2


def test_parts_that_disagree_are_told_of_with_the_value_that_is_kept() -> None:
    one, other = transaction(amount="1,250.00"), transaction(amount="5,280,000.00")
    parts = (part_of(*ENGLISH[5:], page=1, number=1, of=2), part_of(*ENGLISH[4:5], page=2, number=2, of=2))
    extraction = read(*parts, script=answering(one, other))
    assert extraction.result["amount"] == "5,280,000.00"
    (finding,) = extraction.findings
    assert (finding.rule, finding.outcome, finding.path, finding.page) == ("parts-disagree", Outcome.FLAG, "/amount", 2)
    assert "5,280,000.00 (p. 2); 1,250.00 (p. 1)" in finding.message


# ---------------------------------------------------------------- how long an answer may be


LONG = transaction(counterparty="Harbour Trading Limited (Cayman)")


def test_an_answer_that_was_cut_off_gets_more_room_once() -> None:
    engine = StubEngine(StubScript(answer=lambda request: LONG))
    extraction = asyncio.run(extract((part_of(*ENGLISH),), TRANSACTION, engine, ExtractConfig("job", max_tokens=30)))
    assert [request.max_tokens for request in engine.requests] == [30, 60]
    assert extraction.result["counterparty"] == "Harbour Trading Limited (Cayman)"


def test_more_room_ends_at_the_limit_of_the_profile() -> None:
    engine = StubEngine(StubScript(answer=lambda request: transaction(counterparty=ENDLESS)))
    with pytest.raises(OutputTruncated, match="200 tokens"):
        asyncio.run(extract((part_of(*ENGLISH),), TRANSACTION, engine, ExtractConfig("job", max_tokens=150)))
    assert [request.max_tokens for request in engine.requests] == [150, 200]


def test_both_tries_are_paid_for() -> None:
    long = read(part_of(*ENGLISH), script=answering(LONG)).usage
    both = read(part_of(*ENGLISH), script=StubScript(answer=lambda request: LONG), max_tokens=30).usage
    assert both.output_tokens == 30 + long.output_tokens
    assert both.prompt_tokens == 2 * long.prompt_tokens


def test_an_answer_that_goes_round_in_circles_is_tried_once_more_and_then_named() -> None:
    engine = StubEngine(StubScript(answer=lambda request: '{"account":"' + "The bank lends. " * 40))
    with pytest.raises(LoopingOutput, match="round in circles"):
        asyncio.run(extract((part_of(*ENGLISH),), TRANSACTION, engine, ExtractConfig("job")))
    assert [request.temperature > 0 for request in engine.requests] == [False, True]


def test_what_a_loop_has_cost_is_little() -> None:
    answers = ('{"account":' + " " * 700, LONG)
    usage = read(part_of(*ENGLISH), script=answering(*answers)).usage
    assert usage.output_tokens < 60 + read(part_of(*ENGLISH), script=answering(LONG)).usage.output_tokens
