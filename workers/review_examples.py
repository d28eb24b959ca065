"""Corrections as examples: what a reviewer changed becomes a rule set file that `docmill rules test` runs.

Each correction gives two cases over the pages that its values stand on: the result as read and as corrected. `finds`
pins what the rules say of each today, so that a change of a rule that loses a fault, or doubts what a person has
confirmed, is noticed. Where the rules say the same of both, they do not see the fault: a rule is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml
from sqlalchemy import Row

from docmill.types import Page, PreparedDocument, Table
from inference.profile import Profile, get
from storage import review as queue
from validation.examples import run_examples
from validation.facts import facts_of
from validation.rules import Examples, Ruleset
from workers.judging import locate
from workers.pipeline import load_prepared
from workers.services import Services

#: What parts the cells of a row in an example's document.
_CELL = "|"


@dataclass(frozen=True, slots=True)
class Exported:
    """A rule set file, and the corrections whose fault its rules do not see."""

    text: str
    corrections: int
    unseen: tuple[str, ...]


def export_examples(profile_name: str, use: Services, *, tenant: str | None = None) -> Exported:
    """Every correction of a profile's results as examples for its rule set."""
    profile = get(use.profiles, profile_name)
    ruleset = use.rulesets[profile.ruleset]
    with use.database.begin() as connection:
        rows = queue.corrections(connection, profile=profile_name, tenant=tenant)
    cases = [case for row in rows for case in _cases(row, load_prepared(row.document_id, use), profile)]
    return _file(cases, profile, ruleset)


def _file(cases: Sequence[dict[str, Any]], profile: Profile, ruleset: Ruleset) -> Exported:
    # JSON and back: plain values, whatever mappings the profile is made of.
    schema = json.loads(json.dumps(profile.schema))
    outcomes = run_examples(replace(ruleset, examples=Examples(schema, tuple(cases))))
    pinned = [{**case, "finds": sorted(outcome.found)} for case, outcome in zip(cases, outcomes, strict=True)]
    pairs = zip(pinned[::2], pinned[1::2], strict=True)
    content = {
        "name": f"{ruleset.name}-corrections",
        "version": ruleset.version,
        "extends": [ruleset.name],
        "rules": [],
        **({"examples": {"schema": schema, "cases": pinned}} if pinned else {}),
    }
    return Exported(
        text=yaml.safe_dump(content, allow_unicode=True, sort_keys=False, width=120),
        corrections=len(pinned) // 2,
        unseen=tuple(read["name"] for read, right in pairs if set(read["finds"]) <= set(right["finds"])),
    )


def _cases(row: Row[Any], document: PreparedDocument, profile: Profile) -> Iterator[dict[str, Any]]:
    results = {"as read": row.result_before, "as corrected": row.result_after}
    pages = _pages(results.values(), document, profile)
    for what, result in results.items():
        name = f"{row.name}, review {row.review_id}, {what}"
        yield {"name": name, "document": pages, "result": result, "finds": []}


def _pages(results: Any, document: PreparedDocument, profile: Profile) -> list[str]:
    """The pages on which the values stand, written as examples have them."""
    facts = facts_of(document)
    cited = {citation.page for result in results for citation in locate(result, profile.schema, facts)}
    shown = [page for page in document.pages if page.number in cited] or list(document.pages[:1])
    return ["\n".join(_lines(page)) or " " for page in shown]


def _lines(page: Page) -> Iterator[str]:
    for block in page.blocks:
        if block.table is None:
            yield from (line.replace(_CELL, "¦") for line in block.printed.text.splitlines() if line.strip())
        else:
            yield from _rows(block.table)


def _rows(table: Table) -> Iterator[str]:
    if table.caption:
        yield from (line.replace(_CELL, "¦") for line in table.caption.splitlines() if line.strip())
    texts: Mapping[tuple[int, int], str] = {
        (cell.row, cell.col): " ".join(cell.text.replace(_CELL, "¦").split()) for cell in table.cells
    }
    for row in range(table.rows):
        cells = [texts.get((row, col), "") for col in range(table.cols)]
        if any(cells):
            yield f" {_CELL} ".join(cells) if len(cells) > 1 else f"{cells[0]} {_CELL}"
