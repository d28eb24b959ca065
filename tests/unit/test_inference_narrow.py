"""Of thousands of values those near a field's own words stay; of a few, all."""

from hypothesis import given, settings
from hypothesis import strategies as st

from inference.candidates import find
from inference.grounding import ground
from inference.narrow import MOST_CHARACTERS, MOST_VALUES, Nearness
from inference.text import one_line
from tests.reading import part_of

MANY = [f"Branch: {1000 + number}.50" for number in range(MOST_VALUES + 100)]


def kept(lines: list[str], *words: str) -> list[str]:
    plains = [one_line(line) for line in lines]
    return Nearness(plains).values(find(plains)["amount"], words)


def test_few_values_are_all_kept() -> None:
    few = MANY[:MOST_VALUES]
    assert len(kept([*few, "Total: 7.00"][1:], "total")) == MOST_VALUES


@settings(max_examples=6, deadline=None)
@given(st.integers(0, len(MANY)), st.sampled_from(["Total fee", "合计"]))
def test_of_many_values_the_one_beside_the_word_is_kept_wherever_it_stands(at: int, word: str) -> None:
    values = kept([*MANY[:at], f"{word}: 77.25", *MANY[at:]], word.upper())
    assert "77.25" in values
    assert len(values) == MOST_VALUES


def test_what_is_kept_is_in_document_order() -> None:
    values = kept([*MANY, "Total: 77.25"], "total")
    assert values == [*sorted(values[:-1]), "77.25"]


def test_where_no_word_is_printed_everything_is_kept() -> None:
    assert len(kept(MANY, "net fee")) == len(MANY)
    assert len(kept(MANY)) == len(MANY)


def test_of_much_text_the_pieces_around_the_word_are_kept() -> None:
    lines = [f"Paragraph {number} says nothing." for number in range(2_000)]
    lines[1_500] = "The borrower is Harbour Trading Limited."
    kept_texts = [plain.text for plain in Nearness([one_line(line) for line in lines]).pieces(["borrower"])]
    assert lines[1_500] in kept_texts
    assert sum(map(len, kept_texts)) <= MOST_CHARACTERS


def test_each_field_is_narrowed_by_its_own_words() -> None:
    lines = ["First fee: 1.25", *MANY, "Last fee: 9.75"]
    fields = {
        name: {"type": ["string", "null"], "x-source": "amount", "x-labels": [f"{name} fee"]}
        for name in ("first", "last")
    }
    grammar = ground({"type": "object", "properties": fields}, part_of(*lines)).grammar
    first, last = (line for line in grammar.splitlines() if line.startswith("one_of"))
    assert ('"1.25"' in first, '"9.75"' in first) == (True, False)
    assert ('"1.25"' in last, '"9.75"' in last) == (False, True)
