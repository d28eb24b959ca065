"""What a reviewer sees and does: a result with its evidence; accept, correct, reject, open again."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from sqlalchemy import Row

from docmill.errors import BadCorrection
from docmill.types import BBox, Citation, Extraction, Finding, Outcome, PreparedDocument, Verdict
from inference.profile import Profile, get
from storage import finish
from storage import review as queue
from storage.review import Review, Reviewer
from validation.facts import Facts, facts_of
from validation.fields import at
from validation.places import Place
from workers.judging import judge_result, locate
from workers.pipeline import load_prepared
from workers.services import Services

#: Characters of running text that are shown on either side of a value.
_AROUND = 120
#: Of the heads of a column so many are shown, the nearest.
_HEADS = 2
#: What a rule says of a corrected value so that a person must confirm it.
_DOUBTED = (Outcome.REVIEW, Outcome.REJECT)

Corrections = Mapping[str, Any]
"""JSON pointer into the result → what stands there; null for what the document does not say, or to drop a list item."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One value: what the result says, what is printed and where, what surrounds it, what the rules say of it."""

    path: str
    text: str
    value: str | None
    unit: str | None
    printed: str | None
    page: int | None
    bbox: list[float] | None
    table_id: str | None
    row: int | None
    col: int | None
    surrounding: str
    verdict: str
    confidence: float | None
    version: int
    reviewer: str | None
    note: str | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """A review with all that it is decided by."""

    review: Review
    findings: tuple[Finding, ...]
    evidence: tuple[Evidence, ...]


def show(job_id: str, use: Services, *, tenant: str | None = None) -> Shown:
    """The latest review of a job with its evidence. Raises NotFound."""
    with use.database.begin() as connection:
        review = queue.review_of(connection, job_id, tenant=tenant)
        rows = queue.current_fields(connection, job_id)
    findings = use.store.record(job_id).findings
    facts = facts_of(load_prepared(review.document_id, use))
    return Shown(review, findings, tuple(_evidence(row, facts, findings) for row in rows))


def accept(job_id: str, by: Reviewer, use: Services) -> None:
    """The result is right. Raises NotFound, or Conflict if somebody has decided before."""
    with use.database.begin() as connection:
        queue.accept(connection, queue.review_of(connection, job_id, tenant=by.tenant), by)


def reject(job_id: str, by: Reviewer, use: Services) -> None:
    """The result is of no use. Raises NotFound, or Conflict if somebody has decided before."""
    with use.database.begin() as connection:
        queue.reject(connection, queue.review_of(connection, job_id, tenant=by.tenant), by)


def reopen(job_id: str, by: Reviewer, use: Services) -> None:
    """Put a result that is done before a person. Raises NotFound, or Conflict if it is not done."""
    with use.database.begin() as connection:
        queue.reopen(connection, job_id, by)


def correct(job_id: str, by: Reviewer, corrections: Corrections, use: Services, *, confirmed: bool = False) -> None:
    """Put other values into the result; the rules judge the new one before it is kept.

    A value that they doubt (it is not in the document, say) is taken only if the reviewer has `confirmed` it. Raises
    NotFound, BadCorrection, or Conflict if somebody has decided before.
    """
    with use.database.begin() as connection:
        review = queue.review_of(connection, job_id, tenant=by.tenant)
        queue.insist_on_open(review)
        read = finish.latest_extraction(connection, job_id)
    profile = get(use.profiles, review.profile)
    result = corrected(review.result, corrections, profile)
    verdict = _judge(result, read, load_prepared(review.document_id, use), profile, use)
    if not confirmed:
        _refuse_doubted(verdict, corrections)
    with use.database.begin() as connection:
        queue.correct(connection, review, by, result=result, verdict=verdict)


# ---------------------------------------------------------------- corrections


def corrected(result: Mapping[str, Any], corrections: Corrections, profile: Profile) -> dict[str, Any]:
    """The result with other values in it, still of the profile's schema. Raises BadCorrection."""
    new = copy.deepcopy(dict(result))
    # From the last item of a list to the first: dropping one must not move those that are still to be found.
    for path in sorted(corrections, key=_by_index, reverse=True):
        _put(new, path, corrections[path])
    if new == result:
        raise BadCorrection("the corrections change nothing: accept the result instead, or give other values")
    if wrong := best_match(Draft202012Validator(profile.schema).iter_errors(new)):
        raise BadCorrection(f"at {wrong.json_path}: {wrong.message}; this is not of profile {profile.name}")
    return new


