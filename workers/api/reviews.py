"""The review queue over HTTP: what waits, a result with its evidence, and the decision."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field, model_validator

from docmill.errors import RequestError
from storage import review as queue
from storage.review import Review, Reviewer
from workers import review
from workers.api.callers import Tenant, Use
from workers.api.models import FindingOut, Problem, finding_out
from workers.review import Shown
from workers.services import Services

PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 409, 422, 429)}
ACTIONS = Literal["accept", "correct", "reject", "reopen"]

router = APIRouter(prefix="/v1/reviews", tags=["reviews"], responses=PROBLEMS)


class Waiting(BaseModel):
    """A result before a person. `decision` is null while it waits."""

    job_id: str
    document_id: str
    name: str
    profile: str
    status: str
    reason: str | None = Field(description="Why a person is asked: the rule that decided.")
    verdict: str | None = Field(description="What the rules say of the result; null once it is rejected.")
    opened_at: datetime
    decision: str | None = Field(description="accepted, corrected or rejected.")
    reviewer: str | None
    note: str | None
    decided_at: datetime | None
    links: dict[str, str]


class EvidenceOut(BaseModel):
    """One value with its evidence."""

    path: str
    text: str = Field(description="The value of the result.")
    value: str | None = Field(description="As a number (sign and scale applied) or a date; null if it is neither.")
    unit: str | None
    printed: str | None = Field(description="What the document prints at the place.")
    page: int | None
    bbox: list[float] | None
    table_id: str | None
    row: int | None
    col: int | None
    surrounding: str = Field(description="The row of the table with the head of the column, or the text around.")
    verdict: str
    confidence: float | None
    version: int
    reviewer: str | None
    note: str | None
    findings: list[FindingOut]


class ReviewOut(Waiting):
    """A result with all that it is decided by."""

    result: dict[str, Any]
    findings: list[FindingOut]
    evidence: list[EvidenceOut]


class Correction(BaseModel):
    """Another value. Null: the document does not say it; for an item of a list: drop it. `/list/-` adds an item."""

    path: str = Field(description="JSON pointer into the result.", pattern="^/")
    value: Any


class Decision(BaseModel):
    """What a reviewer decides."""

    action: ACTIONS
    reviewer: str = Field(min_length=1, max_length=200, description="Who decides.")
    note: str = Field(default="", max_length=2000, description="Why. All but `accept` need it.")
    corrections: list[Correction] = []
    confirm: bool = Field(default=False, description="Take corrected values that the rules doubt.")

    @model_validator(mode="after")
    def _whole(self) -> Decision:
        if self.action != "accept" and not self.note.strip():
            raise ValueError(f"{self.action} needs a note that says why")
        if (self.action == "correct") != bool(self.corrections):
            raise ValueError("`corrections` goes with the action `correct`, and that needs at least one")
        return self


@router.get("")
def list_reviews(
    use: Use, tenant: Tenant, profile: str | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Waiting]:
    """What waits for a person, longest first."""
    with use.database.begin() as connection:
        found = queue.queue(connection, tenant=tenant, profile=profile, limit=limit)
    return [Waiting(**_waiting(one)) for one in found]


@router.get("/{job_id}")
def get_review(use: Use, tenant: Tenant, job_id: str) -> ReviewOut:
    """A result with its evidence; once decided, with the decision."""
    return answer_of(review.show(job_id, use, tenant=tenant))


@router.post("/{job_id}")
def decide(use: Use, tenant: Tenant, job_id: str, decision: Decision) -> ReviewOut:
    """Accept, correct or reject; 409 if somebody has decided before, and nothing is changed then."""
    by = Reviewer(decision.reviewer.strip(), decision.note.strip(), tenant)
    if not by.name:
        raise RequestError("`reviewer` is blank: say who decides")
    _act(job_id, by, decision, use)
    return answer_of(review.show(job_id, use, tenant=tenant))


def _act(job_id: str, by: Reviewer, decision: Decision, use: Services) -> None:
    match decision.action:
        case "accept":
            review.accept(job_id, by, use)
        case "reject":
            review.reject(job_id, by, use)
        case "reopen":
            review.reopen(job_id, by, use)
        case "correct":
            corrections = {one.path: one.value for one in decision.corrections}
            review.correct(job_id, by, corrections, use, confirmed=decision.confirm)


def _waiting(one: Review) -> dict[str, Any]:
    links = {"self": f"/v1/reviews/{one.job_id}", "job": f"/v1/jobs/{one.job_id}"}
    shown = {name: getattr(one, name) for name in Waiting.model_fields if name != "links"}
    return {**shown, "links": links}


def answer_of(shown: Shown) -> ReviewOut:
    """A review as the API shows it."""
    return ReviewOut(
        **_waiting(shown.review),
        result=shown.review.result,
        findings=[finding_out(finding) for finding in shown.findings],
        evidence=[
            EvidenceOut(
                **{name: getattr(one, name) for name in EvidenceOut.model_fields if name != "findings"},
                findings=[finding_out(finding) for finding in one.findings],
            )
            for one in shown.evidence
        ],
    )
