"""Every error and every verdict has a row in its policy table, and what a model is told of its faults."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError
from sqlalchemy.exc import OperationalError

from docmill import errors
from docmill.types import Finding, Outcome
from validation.rules import load_rulesets
from workers.messages import in_both, objections_of
from workers.policy import BrokenPolicy, Step, code_of, describe, load_policy, policy_for

USUAL = "default: {pass: [accept], flag: [accept], review: [review], reject: [retry, review]}\n"

ALL = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.DocmillError)]


@pytest.mark.parametrize("kind", ALL)
def test_every_error_of_ours_has_a_policy(kind: type[errors.DocmillError]) -> None:
    assert policy_for(kind.__new__(kind)).tries >= 1


@pytest.mark.parametrize("kind", [kind for kind in ALL if issubclass(kind, errors.InputError)])
def test_a_bad_file_is_never_tried_again(kind: type[errors.DocmillError]) -> None:
    assert policy_for(kind("x")).tries == 1


def test_a_bad_answer_is_tried_once_more() -> None:
    assert policy_for(errors.OutputTruncated("x")).tries == 2
    assert policy_for(errors.PromptTooLong("x")).tries == 1, "the same prompt will be as long the next time"


def test_a_document_that_keeps_killing_the_engine_is_given_up() -> None:
    assert policy_for(errors.EngineDead("x")).loses, "it counts as a lost worker, which is bounded"


@pytest.mark.parametrize(
    "error",
    [
        errors.BlobsUnavailable("full"),
        errors.DatabaseUnavailable("away"),
        OperationalError("SELECT 1", {}, OSError("away")),
        RedisConnectionError("away"),
        OSError(errno.ENOSPC, "no space left on device"),
        OSError(errno.EMFILE, "too many open files"),
    ],
    ids=lambda error: f"{type(error).__name__} {error}",
)
def test_no_document_fails_for_a_machine_that_is_full_or_away(error: Exception) -> None:
    assert not policy_for(error).counts
    assert policy_for(error).delay_s > 0, "or it is tried in a tight loop"


def test_a_file_of_ours_that_is_missing_is_an_error_that_somebody_must_see() -> None:
    assert policy_for(FileNotFoundError(errno.ENOENT, "tokenizer.json")).counts


def test_an_error_that_nobody_foresaw_is_named_with_its_type() -> None:
    assert code_of(KeyError("rows")) == "internal_error"
    assert describe(KeyError("rows")) == "KeyError: 'rows'"
    assert policy_for(KeyError("rows")).tries == 2


# ---------------------------------------------------------------- after a verdict


def test_what_is_rejected_is_read_once_more_and_then_a_person_decides() -> None:
    policy = load_policy()
    assert [policy.step("any", Outcome.REJECT, before) for before in range(3)] == [Step.RETRY, Step.REVIEW, Step.REVIEW]
    assert policy.step("any", Outcome.REVIEW, 0) == Step.REVIEW
    assert {policy.step("any", outcome, 0) for outcome in (Outcome.PASS, Outcome.FLAG)} == {Step.ACCEPT}


def test_a_profile_may_be_stricter_than_the_rest(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, USUAL + "profiles: {strict: {flag: [review], reject: [reject]}}"))
    assert policy.step("strict", Outcome.FLAG, 0) == Step.REVIEW
    assert policy.step("strict", Outcome.REJECT, 0) == Step.REJECT
    assert policy.step("strict", Outcome.PASS, 0) == Step.ACCEPT
    assert policy.step("lenient", Outcome.FLAG, 0) == Step.ACCEPT


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("default: {pass: [accept]}", "says nothing for flag, review, reject"),
        (USUAL.replace("[retry, review]", "[retry]"), "read for ever"),
        (USUAL.replace("[review]", "[shrug]"), "shrug"),
        ("default: [", "policy.yaml"),
        ("- a", "policy.yaml"),
    ],
)
def test_a_policy_that_cannot_be_used_says_why(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(BrokenPolicy, match=reason):
        load_policy(written(tmp_path, text))


def written(folder: Path, text: str) -> Path:
    file = folder / "policy.yaml"
    file.write_text(text, "utf-8")
    return file


def test_a_model_is_told_in_its_documents_language_what_the_rules_rejected() -> None:
    rules = load_rulesets()["common"].rules
    found = [
        Finding("citation-missing", Outcome.FLAG, "12 has no citation / 12 没有出处", "/a"),
        Finding("number-in-prose", Outcome.REVIEW, "states 7 / 出现了 7", "/b"),
        Finding("number-ungrounded", Outcome.REJECT, "12 / 13 is not there / 文件中没有 12 / 13", "/c"),
    ]
    told = objections_of(found, rules)
    assert told == {
        "en": ("/c: 12 / 13 is not there", "/b: states 7"),
        "zh": ("/c: 文件中没有 12 / 13", "/b: 出现了 7"),
    }


def test_a_rule_that_could_not_be_applied_is_told_apart_too() -> None:
    broken = Finding("x", Outcome.REVIEW, "the rule could not be applied / 规则无法执行: a / b", "/a")
    assert in_both(broken, ()) == ("the rule could not be applied: a / b", "规则无法执行: a / b")
