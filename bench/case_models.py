"""Cases about a model's answer: the product's validation judges it as it would judge any."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from docmill.errors import DocmillError, OutputTruncated
from docmill.types import Finding, Outcome, Part, PreparedDocument
from inference.engine import Completion, Request
from inference.engines.stub import StubEngine, StubScript
from inference.extract import ExtractConfig, extract
from inference.profile import BUILT_IN, load_profiles
from validation.chinese import chinese_number
from validation.examples import cite, extracted
from validation.facts import facts_of
from validation.numbers import parse_number
from validation.rules import load_rulesets
from validation.validate import validate
from workers.policy import policy_for

#: The words that a profile would give for the fields of the cases' answers.
LABELS: Final = {
    "net_profit": ["净利润", "net profit"],
    "cost": ["营业成本", "cost"],
    "revenue": ["营业收入", "revenue"],
    "total": ["Summe", "total", "合计"],
    "net": ["Rechnungsbetrag", "net"],
    "shipping": ["Versand", "shipping"],
    "loan": ["借款金额", "loan"],
    "deposit": ["保证金", "deposit"],
}
_PERIOD: Final = re.compile(r"_((?:19|20)\d\d)$")
_AMISS: Final = (Outcome.REVIEW, Outcome.REJECT, Outcome.FLAG)


def judged(document: PreparedDocument, answer: Mapping[str, Any], expect: Mapping[str, Any]) -> Iterator[str]:
    """What of an expected judgement does not come."""
    if answer["finish_reason"] == "length":
        yield from _cut_off(document, answer, expect)
        return
    result = json.loads(answer["content"])
    findings = _findings(document, result if isinstance(result, dict) else {"items": result})
    for subject, verdict in expect.get("verdicts", {}).items():
        found = [finding for finding in findings if _concerns(finding, subject, result)]
        if bool(found) == (verdict == "ok"):
            said = ", ".join(sorted({finding.rule for finding in found})) or "nothing"
            yield f"{subject}: expected {verdict}, validation says {said}"
    for text, value in expect.get("values", {}).items():
        number = parse_number(text)
        if number is None or number.value != Decimal(value):
            yield f"{text} is read as {number and number.value}, expected {value} ({chinese_number(text)})"


def _findings(document: PreparedDocument, result: dict[str, Any]) -> list[Finding]:
    schema = _schema(result)
    citations = tuple(cite(result, schema, facts_of(document), {}))
    ruleset = load_rulesets()["risk-report"]
    verdict = validate(extracted(result, citations), document, schema=schema, ruleset=ruleset)
    return [finding for finding in verdict.findings if finding.outcome in _AMISS and finding.path]


def _schema(value: Any, key: str = "") -> dict[str, Any]:
    """A profile's schema for this answer: figures are numbers, all other texts are taken verbatim."""
    if isinstance(value, dict):
        return {"type": "object", "properties": {name: _schema(part, name) for name, part in value.items()}}
    if isinstance(value, list):
        return {"type": "array", "items": _schema(value[0], key) if value else {}}
    period = _PERIOD.search(key)
    labels = LABELS.get(_PERIOD.sub("", key).removesuffix("_cn"), [])
    kind = "number" if parse_number(str(value)) else "verbatim"
    schema = {"type": "string", "x-source": kind, "x-labels": labels}
    return schema | ({"x-periods": [period[1]]} if period else {})


def _concerns(finding: Finding, subject: str, result: Any) -> bool:
    """A finding on the field of this name, on its spelling in words, or on the value that is so printed."""
    path = finding.path or ""
    if path.removesuffix("_cn").endswith(f"/{subject}"):
        return True
    entries = result if isinstance(result, list) else []
    places = [f"/items/{at}/{key}" for at, entry in enumerate(entries) for key in entry if entry[key] == subject]
    return path in places


class _Cut(StubEngine):
    """An engine whose answer ends as the case says."""

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__(StubScript(answers=(answer["content"],)))
        self._ends = str(answer["finish_reason"])

    async def submit(self, request: Request) -> Completion:
        return replace(await super().submit(request), finish_reason=self._ends)


def _cut_off(document: PreparedDocument, answer: Mapping[str, Any], expect: Mapping[str, Any]) -> Iterator[str]:
    """An answer that ran into its limit is never used, and policy tries once more."""
    pieces = tuple(piece for chunk in document.chunks for piece in chunk.pieces)
    part = Part("".join(chunk.text for chunk in document.chunks), document.tokens, pieces)
    profile = next(iter(load_profiles(BUILT_IN).values()))
    try:
        asyncio.run(extract((part,), profile, _Cut(answer), ExtractConfig("case")))
    except OutputTruncated as error:
        yield from _policy(error, expect)
    except DocmillError as error:
        yield f"the answer gives {error.code}, expected output_truncated"
    else:
        yield "the cut answer was used"


def _policy(error: OutputTruncated, expect: Mapping[str, Any]) -> Iterator[str]:
    if expect.get("retry") and policy_for(error).tries < 2:
        yield "policy does not try again"
