"""Reading parts side by side: every answer is checked, merged, cited and paid for."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest

from docmill.errors import EmptyOutput, EngineUnavailable, InvalidOutput, OutputTruncated
from docmill.types import Extraction, Part
from inference.cost import Prices
from inference.engines.stub import StubEngine, StubScript
from inference.extract import ExtractConfig, extract, request_id
from inference.profile import load_profiles
from tests.reading import CHINESE, ENGLISH, part_of

PROFILES = load_profiles()
TRANSACTION = PROFILES["transaction-monitoring"]
RISK = PROFILES["risk-report"]


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
        read(part_of(*ENGLISH), script=answering(transaction(counterparty="x" * 2000)))


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
