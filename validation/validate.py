"""Extraction → Verdict: the rules' findings, the worst of them, and the values normalised."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import Decimal
from typing import Any

from docmill.types import (
    Citation,
    Extraction,
    FieldValue,
    Finding,
    Outcome,
    PreparedDocument,
    Verdict,
)
from validation.case import Case, Hit
from validation.dates import parse_date
from validation.facts import Facts, facts_of
from validation.fields import Leaf
from validation.grounding import Ground
from validation.numbers import Number, parse_number
from validation.places import Place
from validation.relative import document_date, resolve
from validation.rules import Rule, Ruleset

#: A message is a cell of a table: so many characters, in both languages together.
_MESSAGE_LENGTH = 160
_VALUE_LENGTHS = range(_MESSAGE_LENGTH, 0, -1)
_WORST_FIRST = (Outcome.REJECT, Outcome.REVIEW, Outcome.FLAG, Outcome.PASS)


def validate(
    extraction: Extraction,
    document: PreparedDocument,
    *,
    schema: Mapping[str, Any],
    ruleset: Ruleset,
    prompt: Iterable[str] = (),
) -> Verdict:
    """Apply a ruleset to what was read of a document. What the reading says of itself comes first.

    `schema` is the profile's, with its `x-source` marks; `prompt` is what the model was told besides the document.
    """
    case = Case(extraction, facts_of(document), schema, tuple(prompt))
    found = (finding for rule in ruleset.rules for finding in _apply(rule, case))
    findings = (*extraction.findings, *found)
    return Verdict(
        outcome=_worst(finding.outcome for finding in findings),
        findings=findings,
        fields=tuple(_normalise(case, findings)),
        ruleset=ruleset.label,
    )


# ---------------------------------------------------------------- findings


def _apply(rule: Rule, case: Case) -> Iterator[Finding]:
    return (_finding(rule, hit) for hit in rule.judge(case))


def _finding(rule: Rule, hit: Hit) -> Finding:
    """A rule that could not be applied is at least a matter for review: nobody knows whether it holds."""
    return Finding(
        rule=rule.rule_id,
        outcome=_worst((rule.severity, Outcome.REVIEW)) if hit.broken else rule.severity,
        message=_message(rule, hit),
        path=hit.path,
        page=hit.page,
        bbox=hit.bbox,
    )


def _message(rule: Rule, hit: Hit) -> str:
    """The message in both languages; the values that it names are cut as far as it needs to fit its length."""
    written = (_filled(rule, hit, length) for length in _VALUE_LENGTHS)
    return next((message for message in written if len(message) <= _MESSAGE_LENGTH), _filled(rule, hit, 1))


def _filled(rule: Rule, hit: Hit, length: int) -> str:
    if hit.broken:
        return f"the rule could not be applied / 规则无法执行: {_short(hit.detail, length)}"
    values = {"text": hit.text, "detail": hit.detail, "path": hit.path or ""}
    shown = {name: _short(value, length) for name, value in values.items()}
    return f"{rule.message_en.format(**shown)} / {rule.message_zh.format(**shown)}"


def _short(text: str, length: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= length else f"{line[: length - 1]}…"


def _worst(outcomes: Iterable[Outcome]) -> Outcome:
    return min((Outcome.PASS, *outcomes), key=_WORST_FIRST.index)


# ---------------------------------------------------------------- fields


def _normalise(case: Case, findings: tuple[Finding, ...]) -> Iterator[FieldValue]:
    standing = {
        grounding.leaf.path: grounding
        for grounding in case.grounded
        if grounding.meant or grounding.ground == Ground.FOUND
    }
    for leaf in case.leaves:
        ground = standing.get(leaf.path)
        where = case.citations.get(leaf.path) or _cited(leaf, ground.places if ground else ())
        number = (ground.number_at(case.cited(leaf.path)) if ground else None) or _number(leaf)
        day = _day(leaf, case.facts) if leaf.source == "date" and leaf.grounded else None
        yield _field(leaf, where, number, day, _verdict(leaf.path, findings))


def _day(leaf: Leaf, facts: Facts) -> date | None:
    """The day that a date is: by itself, by the order of the document's other dates, or seen from its date."""
    dated = parse_date(leaf.text)
    if dated is not None:
        days = dated.days(facts.day_first) if dated.ambiguous else dated.readings
        return days[0] if len(days) == 1 else None
    anchor = document_date(facts)
    meant = resolve(leaf.text, anchor) if anchor else None
    return meant.first if meant and meant.first == meant.last else None


def _field(leaf: Leaf, where: Citation | None, number: Number | None, day: date | None, verdict: Outcome) -> FieldValue:
    return FieldValue(
        path=leaf.path,
        text=leaf.text,
        value=number.value if number else None,
        date=day,
        unit=number.unit if number else None,
        scale=number.scale if number else None,
        page=where.page if where else None,
        bbox=where.bbox if where else None,
        table_id=where.table_id if where else None,
        row=where.row if where else None,
        col=where.col if where else None,
        verdict=verdict,
    )


def _number(leaf: Leaf) -> Number | None:
    """The value of a number field, and of a JSON number."""
    if isinstance(leaf.value, int | float) and not isinstance(leaf.value, bool):
        return Number(Decimal(leaf.text))
    return parse_number(leaf.text) if leaf.source == "number" else None


def _cited(leaf: Leaf, places: tuple[Place, ...]) -> Citation | None:
    """Where the value was found, for a result that came without citations."""
    if not places or places[0].bbox is None:
        return None
    piece = places[0].piece
    return Citation(leaf.path, leaf.text, piece.page, places[0].bbox, piece.table_id, piece.row, piece.col)


def _verdict(path: str, findings: tuple[Finding, ...]) -> Outcome:
    """The worst finding on the value or on an object or list that holds it."""
    return _worst(finding.outcome for finding in findings if finding.path and f"{path}/".startswith(f"{finding.path}/"))
