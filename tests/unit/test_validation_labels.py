"""A value stands beside the words of its field; messages about it fit a table row."""

from dataclasses import replace
from typing import Any

import pytest

from docmill.types import BBox, Citation, Finding, Outcome
from validation.case import Hit
from validation.examples import cite, extracted, typed
from validation.facts import facts_of
from validation.fields import descriptions
from validation.labels import labels_of, printed_labels, search
from validation.rules import Rule, Ruleset, load_rulesets
from validation.validate import validate

RULESETS = load_rulesets()
LABELS = ("identity number", "account no", "account", "账号", "身份证号")
SCHEMA = {"properties": {"account": {"type": ["string", "null"], "x-source": "id", "x-labels": [*LABELS]}}}
AMOUNTS = {
    "properties": {
        "key_amounts": {
            "type": "array",
            "items": {
                "properties": {
                    "label": {"type": "string", "x-source": "verbatim"},
                    "amount": {"type": "string", "x-source": "number"},
                }
            },
        }
    }
}
OURS = {"beside-label", "label-as-value", "amount-label-apart"}


def findings(
    document: str,
    result: dict[str, Any],
    schema: dict[str, Any] = SCHEMA,
    ruleset: str = "customer-screening",
    instead: dict[str, str] | None = None,
) -> list[Finding]:
    """What the rules on labels find in a result whose citations are right, or are of the texts in `instead`."""
    parsed = typed(document)
    citations = tuple(cite(result, schema, facts_of(parsed), instead or {}))
    verdict = validate(extracted(result, citations), parsed, schema=schema, ruleset=RULESETS[ruleset])
    return [finding for finding in verdict.findings if finding.rule in OURS]


@pytest.mark.parametrize(
    "document",
    [
        "Account: 4410-2298",
        "ACCOUNT NO. 4410-2298",
        "Account holder  Ltd\nAccount no.  4410-2298\nCurrency  USD",
        "The sum left the account with the number 4410-2298 on Monday.",
        "账　号：4410-2298",
        "资金账号 4410-2298",
        "Ａccount： 4410-2298",
        "Account no.\n4410-2298",
        "Name   Account no.\nBo     4410-2298",
        "Account no. | 4410-2298",
        "Holder | Bo | Account no. | 4410-2298",
        "Holder | Account (USD) | Branch\nBo | 4410-2298 | Leeds\nAl | 17-3 | York",
        "户名 | 账号\n王小明 | 4410-2298",
        "Account 17-3 is closed.\nSee 4410-2298.\nAccount: 4410-2298",
    ],
)
def test_a_value_beside_a_label_of_its_field_is_silent(document: str) -> None:
    assert findings(document, {"account": "4410-2298"}) == []


@pytest.mark.parametrize(
    "document",
    [
        "Account: 17-3\nCase: 4410-2298",
        "Close the account.\n\n\nCase 4410-2298 · do not disclose",
        "Case 4410-2298\nAccount: 17-3",
        "Case | 4410-2298\nAccount | 17-3",
        "Account | Case\n17-3 | 4410-2298",
        "The account was closed. After a while the case 4410-2298 was opened.",
        "账号：17-3\n报告编号：4410-2298",
        "本账号已销户。编号 4410-2298",
        "Accounting code: 4410-2298\n\n\nAccount: 17-3",
    ],
)
def test_a_value_far_from_every_printed_label_is_for_review(document: str) -> None:
    (finding,) = findings(document, {"account": "4410-2298"})
    assert (finding.rule, finding.outcome, finding.path) == ("beside-label", Outcome.REVIEW, "/account")
    assert "4410-2298" in finding.message and "/account" in finding.message and finding.bbox is not None
    assert "account" in finding.message.lower() or "账号" in finding.message


def test_a_document_without_any_label_of_the_field_gives_nothing_to_compare_with() -> None:
    assert findings("IBAN 4410-2298", {"account": "4410-2298"}) == []


def test_a_label_that_is_a_part_of_the_value_is_not_taken_for_a_label() -> None:
    facts = facts_of(typed("北方控股有限公司\nIssuer"))
    assert printed_labels(("公司", "issuer"), "北方控股有限公司", facts) == ("Issuer",)


def test_words_before_a_colon_are_a_label_and_no_value() -> None:
    (finding,) = findings("Case no: 17-3", {"account": "Case no"})
    assert (finding.rule, finding.outcome) == ("label-as-value", Outcome.REVIEW)


def test_a_null_or_an_ungrounded_value_is_no_matter_of_labels() -> None:
    assert findings("Account: 17-3", {"account": None}) == []
    assert findings("Account: 17-3", {"account": "99-9"}) == []


def test_the_same_fault_is_a_flag_in_a_risk_report() -> None:
    (finding,) = findings("Account: 17-3\nCase 4410-2298", {"account": "4410-2298"}, ruleset="risk-report")
    assert finding.outcome == Outcome.FLAG


