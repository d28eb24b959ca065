"""The grammar of a part accepts what the part prints and nothing else. llguidance itself judges."""

import json
from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docmill.types import Part, Piece
from inference.grounding import chunks, example_in, ground
from inference.profile import load_profiles
from tests.reading import CHINESE, ENGLISH, part_of, printed

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


def judge(grammar: str) -> Callable[[str], bool]:
    """Compile a grammar once; the judge says of an answer whether it is accepted."""
    compiled = llguidance.LLMatcher(BYTES, grammar)
    assert not compiled.get_error(), compiled.get_error()

    def accepts(answer: str) -> bool:
        matcher = compiled.deep_copy()
        data = list(answer.encode())
        return bool(matcher.try_consume_tokens(data) == len(data) and matcher.is_accepting())

    return accepts


def accepts(grammar: str, answer: str) -> bool:
    return judge(grammar)(answer)


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


def test_ten_thousand_candidates_compile_with_and_without_words_to_narrow_them_by() -> None:
    lines = [f"{number * 7919 % 1000003:,}.{number % 100:02}" for number in range(10_000)]
    part = part_of(*lines, "Net fee: USD 1,234,567.89")
    for labels in ([], ["net fee"]):
        field = {"type": ["string", "null"], "x-source": "amount", "x-labels": labels}
        schema = {"type": "object", "properties": {"amount": field}}
        grounding = ground(schema, part)
        assert len(grounding.candidates["amount"]) == len(lines) + 1
        accepts = judge(grounding.grammar)
        assert accepts('{"amount":"1,234,567.89"}')
        assert not accepts('{"amount":"1,234,567.88"}')


# ---------------------------------------------------------------- each kind, against its look-alikes

VALUES = {
    "number": st.decimals(min_value=1000, max_value=10**9, places=2).map("{:,}".format),
    "amount": st.decimals(min_value=1000, max_value=10**9, places=2).map("{:,}".format),
    "date": st.dates(date(2000, 1, 1), date(2029, 12, 31)).map(lambda day: f"{day.year}年{day.month}月{day.day}日"),
    "id": st.from_regex(r"[A-Z]{2}-20[0-9]{2}-[0-9]{6}", fullmatch=True),
    "verbatim": st.from_regex(r"[A-Z][a-z]{4,8} [A-Z][a-z]{4,8} Limited", fullmatch=True),
    "quote": st.from_regex(r"[a-z]{4,8} the [a-z]{4,8} of 7\.50 was [a-z]{4,8}", fullmatch=True),
}


def one_field(source: str) -> dict[str, Any]:
    return {"type": "object", "properties": {"value": {"type": ["string", "null"], "x-source": source}}}


def answer(value: str) -> str:
    return json.dumps({"value": value}, ensure_ascii=False, separators=(",", ":"))


def look_alikes(value: str) -> list[str]:
    """One sign changed, left out, doubled or put in front, for each place of the value."""
    others = {sign: "7" if sign != "7" else "1" for sign in "0123456789"}
    changed = [value[:i] + others.get(sign, "x") + value[i + 1 :] for i, sign in enumerate(value) if sign.isalnum()]
    doubled = [value[:i] + value[i] + value[i:] for i in range(len(value))]
    return [one for one in {*changed, *doubled, "1" + value, value + "0"} if one != value]


@pytest.mark.parametrize("source", VALUES)
@settings(max_examples=6, deadline=None)
@given(data=st.data(), full_width=st.booleans())
def test_what_is_printed_is_accepted_and_nothing_that_looks_like_it(
    source: str, data: st.DataObject, full_width: bool
) -> None:
    value = data.draw(VALUES[source])
    if full_width:
        value = value.translate(str.maketrans("0123456789", "０１２３４５６７８９"))
    line = value if source in ("number", "amount", "quote") else f"甲方 {value} 签署"
    accepts = judge(ground(one_field(source), part_of("nothing here", line)).grammar)
    assert accepts(answer(value))
    assert [wrong for wrong in look_alikes(value) if accepts(answer(wrong))] == []


@pytest.mark.parametrize("source", [*VALUES, "enum-of-table-column"])
def test_a_document_without_a_candidate_of_any_kind_decodes_null(source: str) -> None:
    schema = one_field(source)
    schema["properties"]["value"] |= {"x-column": ["item"]} if source == "enum-of-table-column" else {}
    grammar = ground(schema, part_of("……", "——")).grammar
    assert accepts(grammar, '{"value":null}')
    assert not accepts(grammar, '{"value":"1"}')
    assert not accepts(grammar, '{"value":""}')


@pytest.mark.parametrize(
    ("printed_text", "quote"),
    [
        ("the loan amount\nof USD 5,280,000.00\nis due", "the loan amount of USD 5,280,000.00 is due"),
        ("借款金额人民\n币5,280,000.00元\n已划入", "借款金额人民币5,280,000.00元已划入"),
    ],
)
def test_a_quotation_may_run_over_line_breaks(printed_text: str, quote: str) -> None:
    part = Part(printed_text, 0, (Piece(printed(printed_text), 1),))
    grammar = ground(one_field("quote"), part).grammar
    assert accepts(grammar, answer(quote))


def test_a_quotation_does_not_run_from_one_piece_into_the_next() -> None:
    grammar = ground(one_field("quote"), part_of("The loan amount", "is due")).grammar
    assert accepts(grammar, '{"value":"The loan amount"}')
    assert not accepts(grammar, '{"value":"The loan amount is due"}')


def test_an_amount_is_offered_no_share_and_no_year() -> None:
    grammar = ground(one_field("amount"), part_of("In 2024 USD 5,280.00, or 12.3%, were paid.")).grammar
    assert accepts(grammar, '{"value":"5,280.00"}')
    assert not accepts(grammar, '{"value":"12.3%"}')
    assert not accepts(grammar, '{"value":"2024"}')


def test_fields_of_one_kind_share_one_rule() -> None:
    fields = {f"field_{n}": {"type": ["string", "null"], "x-source": "number"} for n in range(6)}
    grammar = ground({"type": "object", "properties": fields}, part_of(*ENGLISH)).grammar
    assert grammar.count("18,734,002.55") == 1
