"""A result from anywhere: read from the bytes of a file in the shapes that results have, with what is wrong with it.

    {"company": "Northwind", ...}                        the bare values of the profile's schema
    {"result": {...}, "citations": [...]}                what docmill reads and stores of a document
    {"result": {...}, "fields": [{"path", ...}]}         what GET /v1/jobs/JOB/result answers
    {"finish_reason": "stop", "content": "{...}"}        what a model said; also as {"choices": [{"message": ...}]}

A property of the schema that is called like one of these words is a value, not a wrapping.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from docmill.types import Citation, Finding, Outcome

#: What each finding on the file itself says, in English and Chinese, as rules have it.
MESSAGES: Mapping[str, tuple[str, str]] = {
    "result-not-json": ("the result is not JSON: {}", "结果不是 JSON：{}"),
    "result-truncated": ("the result is cut off: {}", "结果不完整，已被截断：{}"),
    "result-key-twice": (
        "the key {} stands twice: nobody knows which counts",
        "键 {} 出现两次，无法确定以哪个为准",
    ),
    "result-not-object": ("the result is no JSON object but: {}", "结果不是 JSON 对象，而是：{}"),
    "citations-unreadable": ("the citations cannot be read: {}", "无法读取出处：{}"),
}
#: Of a text that is not what it should be, so much is shown.
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Given:
    """`result` is None where none can be had; `citations` is None where the file brings none."""

    result: dict[str, Any] | None
    citations: tuple[Citation, ...] | None = None
    findings: tuple[Finding, ...] = ()


@dataclass
class _Reader:
    findings: list[Finding] = field(default_factory=list)

    def find(self, rule: str, detail: object, outcome: Outcome = Outcome.REJECT, path: str | None = None) -> None:
        self.findings.append(finding_of(rule, detail, outcome, path))

    def parse(self, text: str | bytes) -> Any:
        """The JSON value, or None with a finding that says why there is none."""
        try:
            return json.loads(text, object_pairs_hook=self._object, parse_constant=_refuse)
        except json.JSONDecodeError as error:
            whole = error.doc.rstrip()
            cut = bool(whole) and (error.pos >= len(whole) - 1 or error.msg.startswith("Unterminated string"))
            self.find("result-truncated" if cut else "result-not-json", _where(error, whole))
        except (ValueError, RecursionError) as error:
            self.find("result-not-json", error)
        return None

    def _object(self, pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, value in pairs:
            if key in kept:
                self.find("result-key-twice", key)
            kept[key] = value
        return kept

    def citations(self, cited: Any) -> tuple[Citation, ...]:
        try:
            return msgspec.convert(cited, tuple[Citation, ...])
        except msgspec.ValidationError as error:
            self.find("citations-unreadable", error, Outcome.REVIEW)
            return ()


def read_given(data: bytes, properties: Collection[str]) -> Given:
    """The result that these bytes hold; `properties` are the names of the values that the profile asks for."""
    reader = _Reader()
    value = reader.parse(data)
    said = _said(value, properties)
    if said is not None:
        text, reason = said
        if reason == "length":
            reader.find("result-truncated", "finish_reason=length")
        value = reader.parse(text)
    return replace(_unwrapped(value, properties, reader), findings=tuple(reader.findings))


def finding_of(rule: str, detail: object, outcome: Outcome, path: str | None = None) -> Finding:
    """A finding on the file itself."""
    english, chinese = MESSAGES[rule]
    shown = " ".join(str(detail).split())[: 2 * _SHOWN]
    return Finding(rule, outcome, f"{english.format(shown)} / {chinese.format(shown)}", path)


def _said(value: Any, properties: Collection[str]) -> tuple[str, str | None] | None:
    """A model's own words and why it stopped, where the file holds an answer of one."""
    match value:
        case {"choices": [{"message": {"content": str(text)}, **rest}, *_]} if "choices" not in properties:
            return text, _word(rest.get("finish_reason"))
        case {"content": str(text)} if "content" not in properties:
            return text, _word(value.get("finish_reason"))
    return None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _unwrapped(value: Any, properties: Collection[str], reader: _Reader) -> Given:
    match value:
        case {"result": dict(result)} if "result" not in properties:
            return Given(result, _citations(value, reader))
        case dict():
            return Given(value)
    if value is not None or not reader.findings:
        reader.find("result-not-object", json.dumps(value, ensure_ascii=False)[:_SHOWN])
    return Given(None)


def _citations(value: Mapping[str, Any], reader: _Reader) -> tuple[Citation, ...] | None:
    if isinstance(value.get("citations"), list):
        return reader.citations(value["citations"])
    if isinstance(value.get("fields"), list):
        placed = [one for one in value["fields"] if isinstance(one, dict) and one.get("bbox") and one.get("page")]
        return reader.citations(placed)
    return None


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON value")


def _where(error: json.JSONDecodeError, whole: str) -> str:
    if not whole:
        return "the file is empty"
    return f"{error.msg} at line {error.lineno}, column {error.colno}, near {whole[max(0, error.pos - 20) :][:40]!r}"
