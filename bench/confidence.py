"""Confidence against rightness: values of real documents, some with a planted fault, scored and binned.

    python -m bench.confidence [FOLDER_OR_PDF ...]        the samples by default

Right values are cells with the words of their row, and values beside a label in running text. One in four carries a
fault: the cell of another row or another column, the value of another label, a changed digit, a power of ten, a sign.
The weights are fitted on half of the documents; the other half says whether the weights in the code are calibrated.
Note the base rate: with fewer faults than one in four, all confidences are a little too low, and with more too high.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.papers import Paper, papers
from bench.report import Figure, finish, show
from docmill.types import BBox, Cell, Citation, Extraction, PreparedDocument, Usage
from validation.case import Case
from validation.confidence import WEIGHTS, Evidence, Weights, calibrate, confidence, evidence_of
from validation.facts import Facts, facts_of
from validation.grid import Grid
from validation.numbers import parse_number
from validation.rules import load_rulesets
from validation.validate import validate

SAMPLES: Final = Path(__file__).parents[1] / "samples" / "inbox"
FAULTS: Final = 0.25
ITEMS: Final = 6
RESULTS: Final = 30
#: Fitted by what planted faults can tell; the other weights are set.
FITTED: Final = ("bias", "absent", "label", "astray", "unique", "flagged", "doubted")
#: The known weights are drawn towards what is in the code, so that rare evidence does not run away.
PULL: Final = 1.0
_LABELLED: Final = re.compile(r"(?:^|\n)\s*([^\d\n:：|]{2,30}?)\s*[:：]\s*((?:[A-Z]{3} |[¥$€])?\d[\d,.]*\d)(?![\d%])")


@dataclass(frozen=True)
class Value:
    """One value of a result: what it says, where it is cited, and whether it is right."""

    label: str
    text: str
    citation: tuple[int, BBox, str | None, int | None, int | None] | None
    kind: str


@dataclass(frozen=True)
class Numbers:
    """A table and its numbers."""

    grid: Grid
    cells: list[Cell]


@dataclass(frozen=True)
class Scored:
    document: str
    kind: str
    evidence: Evidence

    @property
    def right(self) -> bool:
        return self.kind == "right"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", type=Path, nargs="*", default=[SAMPLES])
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    scored = [one for paper in papers(asked.paths) for one in score(paper, random.Random(f"{asked.seed} {paper.name}"))]
    if not scored:
        print("confidence: no document with a table or a labelled number: FAIL")
        return 1
    training, held_out = halves(scored)
    fitted = fit(training)
    report(training, held_out, fitted)
    judged = calibrate([(confidence(one.evidence), one.right) for one in held_out])
    refitted = calibrate([(confidence(one.evidence, fitted), one.right) for one in held_out])
    figures = [
        Figure("values", len(scored), ">= 500"),
        Figure("held_out", len(held_out)),
        Figure("ece", judged.error, "<= 0.05"),
        Figure("ece_refitted", refitted.error),
        Figure("brier", judged.brier),
        Figure("auc", auc(held_out), ">= 0.8"),
    ]
    return finish("confidence", figures, {"bins": [asdict(one) for one in judged.bins], "fitted": asdict(fitted)})


def halves(scored: Sequence[Scored]) -> tuple[list[Scored], list[Scored]]:
    """By document, so that no document is on both sides."""
    names = sorted({one.document for one in scored})
    random.Random(0).shuffle(names)
    held = set(names[::2])
    return [one for one in scored if one.document not in held], [one for one in scored if one.document in held]


# ---------------------------------------------------------------- labelled values


def score(paper: Paper, chance: random.Random) -> Iterator[Scored]:
    """The evidence of each value of the results that can be made from a document."""
    facts = facts_of(paper.document)
    tables = [Numbers(grid, cells) for grid in facts.grids.values() if (cells := numbers_of(grid))]
    for table in (chance.choice(tables) for _ in range(RESULTS if tables else 0)):
        drawn = [item for item in (of_table(table, chance) for _ in range(ITEMS)) if item]
        # A result that says something twice is at fault for that.
        yield from judge(paper, [*{item.label: item for item in drawn}.values()])
    for item in of_text(facts, chance):
        yield from judge(paper, [item], scalar=True)


def numbers_of(grid: Grid) -> list[Cell]:
    """The numbers of a table that the words of their row label."""
    body = [cell for cell in grid.table.cells if cell.bbox and cell.row >= grid.head_rows]
    return [cell for cell in body if grid.labels(cell.row, cell.col) and parse_number(cell.text)]


def of_table(table: Numbers, chance: random.Random) -> Value | None:
    """A number of a table with the words of its row, right or with a fault."""
    grid, numbers, table_id = table.grid, table.cells, table.grid.table.table_id
    own = chance.choice(numbers)
    label = grid.labels(own.row, own.col)[0]
    if chance.random() >= FAULTS:
        return Value(label, own.text, _at(own, table_id), "right")
    kind = chance.choice(("other row", "other row", "other column", "digit", "scale", "sign"))
    match kind:
        case "other row" | "other column":
            same = (lambda c: c.col == own.col) if kind == "other row" else (lambda c: c.row == own.row)
            others = [cell for cell in numbers if same(cell) and cell.text != own.text]
            if not others:
                return None
            other = chance.choice(others)
            return Value(label, other.text, _at(other, table_id), kind)
        case _:
            return Value(label, spoiled(own.text, kind, chance), None, kind)


def of_text(facts: Facts, chance: random.Random) -> Iterator[Value]:
    """Numbers that running text prints beside a label, right or with a fault."""
    found = [
        (match[1].strip(), facts.index.place(number, *match.span(2)))
        for number, piece in enumerate(facts.pieces)
        if piece.table_id is None
        for match in _LABELLED.finditer(piece.printed.text)
    ]
    for label, place in found:
        others = [other for words, other in found if words != label and other.text != place.text]
        kind = chance.choice(("other label", "other label", "digit", "scale")) if chance.random() < FAULTS else "right"
        if kind in ("right", "other label") and (kind == "right" or others):
            shown = place if kind == "right" else chance.choice(others)
            if shown.bbox:
                yield Value(label, shown.text, (shown.page, shown.bbox, None, None, None), kind)
        elif kind in ("digit", "scale"):
            yield Value(label, spoiled(place.text, kind, chance), None, kind)


def _at(cell: Cell, table_id: str) -> tuple[int, BBox, str, int, int]:
    assert cell.bbox is not None, "only such cells are drawn"
    return cell.page, cell.bbox, table_id, cell.row, cell.col


def spoiled(text: str, kind: str, chance: random.Random) -> str:
    if kind == "scale":
        number = parse_number(text)
        return f"{number.value * 10:,f}{number.unit if number.relative else ''}" if number else text + "0"
    if kind == "sign":
        return text.strip("()-−") if text.strip()[:1] in "(-−" else f"-{text}"
    places = [index for index, character in enumerate(text) if character.isascii() and character.isdigit()]
    index = chance.choice(places) if places else 0
    return text[:index] + str((int(text[index]) + chance.randint(1, 9)) % 10) + text[index + 1 :] if places else "7"


def judge(paper: Paper, items: Sequence[Value], *, scalar: bool = False) -> Iterator[Scored]:
    """The evidence that validation has for the items of one result."""
    if not items:
        return
    result, schema, prefix = _scalar(items[0]) if scalar else _list(items)
    paths = [prefix.format(index) for index in range(len(items))]
    cited = [(path, item) for path, item in zip(paths, items, strict=True) if item.citation]
    citations = tuple(Citation(path, item.text, *item.citation) for path, item in cited if item.citation)
    read = _extraction(result, citations)
    # Half of the profiles have a rule for labels, so that the fit can tell the rule from the evidence.
    ruleset = load_rulesets()["risk-report" if len(items[0].text) % 2 else "common"]
    verdict = validate(read, paper.document, schema=schema, ruleset=ruleset)
    known = _known(read, paper.document, schema, verdict)
    for path, item in zip(paths, items, strict=True):
        if path in known:
            yield Scored(paper.name, item.kind, known[path])


def _known(read: Extraction, document: PreparedDocument, schema: Any, verdict: Any) -> dict[str, Evidence]:
    return evidence_of(Case(read, facts_of(document), schema), document, verdict, {})


def _scalar(item: Value) -> tuple[dict[str, Any], dict[str, Any], str]:
    schema = {"properties": {"value": {"type": "string", "x-source": "number", "x-labels": [item.label]}}}
    return {"value": item.text}, schema, "/value"


def _list(items: Sequence[Value]) -> tuple[dict[str, Any], dict[str, Any], str]:
    words = {"type": "string", "x-source": "verbatim"}
    entry = {"type": "object", "properties": {"label": words, "amount": {"type": "string", "x-source": "number"}}}
    schema = {"properties": {"key_amounts": {"type": "array", "items": entry}}}
    result = {"key_amounts": [{"label": item.label, "amount": item.text} for item in items]}
    return result, schema, "/key_amounts/{}/amount"


def _extraction(result: dict[str, Any], citations: tuple[Citation, ...]) -> Extraction:
    return Extraction(result, citations, Usage(), "bench", "bench", "none", "", 0, "stop", "")


# ---------------------------------------------------------------- fit


def fit(scored: Sequence[Scored]) -> Weights:
    """Logistic regression by Newton's steps, drawn towards the weights in the code."""
    names = FITTED[1:]
    x = np.array([[1.0, *(getattr(one.evidence, name) for name in names)] for one in scored])
    y = np.array([float(one.right) for one in scored])
    prior = np.array([getattr(WEIGHTS, name) for name in FITTED])
    weights = prior.copy()
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ weights))
        gradient = x.T @ (p - y) + PULL * (weights - prior)
        hessian = (x * (p * (1 - p))[:, None]).T @ x + PULL * np.eye(len(prior))
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-8:
            break
    return Weights(**dict(zip(FITTED, map(float, weights), strict=True)))


