"""Rulesets: YAML files to rules that can be applied.

A ruleset has a name and a version and may extend others: it inherits their rules, replaces those whose id it uses
again, and leaves out those that it names under `without`. Any mistake in a file is a BrokenRule that names file, line,
rule and reason, when the file is loaded, never when a document is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from string import Formatter
from types import MappingProxyType
from typing import Any, NoReturn

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from docmill.errors import BrokenRule
from docmill.types import Outcome
from validation.case import Judge
from validation.checks import CHECKS
from validation.expressions import expression
from validation.statutes import known_statutes

RULESETS = Path(__file__).parent / "rulesets"
_FORMAT = RULESETS / "format.schema.yaml"
#: The other YAML files of the folder (the format, tables) have two suffixes.
_RULESET_FILES = "[!.]*.yaml"

#: What a message may be filled with.
PLACEHOLDERS = frozenset({"text", "detail", "path"})


@dataclass(frozen=True, slots=True)
class Rule:
    """`message` is for a person, in both languages, with placeholders {text}, {detail} and {path}."""

    rule_id: str
    severity: Outcome
    message_en: str
    message_zh: str
    judge: Judge


@dataclass(frozen=True, slots=True)
class Examples:
    """Cases that a ruleset is tested with, as they stand in its file: see `validation/examples.py`."""

    schema: Mapping[str, Any]
    cases: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Ruleset:
    """`label` is what a verdict records: name and version, then those of its parents."""

    name: str
    version: str
    label: str
    rules: tuple[Rule, ...]
    examples: Examples | None = None


def load_rulesets(folder: Path = RULESETS) -> Mapping[str, Ruleset]:
    """All rulesets of a folder by name; one may extend another of the folder or a built-in one."""
    return _built_in() if folder == RULESETS else _load(folder, _built_in())


def load_ruleset(file: Path) -> Ruleset:
    """The ruleset of one file; it may extend built-in ones and those of its own folder."""
    source, built_in = _read(file), _built_in()
    known = built_in if all(parent in built_in for parent in source.parents) else _load(file.parent, built_in)
    return _build(source, known)


@cache
def _built_in() -> Mapping[str, Ruleset]:
    return MappingProxyType(_load(RULESETS, {}))


def _load(folder: Path, known: Mapping[str, Ruleset]) -> dict[str, Ruleset]:
    files = sorted(path for path in folder.glob(_RULESET_FILES) if len(path.suffixes) == 1)
    waiting = [_read(path) for path in files]
    known = dict(known)
    while waiting:
        ready = [source for source in waiting if all(parent in known for parent in source.parents)]
        if not ready:
            _refuse_parents(waiting[0], known)
        known |= {source.name: _build(source, known) for source in ready}
        waiting = [source for source in waiting if source not in ready]
    return known


# ---------------------------------------------------------------- files


class _TextLoader(yaml.SafeLoader):
    """Leaves 2024-03-15 the text that a result would hold, where YAML makes it a date."""


_TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class _Source:
    """A file as read: its content, and the line on which each of its rules begins."""

    path: Path
    content: Mapping[str, Any]
    lines: tuple[int, ...]

    @property
    def name(self) -> str:
        return str(self.content["name"])

    @property
    def parents(self) -> tuple[str, ...]:
        return tuple(self.content.get("extends", ()))

    def refuse(self, reason: str, rule: int | None = None) -> NoReturn:
        """Raise the error for this file, or for its rule of this number."""
        where = str(self.path.name)
        if rule is not None and rule < len(self.lines):
            entry = self.content["rules"][rule]
            identity = entry.get("id", f"number {rule + 1}") if isinstance(entry, dict) else f"number {rule + 1}"
            where += f", line {self.lines[rule]}, rule {identity}"
        raise BrokenRule(f"{where}: {reason}")


def _read(path: Path) -> _Source:
    try:
        loader = _TextLoader(path.read_text("utf-8"))
        node = loader.get_single_node()
        content = None if node is None else loader.construct_document(node)
    except (yaml.YAMLError, UnicodeDecodeError) as fault:
        raise BrokenRule(f"{path.name}: not YAML: {' '.join(str(fault).split())}") from fault
    source = _Source(path, content if isinstance(content, dict) else {}, _lines(node))
    error = best_match(_format().iter_errors(content))
    if error is not None:
        location = list(error.absolute_path)
        rule = location[1] if location[:1] == ["rules"] and len(location) > 1 else None
        place = "/".join(map(str, location[2:] if rule is not None else location))
        source.refuse(f"{place + ': ' if place else ''}{error.message}", rule if isinstance(rule, int) else None)
    return source


def _lines(node: yaml.Node | None) -> tuple[int, ...]:
    if not isinstance(node, yaml.MappingNode):
        return ()
    rules = next((value for key, value in node.value if key.value == "rules"), None)
    return tuple(item.start_mark.line + 1 for item in rules.value) if isinstance(rules, yaml.SequenceNode) else ()


@cache
def _format() -> Draft202012Validator:
    return Draft202012Validator(yaml.safe_load(_FORMAT.read_text("utf-8")))


# ---------------------------------------------------------------- rules


def _build(source: _Source, known: Mapping[str, Ruleset]) -> Ruleset:
    parents = [known[name] for name in source.parents]
    rules = {rule.rule_id: rule for parent in parents for rule in parent.rules}
    for unwanted in source.content.get("without", ()):
        if rules.pop(unwanted, None) is None:
            source.refuse(f"without: {unwanted} is no rule of {', '.join(source.parents) or 'a parent'}")
    rules |= {rule.rule_id: rule for rule in _rules(source)}
    examples = source.content.get("examples")
    version = source.content["version"]
    return Ruleset(
        name=source.name,
        version=version,
        label=" ".join([f"{source.name}@{version}", *(parent.label for parent in parents)]),
        rules=tuple(rules.values()),
        examples=Examples(examples["schema"], tuple(examples["cases"])) if examples else None,
    )


def _rules(source: _Source) -> Iterator[Rule]:
    seen: set[str] = set()
    for number, entry in enumerate(source.content["rules"]):
        if entry["id"] in seen:
            source.refuse("the id is used twice in this file", number)
        seen.add(entry["id"])
        for language in ("en", "zh"):
            _refuse_placeholders(source, number, entry["message"][language])
        yield Rule(
            rule_id=entry["id"],
            severity=Outcome(entry["severity"]),
            message_en=entry["message"]["en"],
            message_zh=entry["message"]["zh"],
            judge=_judge_of_check(source, number, entry) if "check" in entry else _judge(source, number, entry),
        )


def _judge_of_check(source: _Source, number: int, entry: Mapping[str, Any]) -> Judge:
    check = CHECKS.get(entry["check"])
    if check is None:
        source.refuse(f"there is no check {entry['check']}: known are {', '.join(sorted(CHECKS))}", number)
    parameters = entry.get("with", {})
    error = best_match(Draft202012Validator(check.schema).iter_errors(parameters))
    if error is not None:
        source.refuse(f"with: {'/'.join(map(str, error.absolute_path))} {error.message}", number)
    return partial(check.run, **_with_table(source, number, parameters))


def _with_table(source: _Source, number: int, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
    """A table of statutes stands beside its ruleset, and is read when that is loaded."""
    if "table" not in parameters:
        return parameters
    path = source.path.parent / parameters["table"]
    try:
        known_statutes(path)
    except ValueError as fault:
        source.refuse(f"with: table: {fault}", number)
    return {**parameters, "table": str(path)}


def _judge(source: _Source, number: int, entry: Mapping[str, Any]) -> Judge:
    try:
        return expression(entry["holds"], each=entry.get("each"), path=entry.get("path"))
    except ValueError as error:
        source.refuse(f"holds: {' '.join(str(error).split())}", number)


def _refuse_placeholders(source: _Source, number: int, message: str) -> None:
    try:
        names = {name for _, name, _, _ in Formatter().parse(message) if name is not None}
    except ValueError as error:
        source.refuse(f"message: {error}", number)
    if names - PLACEHOLDERS:
        unknown, known = ", ".join(sorted(names - PLACEHOLDERS)), ", ".join(sorted(PLACEHOLDERS))
        source.refuse(f"message: unknown placeholder {unknown}: known are {known}", number)


def _refuse_parents(source: _Source, known: Mapping[str, Ruleset]) -> NoReturn:
    missing = ", ".join(parent for parent in source.parents if parent not in known)
    source.refuse(f"extends: {missing} is not there, or extends this ruleset in turn")
