"""A reading stands for that of another document only if each of its values is found there."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from docmill.types import Extraction, Part, Usage
from inference.profile import Profile, load_profiles
from inference.reuse import SHARED, reuse
from tests.reading import part_of

SCHEMA = {
    "type": "object",
    "properties": {
        "amount": {"type": ["string", "null"], "x-source": "number"},
        "party": {"type": ["string", "null"], "x-source": "verbatim"},
        "domestic": {"type": ["boolean", "null"]},
    },
}
RESULT = {"amount": "100.00", "party": "Acme Ltd", "domestic": True}


@pytest.fixture
def profile() -> Profile:
    return replace(next(iter(load_profiles().values())), schema=SCHEMA)


def earlier(**changes: Any) -> Extraction:
    used = Usage(prompt_tokens=9, output_tokens=9, cost_usd=Decimal(1))
    return replace(Extraction(RESULT, (), used, "e", "m", "fp16", "p", 0, "stop", "raw"), **changes)


def test_the_values_are_cited_where_this_document_prints_them_at_no_cost(profile: Profile) -> None:
    read = reuse(earlier(), (part_of("A heading of its own", "Acme Ltd pays 100.00"),), profile)
    assert read is not None
    assert (read.result, read.usage, read.finish_reason) == (RESULT, Usage(), SHARED)
    assert {citation.path: citation.bbox.y0 for citation in read.citations} == {"/amount": 120, "/party": 120}


@pytest.mark.parametrize("line", ["Acme Ltd pays 1000.00", "Apex Ltd pays 100.00", "Acme Ltd pays"])
def test_a_value_that_this_document_does_not_print_is_not_taken_over(profile: Profile, line: str) -> None:
    assert reuse(earlier(), (part_of(line),), profile) is None


def test_a_document_in_several_parts_is_read_anew(profile: Profile) -> None:
    part: Part = part_of("Acme Ltd pays 100.00")
    assert reuse(earlier(), (part, part), profile) is None
    assert reuse(earlier(parts=2), (part,), profile) is None
