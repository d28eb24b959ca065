"""The grammar of a part accepts what the part prints and nothing else. llguidance itself judges."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inference.grounding import chunks, example_in, ground
from inference.profile import load_profiles
from tests.reading import CHINESE, ENGLISH, part_of

llguidance = pytest.importorskip("llguidance")
#: A vocabulary of bytes: what is accepted then depends on the grammar alone.
BYTES = llguidance.LLTokenizer("byte")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "company": {"type": ["string", "null"], "x-source": "verbatim"},
        "date": {"type": ["string", "null"], "x-source": "date"},
        "amounts": {
            "type": "array",
            "maxItems": 2,
            "items": {"type": "object", "properties": {"amount": {"type": "string", "x-source": "number"}}},
        },
        "risk": {"enum": ["low", "high"]},
        "why": {"type": "string", "maxLength": 40},
    },
}
ANSWER = {"company": None, "date": None, "amounts": [], "risk": "low", "why": "none"}


def accepts(grammar: str, answer: str) -> bool:
    matcher = llguidance.LLMatcher(BYTES, grammar)
    assert not matcher.get_error(), matcher.get_error()
    data = list(answer.encode())
    return bool(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())


def takes(lines: tuple[str, ...], **fields: Any) -> bool:
    """Whether the grammar of these lines accepts an answer with these fields."""
    answer = json.dumps({**ANSWER, **fields}, ensure_ascii=False, separators=(",", ":"))
    return accepts(ground(SCHEMA, part_of(*lines)).grammar, answer)


def amounts(*texts: str) -> list[dict[str, str]]:
    return [{"amount": text} for text in texts]


@pytest.mark.parametrize("invented", ["5,280,001.00", "280,000.00", "5,280,000", "5280000.00", "5,280,000.00 ", ""])
def test_a_number_that_the_document_does_not_print_cannot_be_written(invented: str) -> None:
    assert takes(ENGLISH, amounts=amounts("5,280,000.00"))
    assert not takes(ENGLISH, amounts=amounts(invented))


def test_the_scale_is_part_of_the_number() -> None:
    assert takes(CHINESE, amounts=amounts("5,280.50万元", "12.3%"))
    assert not takes(CHINESE, amounts=amounts("5,280.50"))


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("Harbour Trading Limited", True),
        ("Harbour Trading Lim", False),
        ("Harbour Limited", False),
        (", fee", False),
        ("Account number: 6222021234567890 Counterparty", False),
        ("6222021234567", False),
    ],
)
def test_a_name_is_whole_words_of_one_piece(name: str, printed: bool) -> None:
    assert takes(ENGLISH, company=name) is printed


def test_a_chinese_name_may_begin_at_any_character_but_not_within_a_number() -> None:
    assert takes(CHINESE, company="平安置业股份有限公司")
    assert takes(CHINESE, company="置业股份")
    assert not takes(CHINESE, company="公司平安")
    assert not takes(CHINESE, company="余额为人民币5,28")


def test_full_width_digits_are_numbers_too() -> None:
    lines = ("合计５，２８０，０００．００元",)
    assert takes(lines, amounts=amounts("５，２８０，０００．００"))
    assert not takes(lines, amounts=amounts("２８０，０００．００"))
    assert not takes(lines, company="合计５，２８０")


@pytest.mark.parametrize(
    "line", ['The "Great" Bank', "Path\\to\\bank", 'a "b\\"c" d', "《平安》 “Bank”", "tab\tand\x01control"]
)
def test_quotes_and_backslashes_of_the_document_are_escaped(line: str) -> None:
    grounding = ground(SCHEMA, part_of(line))
    whole = grounding.plains[0].text
    assert accepts(
        grounding.grammar, json.dumps({**ANSWER, "company": whole}, ensure_ascii=False, separators=(",", ":"))
    )


def test_free_text_can_hold_no_digit() -> None:
    assert takes(ENGLISH, why="large cash")
    assert not takes(ENGLISH, why="over 5,280,000.00")
    assert not takes(CHINESE, why="超过５万")


def test_without_a_candidate_only_null_and_the_empty_list_are_left() -> None:
    lines = ("Nothing of interest.",)
    assert takes(lines)
    assert not takes(lines, date="31 December 2024")
    assert not takes(lines, amounts=amounts("1"))
    assert takes((), company=None)


def test_keys_keep_their_order_and_white_space_is_refused() -> None:
    grammar = ground(SCHEMA, part_of(*ENGLISH)).grammar
    assert accepts(grammar, json.dumps(ANSWER, separators=(",", ":")))
    assert not accepts(grammar, json.dumps(ANSWER))
    assert not accepts(grammar, json.dumps(dict(reversed(ANSWER.items())), separators=(",", ":")))


def test_a_list_ends_at_its_maximum() -> None:
    assert takes(ENGLISH, amounts=amounts("1,250.00", "18,734,002.55"))
    assert not takes(ENGLISH, amounts=amounts("1,250.00", "18,734,002.55", "1,250.00"))


def test_a_schema_that_cannot_be_met_is_refused_with_the_remedy() -> None:
    required = {"type": "object", "properties": {"date": {"type": "string", "x-source": "date"}}}
    with pytest.raises(ValueError, match="nullable"):
        ground(required, part_of("no date here"))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6))
def test_whatever_the_document_prints_the_grammar_compiles_and_accepts_its_own_example(lines: list[str]) -> None:
    grammar = ground(SCHEMA, part_of(*lines)).grammar
    example = example_in(grammar)
    assert example is not None
    assert accepts(grammar, example)


@pytest.mark.parametrize("name", sorted(load_profiles()))
@pytest.mark.parametrize("lines", [ENGLISH, CHINESE], ids=["en", "zh"])
def test_the_built_in_profiles_compile(name: str, lines: tuple[str, ...]) -> None:
    grammar = ground(load_profiles()[name].schema, part_of(*lines)).grammar
    assert accepts(grammar, example_in(grammar) or "")


@given(st.text(max_size=80))
def test_chunks_put_together_are_the_text(text: str) -> None:
    line = text.replace("\n", " ")
    assert "".join(chunks(line)) == line


def test_thousands_of_candidates_compile() -> None:
    lines = [f"{number * 7919 % 1000003:,}.{number % 100:02}" for number in range(2_000)]
    grounding = ground(SCHEMA, part_of(*lines))
    assert not llguidance.LLMatcher(BYTES, grounding.grammar).get_error()
    assert len(grounding.candidates["number"]) == len(lines)