def test_without_a_citation_the_place_where_the_value_was_found_counts() -> None:
    document = typed("Account: 17-3\nCase 4410-2298")
    for account, expected in (("17-3", set()), ("4410-2298", {"beside-label"})):
        verdict = validate(
            extracted({"account": account}, ()), document, schema=SCHEMA, ruleset=RULESETS["customer-screening"]
        )
        assert {finding.rule for finding in verdict.findings} & OURS == expected


def test_a_citation_that_leads_nowhere_is_left_to_its_own_rule() -> None:
    nowhere = (Citation("/account", "4410-2298", 7, BBox(1, 1, 2, 2)),)
    document = typed("Account: 17-3\nCase 4410-2298")
    verdict = validate(
        extracted({"account": "4410-2298"}, nowhere), document, schema=SCHEMA, ruleset=RULESETS["customer-screening"]
    )
    assert not {finding.rule for finding in verdict.findings} & OURS


TABLE = "Loans | Gross | Share\nOverdue | 5,280 | 4%\nSound | 91,000 | 96%\n\nNet debt was 3,700 in May."


@pytest.mark.parametrize(
    ("label", "amount", "apart"),
    [
        ("Overdue", "5,280", False),
        ("Gross", "91,000", False),
        ("Net debt", "3,700", False),
        ("Overdue", "91,000", True),
        ("Share", "5,280", True),
        ("Net debt", "5,280", True),
        ("Sound", "3,700", True),
    ],
)
def test_an_amount_stands_in_the_row_column_or_block_of_its_label(label: str, amount: str, apart: bool) -> None:
    result = {"key_amounts": [{"label": label, "amount": amount}]}
    found = findings(TABLE, result, AMOUNTS, "risk-report")
    assert [(one.rule, one.outcome, one.path) for one in found] == [
        ("amount-label-apart", Outcome.REVIEW, "/key_amounts/0/amount")
    ] * apart


def test_labels_are_found_as_whole_words_whatever_their_case_width_and_blanks() -> None:
    labels = labels_of(("account no", "账号"))
    assert all([*search(labels, text.lower())] for text in ("ACCOUNT  NO.", "Account\nNo", "账 号", "资金账号："))
    assert not any([*search(labels, text.lower())] for text in ("Account notes", "subaccount no", "账单号"))


# ---------------------------------------------------------------- the prompt's outline


PROSE = {"properties": {"summary": {"type": "string", "description": "one sentence, without figures"}}}


@pytest.mark.parametrize(
    ("summary", "copied"),
    [
        ("One sentence, without figures", True),
        ("ONE SENTENCE – without figures!", True),
        ("One sentence without figures: the debtor is late.", False),
        ("The debtor is late.", False),
        ("", False),
    ],
)
def test_prose_that_is_the_outline_of_the_prompt_is_for_review(summary: str, copied: bool) -> None:
    verdict = validate(extracted({"summary": summary}, ()), typed("x"), schema=PROSE, ruleset=RULESETS["common"])
    assert [(one.rule, one.outcome) for one in verdict.findings] == [("prompt-copied", Outcome.REVIEW)] * copied


def test_descriptions_are_found_at_any_depth() -> None:
    nested = {"properties": {"a": {"description": "x", "items": {"properties": {"b": {"description": "y"}}}}}}
    assert list(descriptions(nested)) == ["x", "y"]


# ---------------------------------------------------------------- messages


def message(rule: Rule, hit: Hit) -> str:
    ruleset = Ruleset("mine", "1", "mine@1", (replace(rule, judge=lambda _: iter([hit])),))
    (finding,) = validate(extracted({}, ()), typed("x"), schema={}, ruleset=ruleset).findings
    return finding.message


@pytest.mark.parametrize(
    "rule", {r.rule_id: r for s in RULESETS.values() for r in s.rules}.values(), ids=lambda r: r.rule_id
)
def test_every_message_fits_a_table_row_however_long_the_values(rule: Rule) -> None:
    long = Hit(path="/key_amounts/2/amount", text="a long text\n" * 40, detail="some detail " * 40)
    for hit in (long, replace(long, broken=True)):
        assert len(message(rule, hit)) <= 160
        assert "\n" not in message(rule, hit)


def test_a_short_value_is_shown_whole_and_a_long_one_is_cut_with_a_mark() -> None:
    rule = next(rule for rule in RULESETS["common"].rules if rule.rule_id == "quote-ungrounded")
    assert "“it owes”" in message(rule, Hit(text="it owes"))
    assert "…”" in message(rule, Hit(text="it owes " * 30))


def test_a_list_of_terms_is_shortened_to_the_first_and_the_number_of_the_others() -> None:
    verdict = validate(
        extracted({"summary": "It has three parts."}, ()), typed("x"), schema={}, ruleset=RULESETS["risk-report"]
    )
    (said,) = (finding.message for finding in verdict.findings if finding.rule == "risk-words-missing")
    assert "risk, default, overdue … +22" in said and "going concern" not in said
