"""The measures themselves: each finds what it is meant to find in a few lines of code."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from tests.architecture import budgets, test_budgets, test_text

LONG = '''
def told(x):
    """A docstring
    of two lines."""
    # A comment.
    one = x

    return (
        one
    )
'''


def only(source: str) -> Any:
    (statement,) = ast.parse(source).body
    return statement


def test_a_body_counts_its_code_and_not_docstring_comment_or_blank_line() -> None:
    assert budgets.body_lines(LONG.splitlines(), only(LONG)) == 4


@pytest.mark.parametrize(
    ("body", "depth"),
    [
        ("return 1", 0),
        ("if a:\n  return 1\n elif b:\n  return 2\n elif c:\n  return 3", 1),
        ("if a:\n  return 1\n else:\n  if b:\n   return 2\n  c = 3", 2),
        ("for a in b:\n  with c:\n   try:\n    d\n   except E:\n    if f:\n     g", 4),
        ("def inner():\n  if a:\n   b", 0),
        ("return [a for a in b if c]", 0),
    ],
)
def test_nesting_counts_blocks_inside_blocks(body: str, depth: int) -> None:
    assert budgets.depth_of(only(f"def told():\n {body}")) == depth


@pytest.mark.parametrize(
    ("call", "mock"),
    [
        ("Mock()", True),
        ("mock.patch('a.b')", True),
        ("patch.object(a, 'b')", True),
        ("mocker.spy(a, 'b')", True),
        ("monkeypatch.setattr(a, 'b', c)", True),
        ("monkeypatch.setenv('A', 'b')", False),
        ("Stub()", False),
    ],
)
def test_a_mock_is_told_from_a_real_thing(call: str, mock: bool) -> None:
    assert budgets.is_mock(only(call).value.func) is mock


@pytest.mark.parametrize(
    ("handler", "broad", "recorded"),
    [
        ("except Exception:\n  pass", True, False),
        ("except:\n  pass", True, False),
        ("except (ValueError, Exception) as e:\n  say(log, 'x')", True, True),
        ("except BaseException:\n  raise", True, True),
        ("except ValueError:\n  pass", False, False),
    ],
)
def test_a_broad_except_and_its_record_are_seen(handler: str, broad: bool, recorded: bool) -> None:
    (caught,) = only(f"try:\n  a\n{handler}").handlers
    assert test_budgets.is_broad(caught.type) is broad
    assert test_budgets.leaves_a_record(caught) is recorded


@pytest.mark.parametrize(
    ("comment", "good"),
    [
        ("# type: ignore[arg-type]  # the stubs know no such keyword", True),
        ("# noqa: BLE001  # the boundary of the worker", True),
        ("# type: ignore", False),
        ("# type: ignore[arg-type]", False),
        ("# type: ignore  # because", False),
        ("# noqa", False),
    ],
)
def test_an_ignore_without_rule_or_reason_is_seen(comment: str, good: bool) -> None:
    assert test_budgets.IGNORE.search(comment)
    assert bool(test_budgets.GOOD_IGNORE.search(comment)) is good


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("cd /" + "work/main", True),
        ("open('/" + "root/x')", True),
        ("pip install --index" + "-url x", True),
        ("network/work/report", False),
        ("https://example.org/work/", False),
        ("with Session(engine) as session:", False),
    ],
)
def test_a_banned_word_is_told_from_a_good_one(text: str, banned: bool) -> None:
    assert any(pattern.search(text) for pattern in test_text.BANNED.values()) is banned
