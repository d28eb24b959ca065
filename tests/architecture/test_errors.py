"""The tree of errors is drawn in its module's docstring, and each error has a code of its own."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from docmill import errors
from docmill.errors import DocmillError

CLASSES = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, DocmillError)]
#: A line of the drawing: branches, then the name of a class.
BRANCH = re.compile(r"^    (?P<lead>[│├└─ ]*)(?P<name>[A-Z][A-Za-z]+)\b")


def drawn() -> dict[str, str | None]:
    """Each class of the drawing with the one that it hangs on."""
    parents: dict[str, str | None] = {}
    open_branches: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = BRANCH.match(line)
        if found is None or (parents and not found["lead"]):
            continue
        depth = len(found["lead"])
        open_branches = [branch for branch in open_branches if branch[0] < depth]
        parents[found["name"]] = open_branches[-1][1] if open_branches else None
        open_branches.append((depth, found["name"]))
    return parents


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_is_drawn_below_its_parent(error: type[DocmillError]) -> None:
    parent = error.__bases__[0].__name__ if error is not DocmillError else None
    assert error.__name__ in drawn(), f"{error.__name__} is missing in the docstring of docmill/errors.py"
    assert drawn()[error.__name__] == parent


def test_nothing_is_drawn_that_does_not_exist() -> None:
    assert set(drawn()) == {error.__name__ for error in CLASSES}


def test_every_error_has_a_code_of_its_own() -> None:
    shared = {code: count for code, count in Counter(error.code for error in CLASSES).items() if count > 1}
    assert not shared, f"codes of more than one error: {shared}"


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_says_in_one_sentence_what_it_means(error: type[DocmillError]) -> None:
    assert "code" in vars(error), f"{error.__name__} inherits the code {error.code!r}; give it one of its own"
    assert (error.__doc__ or "").strip().endswith("."), f"{error.__name__} needs a docstring of one sentence"
