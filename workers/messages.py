"""A finding's message taken apart: its Chinese, its English, and what of it a model is told."""

from __future__ import annotations

from collections.abc import Sequence

from docmill.types import Finding, Outcome
from inference.prompt import Objections
from validation.rules import Rule

#: What stands between the languages of a message.
_MARK = " / "
_BROKEN = f"the rule could not be applied{_MARK}"
#: A model reads a short list of faults; a long one takes the room of the document.
_MOST_OBJECTIONS = 8
#: What a model can mend: the rest are doubts for a person.
_TOLD = (Outcome.REJECT, Outcome.REVIEW)


def in_both(finding: Finding, rules: Sequence[Rule]) -> tuple[str, str]:
    """The message in English and in Chinese. The values in it may hold the mark between the two themselves."""
    if finding.message.startswith(_BROKEN):
        english, _, chinese = finding.message.partition(_MARK)
        return f"{english}: {chinese.partition(': ')[2]}", chinese
    rule = next((rule for rule in rules if rule.rule_id == finding.rule), None)
    own = [text.count(_MARK) for text in (rule.message_en, rule.message_zh)] if rule else [0, 0]
    parts = finding.message.split(_MARK)
    # Both languages name the same values, so what marks the values hold is the same on either side.
    middle = 1 + own[0] + (len(parts) - 2 - sum(own)) // 2
    return _MARK.join(parts[:middle]), _MARK.join(parts[middle:])


def objections_of(findings: Sequence[Finding], rules: Sequence[Rule]) -> Objections:
    """What a model is told of an answer that the rules rejected, the gravest first."""
    told = sorted((finding for finding in findings if finding.outcome in _TOLD), key=lambda f: _TOLD.index(f.outcome))
    both = [(finding.path or "-", in_both(finding, rules)) for finding in told[:_MOST_OBJECTIONS]]
    return {
        "en": tuple(f"{path}: {english}" for path, (english, _) in both),
        "zh": tuple(f"{path}: {chinese}" for path, (_, chinese) in both),
    }