def pointer(path: str) -> str:
    """A path as people write it (amount, key_amounts/0/amount) as a JSON pointer."""
    return path if path.startswith("/") else f"/{path}"


def _by_index(path: str) -> list[tuple[int, str]]:
    return [(int(step), "") if step.isdigit() else (-1, step) for step in path.split("/")]


def _put(result: dict[str, Any], path: str, value: Any) -> None:
    holder_path, _, step = path.rpartition("/")
    holder = at(result, holder_path) if holder_path else result
    name = step.replace("~1", "/").replace("~0", "~")
    match holder:
        case dict():
            holder[name] = value
        case list() if name.isdigit() and int(name) < len(holder):
            holder[int(name) : int(name) + 1] = [] if value is None else [value]
        case list() if name == "-":
            holder.append(value)
        case _:
            raise BadCorrection(f"the result has nothing at {path!r}: `docmill review show` lists its paths")


def _judge(
    result: dict[str, Any], read: Extraction, document: PreparedDocument, profile: Profile, use: Services
) -> Verdict:
    """The verdict on the corrected result: what was not touched keeps its citation, the rest is looked up."""
    known = {citation.path: citation for citation in read.citations}
    found = {citation.path: citation for citation in locate(result, profile.schema, facts_of(document))}
    kept = {path: cited for path, cited in known.items() if at(result, path) == at(read.result, path)}
    ruleset = use.rulesets[profile.ruleset]
    return judge_result(result, tuple((found | kept).values()), document, schema=profile.schema, ruleset=ruleset)


def _refuse_doubted(verdict: Verdict, corrections: Corrections) -> None:
    doubts = [
        finding
        for finding in verdict.findings
        if finding.outcome in _DOUBTED and any(_touches(finding.path, path) for path in corrections)
    ]
    if doubts:
        said = "; ".join(f"{doubt.path}: {doubt.message}" for doubt in doubts)
        raise BadCorrection(f"{said}. If the document says so all the same, confirm it (`confirm`, or --confirm)")


def _touches(found: str | None, path: str) -> bool:
    return found is not None and (f"{found}/".startswith(f"{path}/") or f"{path}/".startswith(f"{found}/"))


# ---------------------------------------------------------------- evidence


def _evidence(row: Row[Any], facts: Facts, findings: tuple[Finding, ...]) -> Evidence:
    place = _place(row, facts)
    value = row.date if row.value is None else f"{row.value:f}"
    return Evidence(
        path=row.path,
        text=row.text,
        value=None if value is None else str(value),
        unit=row.unit,
        printed=place.text if place else _held(row, facts),
        page=row.page,
        bbox=row.bbox,
        table_id=row.table_id,
        row=row.row,
        col=row.col,
        surrounding=" ".join(_surrounding(place, facts).split()) if place else "",
        verdict=row.verdict,
        confidence=row.confidence,
        version=row.version,
        reviewer=row.reviewer,
        note=row.note,
        # They are of the reading: of a value that was corrected since they say nothing.
        findings=tuple(found for found in findings if row.version == 1 and _touches(found.path, row.path)),
    )


def _place(row: Row[Any], facts: Facts) -> Place | None:
    if row.page is None or row.bbox is None:
        return None
    return facts.place_of(Citation(row.path, row.text, row.page, BBox(*row.bbox), row.table_id, row.row, row.col))


def _held(row: Row[Any], facts: Facts) -> str | None:
    """What stands in the box, where it reads otherwise than the value."""
    return None if row.page is None or row.bbox is None else facts.text_in(row.page, BBox(*row.bbox))


def _surrounding(place: Place, facts: Facts) -> str:
    """The row of a table under the heads of its columns; else the text before and after."""
    table = facts.tables.get(place.piece.table_id or "")
    if table is None:
        text = place.piece.printed.text
        return text[max(0, place.start - _AROUND) : place.stop + _AROUND]
    cells = list(_row(place, facts))
    heads = " / ".join(facts.grids[table.table_id].heads(place.piece.row or 0, place.piece.col or 0)[-_HEADS:])
    return f"{' | '.join(cells)}" + (f" (column: {heads})" if heads else "")


def _row(place: Place, facts: Facts) -> Iterator[str]:
    table = facts.tables[place.piece.table_id or ""]
    in_row = [cell for cell in table.cells if cell.row == place.piece.row and cell.text.strip()]
    return (cell.text.strip() for cell in sorted(in_row, key=lambda cell: cell.col))
