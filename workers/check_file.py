"""`docmill validate`: any document and any result, no stack and no database."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from docmill.log import logger, say
from docmill.types import Extraction, Finding, Outcome, PreparedDocument, Source, Verdict
from inference.profile import Profile, get, read_profile
from ingest.accept import IngestConfig, accept
from preprocess.prepare import PrepareConfig, prepare
from validation.fields import at
from validation.rules import Ruleset, load_ruleset
from validation.validate import validate
from workers.given import Given, read_given
from workers.judging import as_read, judge_result
from workers.messages import in_both
from workers.services import Services

log = logger("validate")

#: The version of the answer's form; it is raised when a key changes its meaning or goes.
FORMAT = 1
_WORST_FIRST = (Outcome.REJECT, Outcome.REVIEW, Outcome.FLAG, Outcome.PASS)


@dataclass(frozen=True)
class Checked:
    """A document, what was given as its result, and what the rules say."""

    name: str
    sha256: str
    profile: Profile
    ruleset: Ruleset
    document: PreparedDocument
    given: Given
    verdict: Verdict


def check_file(document: Path, result: Path, profile_name: str, rules: Path | None, use: Services) -> Checked:
    """Judge the result in one file against the PDF in another. Raises DocmillError or OSError if they are unusable."""
    profile = _profile(profile_name, use)
    ruleset = load_ruleset(rules) if rules else use.rulesets[profile.ruleset]
    data, answer = document.read_bytes(), result.read_bytes()
    prepared = read_document(data, document.name, use)
    given = read_given(answer, profile.schema.get("properties", {}))
    verdict = judge_given(given, prepared, profile, ruleset)
    return Checked(document.name, hashlib.sha256(data).hexdigest(), profile, ruleset, prepared, given, verdict)


def judge_given(given: Given, document: PreparedDocument, profile: Profile, ruleset: Ruleset) -> Verdict:
    """The rules' verdict, with what is wrong with the file itself before it."""
    verdict = Verdict(Outcome.PASS, (), (), ruleset.label)
    if given.result is not None:
        verdict = _judged(given, document, profile, ruleset)
    outcomes = [verdict.outcome, *(finding.outcome for finding in given.findings)]
    return replace(verdict, findings=given.findings + verdict.findings, outcome=min(outcomes, key=_WORST_FIRST.index))


def _judged(given: Given, document: PreparedDocument, profile: Profile, ruleset: Ruleset) -> Verdict:
    assert given.result is not None, "the caller has looked"
    try:
        told = profile.instructions.values()
        return judge_result(
            given.result, given.citations, document, schema=profile.schema, ruleset=ruleset, prompt=told
        )
    except Exception as error:
        # A result from outside may have a form that no check foresaw.
        say(log, "rules_failed", level=logging.WARNING, error=True, why=repr(error))
        return _rule_by_rule(as_read(given.result, given.citations or ()), document, profile, ruleset)


def _rule_by_rule(read: Extraction, document: PreparedDocument, profile: Profile, ruleset: Ruleset) -> Verdict:
    """What the rules say that can be applied; of one that cannot nobody knows whether it holds."""
    findings: list[Finding] = []
    for rule in ruleset.rules:
        try:
            alone = validate(read, document, schema=profile.schema, ruleset=replace(ruleset, rules=(rule,)))
            findings += alone.findings
        except Exception as error:
            say(log, "rule_failed", level=logging.WARNING, rule=rule.rule_id, why=repr(error))
            why = f"the rule {rule.rule_id} failed: {error!r} / 规则 {rule.rule_id} 执行出错：{error!r}"
            findings.append(Finding("rule-failed", Outcome.REVIEW, why))
    outcome = min((found.outcome for found in findings), key=_WORST_FIRST.index, default=Outcome.REVIEW)
    return Verdict(outcome, tuple(findings), (), ruleset.label)


def read_document(data: bytes, name: str, use: Services) -> PreparedDocument:
    """Parse a PDF with the settings' limits; where there is no model, lengths are counted in words."""
    accepted = accept(
        data, name=name, tenant=use.settings.tenant, source=Source.CLI, config=IngestConfig(use.settings.max_bytes)
    )
    with tempfile.TemporaryDirectory() as folder:
        return prepare(data, accepted.document_id, _with_tokenizer(use.prepare, Path(folder)))


def _with_tokenizer(config: PrepareConfig, folder: Path) -> PrepareConfig:
    path = config.tokenizer
    if path.is_file() or (path / "tokenizer.json").is_file():
        return replace(config, tokenizer=path.resolve())
    words = Tokenizer(WordLevel({"?": 0}, unk_token="?"))
    words.pre_tokenizer = Whitespace()
    words.save(str(folder / "tokenizer.json"))
    return replace(config, tokenizer=folder)


def _profile(name: str, use: Services) -> Profile:
    """A profile by its name, or by the path of its file."""
    path = Path(name)
    return read_profile(path) if path.suffix in (".yaml", ".yml") else get(use.profiles, name)


# ---------------------------------------------------------------- the answer


def as_json(checked: Checked) -> dict[str, Any]:
    """The answer for programs; docs/review.md has its form."""
    verdict, document = checked.verdict, checked.document
    return {
        "format": FORMAT,
        "outcome": verdict.outcome.value,
        "profile": checked.profile.name,
        "profile_version": checked.profile.version,
        "ruleset": verdict.ruleset,
        "document": {
            "name": checked.name,
            "sha256": checked.sha256,
            "pages": len(document.pages),
            "tables": len(document.tables),
            "warnings": list(document.warnings),
        },
        "findings": [_finding(finding, checked) for finding in verdict.findings],
        "fields": list(_fields(verdict)),
    }


def _finding(finding: Finding, checked: Checked) -> dict[str, Any]:
    value = at(checked.given.result, finding.path) if finding.path else None
    return {
        "rule": finding.rule,
        "severity": finding.outcome.value,
        "message": dict(zip(("en", "zh"), in_both(finding, checked.ruleset.rules), strict=True)),
        "field": finding.path,
        "value": value,
        "page": finding.page,
        "bbox": None if finding.bbox is None else [round(edge, 2) for edge in finding.bbox],
    }


def _fields(verdict: Verdict) -> Iterator[dict[str, Any]]:
    for value in verdict.fields:
        yield {
            "field": value.path,
            "text": value.text,
            "value": None if value.value is None else format(value.value, "f"),
            "date": None if value.date is None else value.date.isoformat(),
            "unit": value.unit,
            "scale": None if value.scale is None else format(value.scale, "f"),
            "page": value.page,
            "bbox": None if value.bbox is None else [round(edge, 2) for edge in value.bbox],
            "table": value.table_id,
            "row": value.row,
            "col": value.col,
            "verdict": value.verdict.value,
            "confidence": value.confidence,
        }
