"""Whatever a result holds, the rules answer: no JSON object is of a form that stops them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Outcome
from inference.profile import load_profiles
from validation.case import Case, Hit
from validation.examples import typed
from validation.rules import Rule, load_rulesets
from workers.check_file import Checked, as_json, judge_given
from workers.given import Given, read_given

PROFILES, RULESETS = load_profiles(), load_rulesets()
DOCUMENT = typed("Company: Northwind Ltd\nReport date: 31 December 2024\nLoans | 5,280,000\nTotal | 91,000,000")
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["5,280,000", "Northwind Ltd", "(5,280,000)", "1/2/2024", "壹佰万元整", "{text}", "1e999", ""])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["label", "amount", "~"]), inner),
    max_leaves=6,
)


@pytest.mark.parametrize("name", PROFILES)
@given(data=st.data())
def test_no_form_of_a_result_stops_the_rules(name: str, data: st.DataObject) -> None:
    profile = PROFILES[name]
    names = st.sampled_from([*profile.schema["properties"], "surplus"])
    result = data.draw(st.dictionaries(names, VALUES, max_size=6))
    read = read_given(json.dumps({"result": result}).encode(), profile.schema["properties"])
    verdict = judge_given(read, DOCUMENT, profile, RULESETS[profile.ruleset])
    assert "rule-failed" not in {finding.rule for finding in verdict.findings}
    checked = Checked("a.pdf", "0", profile, RULESETS[profile.ruleset], DOCUMENT, read, verdict)
    assert json.loads(json.dumps(as_json(checked)))["outcome"] == verdict.outcome


def test_a_rule_that_fails_is_named_and_the_others_speak_all_the_same() -> None:
    def fails(case: Case) -> Any:
        raise TypeError("no such form")
        yield Hit()

    ruleset = RULESETS["common"]
    ruleset = replace(ruleset, rules=(*ruleset.rules, Rule("mine", Outcome.FLAG, "a", "b", fails)))
    verdict = judge_given(Given({"company": 7}), DOCUMENT, PROFILES["risk-report"], ruleset)
    assert {"rule-failed", "schema-violated"} <= {finding.rule for finding in verdict.findings}
    assert verdict.outcome == Outcome.REJECT
    (failed,) = [finding for finding in verdict.findings if finding.rule == "rule-failed"]
    assert "the rule mine failed" in failed.message
