"""The examples that a ruleset carries, run: each names the rules that must speak, and no other may speak.

A document of an example is written as text: each line a block, a line with | a row of a table (consecutive rows make
one table, headed by the first of them if no digit stands in it). Its characters get
boxes of equal size, so that citations can be judged as those of a real page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from docmill.types import (
    BBox,
    Block,
    BlockKind,
    Cell,
    Citation,
    Extraction,
    Page,
    PreparedDocument,
    Printed,
    Region,
    Table,
    Usage,
)
from validation.facts import Facts, facts_of
from validation.fields import leaves
from validation.grounding import Ground, ground
from validation.rules import Ruleset
from validation.validate import validate

#: A4 in points, lines and characters of a typewriter.
_WIDTH, _HEIGHT = 595.0, 842.0
_MARGIN, _LINE, _CHARACTER, _SIZE = 40.0, 14.0, 4.0, 10.0
_COLUMN = 24


@dataclass(frozen=True, slots=True)
class ExampleOutcome:
    """What an example found beside what it says that it finds."""

    ruleset: str
    name: str
    expected: frozenset[str]
    found: frozenset[str]

    @property
    def passed(self) -> bool:
        return self.expected == self.found

    def __str__(self) -> str:
        missing, extra = sorted(self.expected - self.found), sorted(self.found - self.expected)
        return f"{self.ruleset}: {self.name}: not found: {missing}, found although not expected: {extra}"


def run_examples(ruleset: Ruleset) -> tuple[ExampleOutcome, ...]:
    """Judge every example of a ruleset."""
    if ruleset.examples is None:
        return ()
    return tuple(_run(ruleset, ruleset.examples.schema, case) for case in ruleset.examples.cases)


def _run(ruleset: Ruleset, schema: Mapping[str, Any], case: Mapping[str, Any]) -> ExampleOutcome:
    document = typed(*case["document"])
    if "fields" in case:
        schema = {**schema, "properties": {**schema["properties"], **case["fields"]}}
    citations = tuple(cite(case["result"], schema, facts_of(document), case.get("cited", {})))
    extraction = extracted(case["result"], citations, finish_reason=case.get("finish_reason", "stop"))
    verdict = validate(extraction, document, schema=schema, ruleset=ruleset, prompt=case.get("prompt", ()))
    found = frozenset(finding.rule for finding in verdict.findings)
    return ExampleOutcome(ruleset.name, case["name"], frozenset(case["finds"]), found)


def typed(*pages: str) -> PreparedDocument:
    """A document of these pages, each a text as this module's docstring describes."""
    built = tuple(_page(number, text) for number, text in enumerate(pages, 1))
    return PreparedDocument("doc_example", built, chunks=(), tokens=0, signature=b"", parser="example")


def cite(
    result: Mapping[str, Any], schema: Mapping[str, Any], facts: Facts, instead: Mapping[str, str]
) -> Iterator[Citation]:
    """A citation for each value that is in the document; `instead` names texts to cite at other paths' values."""
    for leaf in leaves(result, schema):
        standing = ground(leaf, facts) if leaf.grounded else None
        places = facts.find(instead[leaf.path]) if leaf.path in instead else standing.places if standing else ()
        if not places or standing is None or (standing.ground != Ground.FOUND and leaf.path not in instead):
            continue
        first = places[0]
        text, box = first.piece.printed.text[first.start : first.stop], first.bbox
        if box is not None:
            yield Citation(leaf.path, text, first.page, box, first.piece.table_id, first.piece.row, first.piece.col)


def extracted(result: Mapping[str, Any], citations: tuple[Citation, ...], *, finish_reason: str = "stop") -> Extraction:
    """A result as if a model had read it."""
    return Extraction(
        result=dict(result),
        citations=citations,
        usage=Usage(),
        engine="example",
        model="example",
        precision="example",
        prompt_sha256="",
        seed=0,
        finish_reason=finish_reason,
        raw="",
    )


def _page(number: int, text: str) -> Page:
    lines = list(enumerate(text.splitlines()))
    blocks: list[Block] = []
    for is_row, group in groupby(lines, key=lambda line: "|" in line[1]):
        if is_row:
            blocks.append(_table(number, list(group)))
        else:
            blocks.extend(_line(number, row, line) for row, line in group if line.strip())
    return Page(number, _WIDTH, _HEIGHT, tuple(blocks))


def _line(page: int, row: int, text: str) -> Block:
    printed = _typed(row, 0, text)
    return Block(BlockKind.PARAGRAPH, page, _outline(printed), printed)


def _table(page: int, lines: list[tuple[int, str]]) -> Block:
    cells = [
        Cell(row, col, printed, page, _outline(printed))
        for row, (line, text) in enumerate(lines)
        for col, part in enumerate(text.split("|"))
        if (printed := _typed(line, col * _COLUMN, part.strip())).text
    ]
    box = BBox(_MARGIN, _MARGIN + lines[0][0] * _LINE, _WIDTH - _MARGIN, _MARGIN + lines[-1][0] * _LINE + _SIZE)
    cols = 1 + max((cell.col for cell in cells), default=0)
    identity = f"p{page}l{lines[0][0]}"
    table = Table(identity, tuple(cells), len(lines), cols, (Region(page, box),), "example", _header_rows(cells))
    return Block(BlockKind.TABLE, page, box, Printed(""), table)


def _header_rows(cells: list[Cell]) -> int:
    """The first row heads the table if no cell of it has a digit."""
    return 0 if any(character.isdigit() for cell in cells if cell.row == 0 for character in cell.text) else 1


def _typed(row: int, column: int, text: str) -> Printed:
    top = _MARGIN + row * _LINE
    left = [_MARGIN + (column + index) * _CHARACTER for index in range(len(text))]
    return Printed.of([(c, BBox(x, top, x + _CHARACTER, top + _SIZE)) for c, x in zip(text, left, strict=True)])


def _outline(printed: Printed) -> BBox:
    return printed.box() or BBox(0.0, 0.0, 0.0, 0.0)