def auc(scored: Sequence[Scored]) -> float:
    """The chance that a right value is surer than a wrong one."""
    right = np.array([confidence(one.evidence) for one in scored if one.right])
    wrong = np.array([confidence(one.evidence) for one in scored if not one.right])
    if not len(right) or not len(wrong):
        return float("nan")
    return float((right[:, None] > wrong).mean() + (right[:, None] == wrong).mean() / 2)


# ---------------------------------------------------------------- report


def report(training: Sequence[Scored], held_out: Sequence[Scored], fitted: Weights) -> None:
    names = [one.name for one in fields(Weights)]
    rows = [(n, getattr(WEIGHTS, n), getattr(fitted, n) if n in FITTED else "set") for n in names]
    show("weights", ["evidence", "in the code", f"fitted on {len(training)}"], rows)
    kinds = sorted({one.kind for one in held_out})
    of_kind = {kind: [confidence(one.evidence) for one in held_out if one.kind == kind] for kind in kinds}
    means = [(kind, len(sure), float(np.mean(sure)), float(np.median(sure))) for kind, sure in of_kind.items()]
    show("held-out values by kind", ["kind", "values", "mean confidence", "median"], means)
    bins = calibrate([(confidence(one.evidence), one.right) for one in held_out]).bins
    shown = [(f"{one.low:.1f} to {one.high:.1f}", one.count, one.confidence, one.right) for one in bins]
    show("calibration", ["confidence", "values", "mean confidence", "share right"], shown)


if __name__ == "__main__":
    sys.exit(main())
