"""Every error has a row in the policy table, and every code is told apart."""

from __future__ import annotations

import pytest

from docmill import errors
from workers.policy import code_of, describe, policy_for

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DocmillError)]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_of_ours_has_a_policy(kind: type[errors.DocmillError]) -> None:
    assert policy_for(kind("x")).tries >= 1


@pytest.mark.parametrize("kind", [kind for kind in ALL if issubclass(kind, errors.InputError)])
def test_a_bad_file_is_never_tried_again(kind: type[errors.DocmillError]) -> None:
    assert policy_for(kind("x")).tries == 1


def test_a_bad_answer_is_tried_once_more() -> None:
    assert policy_for(errors.OutputTruncated("x")).tries == 2
    assert policy_for(errors.PromptTooLong("x")).tries == 1, "the same prompt will be as long the next time"


def test_a_document_that_keeps_killing_the_engine_is_given_up() -> None:
    assert 3 < policy_for(errors.EngineDead("x")).tries < 10


def test_an_error_that_nobody_foresaw_is_named_with_its_type() -> None:
    assert code_of(KeyError("rows")) == "internal_error"
    assert describe(KeyError("rows")) == "KeyError: 'rows'"
    assert policy_for(KeyError("rows")).tries == 2
