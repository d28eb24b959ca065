"""How sure it is that a value is the right one: a logistic of named evidence, calibrated on planted faults.

    confidence = 1 / (1 + exp(-(bias + Σ weight × evidence)))

Evidence counts as 0 where nothing is known of it, so it moves a value neither up nor down. docs/confidence.md explains
each; `python -m bench.confidence` fits the weights and measures how far confidence and rightness are apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal
from itertools import accumulate, islice
from typing import Any

from docmill.types import Block, Extraction, Outcome, PreparedDocument, Verdict
from validation.case import Case
from validation.facts import Facts, facts_of
from validation.fields import Leaf, at
from validation.grid import Grid
from validation.grounding import Ground, Grounding
from validation.labels import labels_of, printed_labels, stands_beside, stands_with
from validation.numbers import parse_number
from validation.places import Place

#: A sum of fewer significant digits may hold by chance.
_TELLING_DIGITS = 3
_FEWEST_ADDENDS = 2
#: Rows of a column, or cells of a row, that are tried for a sum.
_MOST_CELLS = 80
#: Beyond the second it does not matter how often a value is printed.
_ONCE_OR_MORE = 2


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a value and against it; 0 where nothing is known.

    `absent` 1: the document does not print it. `label` 1: it stands beside its label. `astray` 1: its label stands
    elsewhere.
    `unique` 1: it is printed once. `flagged`, `doubted` 1: a rule flags it; sends it to review, or rejects it.
    `arithmetic` 1: a sum in its table confirms it. `misread`: 1 less the agreement of the readings of its place (tables
    read twice, OCR), 0 if a sum confirms it. `logprob`: the mean log-probability of its tokens, if the engine gives it.
    """

    absent: float = 0.0
    label: float = 0.0
    astray: float = 0.0
    unique: float = 0.0
    flagged: float = 0.0
    doubted: float = 0.0
    arithmetic: float = 0.0
    misread: float = 0.0
    logprob: float = 0.0


@dataclass(frozen=True, slots=True)
class Weights:
    """What each kind of evidence counts, in log-odds.

    The first seven are fitted. The last three are set by judgement: they speak for how a place was read, and planted
    faults are not in the reading.
    """

    bias: float = 0.9
    absent: float = -4.0
    label: float = 2.4
    astray: float = -5.0
    unique: float = 0.1
    flagged: float = -3.0
    doubted: float = -2.2
    arithmetic: float = 0.2
    misread: float = -4.0
    logprob: float = 1.0


WEIGHTS = Weights()


def confidence(evidence: Evidence, weights: Weights = WEIGHTS) -> float:
    """From 0 to 1."""
    total = weights.bias + sum(getattr(weights, name) * value for name, value in asdict(evidence).items())
    return 1 / (1 + math.exp(-total))


def with_confidence(
    verdict: Verdict,
    extraction: Extraction,
    document: PreparedDocument,
    schema: Mapping[str, Any],
    *,
    logprobs: Mapping[str, float] | None = None,
) -> Verdict:
    """The verdict with a confidence for each value that claims to be copied; the model's own words have none.

    `logprobs`: mean log-probability of a value's tokens, by path, where the engine was asked for it.
    """
    known = evidence_of(Case(extraction, facts_of(document), schema), document, verdict, logprobs or {})
    scored = {path: round(confidence(evidence), 4) for path, evidence in known.items()}
    return replace(verdict, fields=tuple(replace(value, confidence=scored.get(value.path)) for value in verdict.fields))


def evidence_of(
    case: Case, document: PreparedDocument, verdict: Verdict, logprobs: Mapping[str, float]
) -> dict[str, Evidence]:
    """The evidence for each grounded value, by path."""
    judged = {value.path: value.verdict for value in verdict.fields}
    reader = _Evidence(case, document)
    return {
        grounding.leaf.path: replace(
            reader.of(grounding, judged.get(grounding.leaf.path, Outcome.PASS)),
            logprob=logprobs.get(grounding.leaf.path, 0.0),
        )
        for grounding in case.grounded
    }


# ---------------------------------------------------------------- evidence


