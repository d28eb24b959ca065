"""A grammar in which the grounded fields of a schema can only take text of this part of the document.

The grammar is Lark as llguidance reads it (vLLM's "guidance" backend). Keys come in the order of the schema, without
white space. `number`, `amount`, `date`, `id` and `enum-of-table-column` fields choose among whole candidates;
`verbatim` and `quote` fields copy a run of whole words (of characters in Chinese) from within one piece. Text that is
not grounded may hold no digit: a number that cannot be cited is not written. A field for which the part prints no
candidate can only be null.

`maxLength` counts Latin letters: in a Chinese part half of it is allowed.

The first line is a comment with an answer that the grammar accepts; it is there for logs, tests and the stub engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from docmill.types import Part
from inference.candidates import Candidate, find
from inference.columns import find_columns, key_of
from inference.narrow import Nearness
from inference.text import CJK, Plain, language_of, one_line

SPAN_KINDS = ("verbatim", "quote")
#: Characters of a copied name, of a quotation, and of free text, where the schema gives no maxLength.
LONGEST = {"verbatim": 80, "quote": 160, "free": 160}
#: A Chinese character says as much as two or three Latin letters, and costs a small model as many tokens.
_CHINESE_SHARE = 0.5
EXAMPLE_MARK = "// example: "

#: A word with what holds it together, one Chinese character, or one other sign; never a part of a number.
_CHUNK = re.compile(rf"[{CJK}]|[^\W{CJK}]+(?:[.,'’&/_-][^\W{CJK}]+)*|.")
_FULL_WIDTH_NUMBER = re.compile("[０-９]+(?:[.,．，][０-９]+)*")

#: What a copied text may begin with, as llguidance reads it: not with a comma. The backslash opens an escaped quote.
_OPENING = r"[\p{L}\p{N}(（《“「【$¥￥€£\\]"
#: The signs that JSON escapes; each is a chunk of its own.
_ESCAPED = frozenset('"\\')


@dataclass(frozen=True)
class Grounding:
    """The grammar for one part, and where its candidates stand; `plains[i]` is `part.pieces[i]` as one line."""

    grammar: str
    part: Part
    plains: tuple[Plain, ...]
    candidates: Mapping[str, tuple[Candidate, ...]]


def ground(schema: Mapping[str, Any], part: Part) -> Grounding:
    """Find the candidates that the schema's fields may take in this part, and write the grammar."""
    plains = tuple(one_line(piece.printed.text, cell=piece.table_id is not None) for piece in part.pieces)
    candidates = {**find(plains), **find_columns(schema, part.pieces, plains)}
    share = _CHINESE_SHARE if language_of(part.text) == "zh" else 1.0
    writer = _Writer(candidates, Nearness(plains), share)
    return Grounding(writer.write(schema), part, plains, candidates)


def example_in(grammar: str) -> str | None:
    """The answer that `ground` wrote into the grammar's first line."""
    first = grammar.partition("\n")[0]
    return first.removeprefix(EXAMPLE_MARK) if first.startswith(EXAMPLE_MARK) else None


def chunks(text: str) -> list[str]:
    """The text cut where a copied span may begin or end."""
    found: list[str] = []
    position = 0
    for number in _FULL_WIDTH_NUMBER.finditer(text):
        found += [*_CHUNK.findall(text[position : number.start()]), number.group()]
        position = number.end()
    return found + _CHUNK.findall(text[position:])


@dataclass(frozen=True)
class _Written:
    """The name of a rule, and a value that it accepts."""

    rule: str
    example: Any


#: The words of a field (`x-labels`), and of the list that it is in.
_Words = tuple[str, ...]


