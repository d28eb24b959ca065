"""An answer that goes round in circles is seen while it is written; one that is only regular is not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inference.loops import FEWEST, LONG_ENOUGH, LONGEST_UNIT, STEP, WHITESPACE, LoopWatch, loop_in


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\n  ", "\u3000"])
def test_white_space_without_end_is_a_loop(blank: str) -> None:
    assert loop_in('{"account":' + blank * WHITESPACE) == "whitespace"


@given(st.text(min_size=1, max_size=LONGEST_UNIT).filter(str.strip))
def test_the_same_words_again_and_again_are_a_loop(unit: str) -> None:
    again = unit * (FEWEST + LONG_ENOUGH // len(unit))
    assert loop_in('{"summary":"' + again.rstrip()) == "repetition"


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps([{"label": f"row {n}", "amount": f"{n * 37},000"} for n in range(40)]),
        json.dumps({f"field_{n}": None for n in range(40)}, indent=4),
        '{"account":"' + "0" * 40 + '"}',
        "账号" + "—" * 80,
        "合计 1,000.00 合计 1,000.00 合计 1,000.00 完",
        "",
    ],
)
def test_what_is_only_regular_is_no_loop(answer: str) -> None:
    assert all(loop_in(answer[:stop]) is None for stop in range(len(answer) + 1))


def test_a_loop_is_seen_long_before_the_answer_would_end() -> None:
    watch, text = LoopWatch(), '{"summary":"'
    while len(text) < 4000 and watch.saw(text) is None:
        text += "The bank lends. "
    assert len(text) < LONG_ENOUGH + 3 * STEP


def test_a_watch_looks_only_when_there_is_enough_that_is_new() -> None:
    looks: list[str] = []

    def find(text: str) -> None:
        looks.append(text)

    watch = LoopWatch(find)
    for length in range(4 * STEP):
        watch.saw("x" * length)
    assert [len(text) for text in looks] == [STEP, 2 * STEP, 3 * STEP]