@dataclass(frozen=True)
class _Evidence:
    case: Case
    document: PreparedDocument
    _sums: dict[str, frozenset[tuple[int, int]]] = field(default_factory=dict)

    def of(self, grounding: Grounding, judged: Outcome) -> Evidence:
        leaf, place = grounding.leaf, self.case.places.get(grounding.leaf.path)
        said = {"flagged": float(judged == Outcome.FLAG), "doubted": float(judged in (Outcome.REVIEW, Outcome.REJECT))}
        if grounding.ground != Ground.FOUND or place is None:
            return Evidence(absent=float(grounding.ground != Ground.FOUND), **said)
        beside, adds_up = self._beside(leaf, place), self._adds_up(place)
        return Evidence(
            label=float(beside is True),
            astray=float(beside is False),
            unique=float(_times(grounding, self.case.facts) < _ONCE_OR_MORE),
            arithmetic=float(adds_up),
            misread=0.0 if adds_up else 1 - self._agreement(place),
            **said,
        )

    def _beside(self, leaf: Leaf, place: Place) -> bool | None:
        """Whether it stands where its label does; None where no label of it is printed."""
        facts = self.case.facts
        if leaf.labels:
            here = stands_beside(place, labels_of(leaf.labels), facts)
            return here or (False if printed_labels(leaf.labels, leaf.text, facts) else None)
        words = [text for text in self._neighbours(leaf) if text != leaf.text]
        return any(stands_with(place, text, facts) for text in words) if words else None

    def _neighbours(self, leaf: Leaf) -> Iterator[str]:
        """What else its own object copied: the words that label it in an item of a list."""
        holder = leaf.path.rpartition("/")[0]
        found = at(self.case.extraction.result, holder) if holder else None
        for key, value in found.items() if isinstance(found, dict) else ():
            if isinstance(value, str) and value.strip() and f"{holder}/{key}" in self.case.places:
                yield value

    def _adds_up(self, place: Place) -> bool:
        identity = place.piece.table_id or ""
        grid = self.case.facts.grids.get(identity)
        if grid is None or place.piece.row is None or place.piece.col is None:
            return False
        if identity not in self._sums:
            self._sums[identity] = frozenset(confirmed(grid))
        return (place.piece.row, place.piece.col) in self._sums[identity]

    def _agreement(self, place: Place) -> float:
        """Of the readings of the table or the block; 1 where there was one reading and no doubt of it."""
        table = self.case.facts.tables.get(place.piece.table_id or "")
        read = table if table is not None else self._block(place)
        agreed = getattr(read, "confidence", None)
        return 1.0 if agreed is None else float(agreed)

    def _block(self, place: Place) -> Block | None:
        pages = (page for page in self.document.pages if page.number == place.page)
        blocks = (block for page in pages for block in page.blocks)
        return next((block for block in blocks if block.printed is place.piece.printed), None)


def _times(grounding: Grounding, facts: Facts) -> int:
    """How often it is printed, two for more: a number at any of its places, a text wherever it stands whole."""
    if grounding.leaf.source == "number":
        return min(len(grounding.places), _ONCE_OR_MORE)
    return sum(1 for _ in islice(facts.everywhere(grounding.leaf.text), _ONCE_OR_MORE))


def confirmed(grid: Grid) -> Iterator[tuple[int, int]]:
    """The cells that a sum bears out: numbers one under the other, or side by side, that make the next."""
    rows = range(grid.head_rows, min(grid.table.rows, grid.head_rows + _MOST_CELLS))
    cols = range(min(grid.table.cols, _MOST_CELLS))
    for col in cols:
        yield from ((row, col) for row in _summing([(row, _number(grid, row, col)) for row in rows]))
    for row in rows:
        yield from ((row, col) for col in _summing([(col, _number(grid, row, col)) for col in cols]))


def _number(grid: Grid, row: int, col: int) -> Decimal | None:
    number = parse_number(grid.text(row, col))
    return None if number is None or number.relative else number.value


def _summing(line: Sequence[tuple[int, Decimal | None]]) -> Iterator[int]:
    """The places of a line that take part in a sum: a run of numbers that makes the number after it."""
    numbers = [(place, value) for place, value in line if value is not None]
    sums = list(accumulate((value for _, value in numbers), initial=Decimal(0)))
    for whole in range(_FEWEST_ADDENDS, len(numbers)):
        value = numbers[whole][1]
        if len(str(abs(value)).replace(".", "").strip("0")) < _TELLING_DIGITS:
            continue
        for first in range(whole - _FEWEST_ADDENDS, -1, -1):
            if sums[whole] - sums[first] == value:
                yield from (place for place, _ in numbers[first : whole + 1])
                break


# ---------------------------------------------------------------- calibration


@dataclass(frozen=True, slots=True)
class Bin:
    """Values of about the same confidence: how sure we were on average, and what share of them was right."""

    low: float
    high: float
    count: int
    confidence: float
    right: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """`error` is the expected calibration error: the mean distance of confidence and rightness over all values."""

    bins: tuple[Bin, ...]
    error: float
    brier: float


def calibrate(scored: Sequence[tuple[float, bool]], *, bins: int = 10) -> Calibration:
    """How confidence compares with rightness on values of which it is known whether they are right."""
    if not scored:
        raise ValueError("no values to calibrate on: give at least one pair of confidence and rightness")
    grouped: dict[int, list[tuple[float, bool]]] = {}
    for one in scored:
        grouped.setdefault(min(int(one[0] * bins), bins - 1), []).append(one)
    found = tuple(_bin(number, bins, grouped[number]) for number in sorted(grouped))
    error = sum(one.count * abs(one.confidence - one.right) for one in found) / len(scored)
    brier = sum((sure - right) ** 2 for sure, right in scored) / len(scored)
    return Calibration(found, error, brier)


def _bin(number: int, bins: int, scored: Sequence[tuple[float, bool]]) -> Bin:
    count = len(scored)
    sure = sum(confidence for confidence, _ in scored) / count
    return Bin(number / bins, (number + 1) / bins, count, sure, sum(right for _, right in scored) / count)
