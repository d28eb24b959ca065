"""A line of a batch's input: the request that it is, or what is wrong with it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.batches import Line
from workers.batch_line import CHAT, DOCUMENTS, Asked, Fault, moment, read_line

ASKED = Asked(DOCUMENTS, {"risk-report", "other"}, {})


def line(**changes: Any) -> bytes:
    whole = {"custom_id": "a", "method": "POST", "url": DOCUMENTS, "body": {"file_id": "file-1", "profile": "other"}}
    return json.dumps(whole | changes).encode()


def test_a_request_for_a_document_is_read() -> None:
    assert read_line(line(), 7, ASKED) == Line(7, "a", "other", "file-1")


def test_the_batch_says_what_its_lines_do_not() -> None:
    asked = Asked(DOCUMENTS, {"risk-report"}, {"profile": "risk-report", "priority": "high", "ordering_key": "k"})
    read = read_line(line(body={"file_id": "file-1"}, docmill={"ordering_key": "own"}), 1, asked)
    assert (read.profile, read.priority, read.ordering_key) == ("risk-report", "high", "own")


def test_a_chat_completion_holds_one_document_among_its_messages() -> None:
    part = {"type": "file", "file": {"file_id": "file-1"}}
    asked = Asked(CHAT, {"other"}, {})
    for parts, good in (([part], True), ([], False), ([part, part], False), ([{"type": "file"}], False)):
        body = {"model": "other", "messages": [{"role": "user", "content": "x"}, {"role": "user", "content": parts}]}
        read = read_line(line(url=CHAT, body=body), 1, asked)
        assert (read.file_id == "file-1", read.code is None) == (good, good)


def test_a_deadline_is_unix_seconds_or_iso_8601_and_not_over() -> None:
    soon = datetime.now(UTC) + timedelta(hours=1)
    for told in (int(soon.timestamp()), soon.isoformat()):
        assert read_line(line(docmill={"deadline": told}), 1, ASKED).code is None
    assert read_line(line(docmill={"deadline": "2020-01-01"}), 1, ASKED).code == "deadline_passed"
    for wrong in (True, 1e300, 10**30, "soon", [], {}):
        with pytest.raises(Fault):
            moment(wrong)


@given(st.binary() | st.text().map(str.encode) | st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["custom_id", "method", "url", "body"]), inner),
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
def test_whatever_a_line_holds_it_is_a_request_or_a_fault(text: bytes) -> None:
    try:
        assert isinstance(read_line(text, 1, ASKED), Line)
    except Fault as fault:
        assert fault.code
