"""Rule files: what they mean, and what a mistake in one says."""

from pathlib import Path

import pytest

from docmill.errors import BrokenRule
from docmill.types import Outcome
from validation.examples import ExampleOutcome, extracted, run_examples, typed
from validation.rules import Ruleset, load_rulesets
from validation.validate import validate

BUILT_IN = load_rulesets()
OUTCOMES = {ruleset.name: run_examples(ruleset) for ruleset in BUILT_IN.values()}
EXAMPLES = [(name, outcome) for name, outcomes in OUTCOMES.items() for outcome in outcomes]

RULE = """
name: mine
version: "7"
rules:
  - id: first
    severity: flag
    check: schema.conforms
    message: {en: a, zh: b}
  - id: second
    severity: review
    holds: result.amount == '1'
    path: /amount
    message: {en: "{text} is not 1", zh: "{text} 不是 1"}
"""


def load(folder: Path, text: str, name: str = "mine.yaml") -> Ruleset:
    (folder / name).write_text(text, "utf-8")
    return load_rulesets(folder)["mine"]


@pytest.mark.parametrize("outcome", [o for _, o in EXAMPLES], ids=[f"{ruleset}: {o.name}" for ruleset, o in EXAMPLES])
def test_every_example_of_the_built_in_rulesets_finds_what_it_says(outcome: ExampleOutcome) -> None:
    assert outcome.passed, str(outcome)


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_rule_of_a_ruleset_has_an_example_in_which_it_speaks(name: str) -> None:
    ruleset = BUILT_IN[name]
    inherited = {rule.rule_id for other in BUILT_IN.values() if other.name == "common" != name for rule in other.rules}
    shown = {rule for outcome in OUTCOMES[name] for rule in outcome.expected}
    citations = {"citation-missing", "citation-nowhere", "citation-empty"}  # test_validation_validate.py shows these
    assert {rule.rule_id for rule in ruleset.rules} - inherited - shown - citations == set()


def test_every_built_in_profile_has_a_ruleset_that_extends_common() -> None:
    for name in ("risk-report", "transaction-monitoring", "customer-screening"):
        assert BUILT_IN[name].label == f"{name}@2 common@2"
        assert {"number-ungrounded", "schema-violated"} <= {rule.rule_id for rule in BUILT_IN[name].rules}


def test_a_rule_that_is_written_again_replaces_the_inherited_one(tmp_path: Path) -> None:
    text = RULE.replace("rules:", "extends: [common]\nwithout: [repetition]\nrules:").replace(
        "id: first", "id: schema-violated"
    )
    ruleset = load(tmp_path, text)
    by_id = {rule.rule_id: rule for rule in ruleset.rules}
    assert by_id["schema-violated"].severity == Outcome.FLAG
    assert "repetition" not in by_id and "repetition-loop" in by_id
    assert ruleset.label == "mine@7 common@2"


def test_rulesets_of_one_folder_extend_each_other_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("name: a\nversion: '1'\nextends: [mine]\nrules: []", "utf-8")
    load(tmp_path, RULE, "z.yaml")
    assert [rule.rule_id for rule in load_rulesets(tmp_path)["a"].rules] == ["first", "second"]


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("severity: flg", "severity: flag", r"mine.yaml, line 5, rule first: severity: 'flg' is not one of"),
        ("check: schema.confirms", "check: schema.conforms", r"line 5, rule first: there is no check schema.confirms"),
        ("holds: result.amount ==", "holds: result.amount == '1'", r"line 9, rule second: holds: Failed to parse"),
        ("holds: amount == '1'", "holds: result.amount == '1'", r"line 9, rule second: holds: unknown name amount"),
        ("holds: open(result)", "holds: result.amount == '1'", r"line 9, rule second: holds: unknown name open"),
        ("{number} is not 1", "{text} is not 1", r"rule second: message: unknown placeholder number"),
        ("{text is not 1", "{text} is not 1", r"rule second: message: "),
        ("id: first", "id: second", r"line 9, rule first: the id is used twice"),
        (
            "with: {n: 1}\n    check: schema.conforms",
            "check: schema.conforms",
            r"rule first: with: .*'n' was unexpected",
        ),
        ("rules:\n  - {id: x}", "rules:", r"line 5, rule x: 'severity' is a required property"),
        ("extends: [nobody]\nversion:", "version:", r"mine.yaml: extends: nobody is not there"),
        ("extends: [mine]\nversion:", "version:", r"mine.yaml: extends: mine is not there, or extends this"),
        ("without: [x]\nversion:", "version:", r"mine.yaml: without: x is no rule"),
        ("nmae: mine", "name: mine", r"mine.yaml: Additional properties|mine.yaml: 'name' is a required property"),
        ("name: [", "name: mine", r"mine.yaml: not YAML: .*line"),
    ],
)
def test_a_mistake_is_named_with_file_rule_and_reason(tmp_path: Path, wrong: str, right: str, message: str) -> None:
    assert right in RULE
    with pytest.raises(BrokenRule, match=message):
        load(tmp_path, RULE.replace(right, wrong, 1))