@dataclass
class _Writer:
    """Collects the lines of one grammar; a rule that several fields share is written once."""

    candidates: Mapping[str, Sequence[Candidate]]
    nearness: Nearness
    share: float = 1.0
    lines: dict[str, str] = field(default_factory=dict)
    #: The name of a line by its text.
    names: dict[str, str] = field(default_factory=dict)

    def write(self, schema: Mapping[str, Any]) -> str:
        root = self._rule(schema, ())
        if root is None:
            raise ValueError(
                "a required field of the schema can take no value in this part; make grounded fields nullable"
            )
        example = EXAMPLE_MARK + json.dumps(root.example, ensure_ascii=False, separators=(",", ":"))
        body = [f"{name}: {text}" for name, text in self.lines.items()]
        return "\n".join([example, f"start: {root.rule}", *body]) + "\n"

    def _rule(self, schema: Mapping[str, Any], words: _Words) -> _Written | None:
        """The rule of a schema, or None if this part prints nothing that it could take."""
        words = (*schema.get("x-labels", ()), *words)
        if "x-source" in schema:
            written = self._grounded(schema, words)
        elif "enum" in schema or "const" in schema or _type(schema) in {"integer", "number", "boolean", "null"}:
            return self._json(schema)
        elif _type(schema) == "string":
            written = self._free(schema)
        else:
            written = {"object": self._object, "array": self._array}[_type(schema)](schema, words)
        return self._or_null(written, schema)

    def _or_null(self, written: _Written | None, schema: Mapping[str, Any]) -> _Written | None:
        if "null" not in _types(schema):
            return written
        if written is None:
            return _Written('"null"', None)
        return _Written(self._line("or_null", f'{written.rule} | "null"'), written.example)

    def _grounded(self, schema: Mapping[str, Any], words: _Words) -> _Written | None:
        if schema["x-source"] in SPAN_KINDS:
            return self._span(self._longest(schema, schema["x-source"]), words)
        values = self.nearness.values(self.candidates[key_of(schema)], words)
        return _Written(self._line("one_of", f"%json {_json({'enum': values})}"), values[0]) if values else None

    def _span(self, longest: int, words: _Words) -> _Written | None:
        pieces = [chunks(plain.text) for plain in self.nearness.pieces(words)]
        example = next((c for piece in pieces for c in piece if c[0].isalnum() and len(c) <= longest), None)
        if example is None:
            return None
        printed = self._line("PRINTED", f"%regex {_json({'substring_chunks': _escaped(pieces)})}")
        bounded = self._line("COPIED", f"{printed} & {_run(longest)}")
        return _Written(self._line("copied", f'"\\"" {bounded} "\\""'), example)

    def _longest(self, schema: Mapping[str, Any], kind: str) -> int:
        return max(2, int(schema.get("maxLength", LONGEST[kind]) * self.share))

    def _free(self, schema: Mapping[str, Any]) -> _Written:
        longest = self._longest(schema, "free")
        text = self._line("FREE", rf'/[^"\\\x00-\x1f\x7f0-9０-９]{{1,{longest}}}/')
        return _Written(self._line("free", f'"\\"" {text} "\\""'), "none"[:longest])

    def _json(self, schema: Mapping[str, Any]) -> _Written:
        plain = {key: value for key, value in schema.items() if not key.startswith("x-")}
        return _Written(self._line("json", f"%json {_json(plain)}"), _example_of(plain))

    def _object(self, schema: Mapping[str, Any], words: _Words) -> _Written | None:
        parts: list[str] = []
        example: dict[str, Any] = {}
        for name, inner in schema["properties"].items():
            written = self._rule(inner, words)
            if written is None:
                return None
            parts.append(f"{_json(('{' if not parts else ',') + _json(name) + ':')} {written.rule}")
            example[name] = written.example
        return _Written(self._line("object", " ".join([*parts, '"}"'])), example)

    def _array(self, schema: Mapping[str, Any], words: _Words) -> _Written:
        item = self._rule(schema["items"], words)
        if item is None:
            return _Written('"[]"', [])
        more = schema.get("maxItems", 8) - 1
        first = f'"[" {item.rule} ("," {item.rule}){{0,{more}}} "]"'
        nothing = "" if schema.get("minItems", 0) else '"[]" | '
        return _Written(self._line("array", nothing + first), [item.example])

    def _line(self, kind: str, text: str) -> str:
        """The name of the line with this text. Lark tells a terminal from a rule by its capitals."""
        if text not in self.names:
            self.names[text] = name = f"{kind}_{len(self.lines)}"
            self.lines[name] = text
        return self.names[text]


def _escaped(pieces: Sequence[Sequence[str]]) -> list[str]:
    """The chunks of all pieces as they stand inside a JSON string; a line break, which no span crosses, after each."""
    return [chunk if chunk not in _ESCAPED else _json(chunk)[1:-1] for piece in pieces for chunk in (*piece, "\n")]


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    kind = schema.get("type", "string" if "x-source" in schema else "object")
    return [kind] if isinstance(kind, str) else kind


def _type(schema: Mapping[str, Any]) -> str:
    return next((kind for kind in _types(schema) if kind != "null"), "null")


def _run(longest: int) -> str:
    """Starts with a letter, a digit or an opening sign, ends with no space, stays on its piece, is not too long."""
    return rf"/{_OPENING}([^\n]{{0,{max(0, longest - 2)}}}[^ \n])?/"


def _example_of(schema: Mapping[str, Any]) -> Any:
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    return {"integer": 0, "number": 0, "boolean": False, "null": None}[_type(schema)]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
