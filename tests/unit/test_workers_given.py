"""Results from anywhere: each shape is read, and what is wrong with a file is a finding, never a crash."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Outcome
from workers.given import MESSAGES, read_given

RESULT = {"company": "Northwind", "amount": "5"}
NAMES = tuple(RESULT)
CITED = {"path": "/amount", "text": "5", "page": 1, "bbox": [1, 2, 3, 4]}


def read(value: Any, names: tuple[str, ...] = NAMES) -> Any:
    return read_given(value if isinstance(value, bytes) else json.dumps(value).encode(), names)


@pytest.mark.parametrize(
    "shape",
    [
        RESULT,
        {"result": RESULT},
        {"finish_reason": "stop", "content": json.dumps(RESULT)},
        {"choices": [{"message": {"role": "assistant", "content": json.dumps(RESULT)}, "finish_reason": "stop"}]},
        {"content": json.dumps({"result": RESULT})},
        json.dumps(RESULT).encode("utf-8-sig"),
        json.dumps(RESULT).encode("utf-16"),
    ],
)
def test_a_result_is_read_from_every_shape(shape: Any) -> None:
    assert (read(shape).result, read(shape).findings) == (RESULT, ())


def test_citations_come_with_our_own_shape_and_with_the_apis() -> None:
    ours = read({"result": RESULT, "citations": [CITED]})
    api = read({"result": RESULT, "fields": [{**CITED, "verdict": "pass"}, {"path": "/company", "page": None}]})
    assert ours.citations == api.citations
    assert ours.citations[0].bbox == (1, 2, 3, 4)
    assert read(RESULT).citations is None
    assert read({"result": RESULT, "citations": []}).citations == ()


def test_a_value_that_is_called_like_a_wrapping_is_a_value() -> None:
    value = {"result": {"a": 1}, "content": "words"}
    assert read(value, ("result", "content")).result == value


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "result-not-json"),
        (b"The company is Northwind.", "result-not-json"),
        (b"```json\n{}\n```", "result-not-json"),
        (b"\xff\xfe\xfa", "result-not-json"),
        (b'{"company": NaN}', "result-not-json"),
        (b"[" * 100_000, "result-not-json"),
        (b'{"company": "North', "result-truncated"),
        (b'{"company": "Northwind", "amount": ', "result-truncated"),
        (b'{"company": "Northwind", "amount": 12', "result-truncated"),
        (b'{"a": {"b": 1}', "result-truncated"),
        (b"[1, 2]", "result-not-object"),
        (b"12", "result-not-object"),
        (b"null", "result-not-object"),
    ],
)
def test_a_file_without_a_result_is_a_finding_that_rejects(data: bytes, rule: str) -> None:
    given = read(data)
    assert given.result is None
    assert [(finding.rule, finding.outcome) for finding in given.findings] == [(rule, Outcome.REJECT)]


def test_an_answer_that_ran_out_of_tokens_is_cut_off_even_if_it_parses() -> None:
    given = read({"finish_reason": "length", "content": json.dumps(RESULT)})
    assert [finding.rule for finding in given.findings] == ["result-truncated"]


def test_a_key_that_stands_twice_is_not_settled_in_silence() -> None:
    given = read(b'{"amount": "5", "amount": "6"}')
    assert [finding.rule for finding in given.findings] == ["result-key-twice"]


def test_citations_that_cannot_be_read_are_for_a_person() -> None:
    given = read({"result": RESULT, "citations": [{"path": 3}]})
    assert [(finding.rule, finding.outcome) for finding in given.findings] == [("citations-unreadable", Outcome.REVIEW)]


def test_every_message_is_in_both_languages() -> None:
    for english, chinese in MESSAGES.values():
        assert english.count("{}") == chinese.count("{}") == 1


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_crash_the_reader(data: bytes) -> None:
    given = read(data)
    assert given.result is not None or given.findings