def test_an_expression_that_could_run_for_long_is_refused(tmp_path: Path) -> None:
    nested = "result.a.all(x, result.a.all(y, result.a.all(z, x < y)))"
    with pytest.raises(BrokenRule, match="3 comprehensions, the limit is 2"):
        load(tmp_path, RULE.replace("result.amount == '1'", nested))
    with pytest.raises(BrokenRule, match="is too long"):
        load(tmp_path, RULE.replace("'1'", f"'{'1' * 1000}'"))


def found(ruleset: Ruleset, result: dict[str, object]) -> list[tuple[str, Outcome, str]]:
    verdict = validate(extracted(result, ()), typed("x"), schema={}, ruleset=ruleset)
    return [(finding.rule, finding.outcome, finding.message) for finding in verdict.findings]


def test_an_expression_that_is_false_is_a_finding_in_both_languages(tmp_path: Path) -> None:
    assert found(load(tmp_path, RULE), {"amount": "2"}) == [("second", Outcome.REVIEW, "2 is not 1 / 2 不是 1")]


def test_an_expression_that_is_true_is_none(tmp_path: Path) -> None:
    assert found(load(tmp_path, RULE), {"amount": "1"}) == []


def test_an_expression_that_cannot_be_evaluated_is_a_matter_for_review(tmp_path: Path) -> None:
    ruleset = load(tmp_path, RULE.replace("severity: review", "severity: flag"))
    ((rule, outcome, message),) = found(ruleset, {})
    assert (rule, outcome) == ("second", Outcome.REVIEW)
    assert "could not be applied" in message and "result.amount == '1'" in message


def test_an_expression_that_gives_no_truth_value_is_a_matter_for_review(tmp_path: Path) -> None:
    ((_, outcome, message),) = found(
        load(tmp_path, RULE.replace("result.amount == '1'", "result.amount")), {"amount": "x"}
    )
    assert outcome == Outcome.REVIEW and "not true or false" in message


def test_a_rule_for_each_entry_of_a_list_names_the_entry(tmp_path: Path) -> None:
    text = RULE.replace("result.amount == '1'", "item.n != 'b'").replace("path: /amount", "each: /list")
    verdict = validate(
        extracted({"list": [{"n": "a"}, {"n": "b"}]}, ()), typed("x"), schema={}, ruleset=load(tmp_path, text)
    )
    assert [(finding.rule, finding.path) for finding in verdict.findings] == [("second", "/list/1")]


def test_an_expression_sees_the_facts_of_the_document(tmp_path: Path) -> None:
    holds = "facts.language == 'en' && facts.pages == 2 && 5200.0 in facts.numbers && '2024-05-01' in facts.dates"
    ruleset = load(tmp_path, RULE.replace("result.amount == '1'", f'"{holds}"'))
    document = typed("paid 5,200 euros in all", "on 1 May 2024 by wire")
    assert validate(extracted({}, ()), document, schema={}, ruleset=ruleset).findings == ()
