"""What the API says, as Pydantic models: the edge where JSON is checked and documented."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, Field

from docmill.types import BBox, Finding, Record


class OpenAIError(BaseModel):
    """An error in OpenAI's shape."""

    message: str
    type: str
    param: str | None = None
    code: str | None


class Problem(BaseModel):
    """An error by RFC 9457; `code` is docmill's stable word for it. `error` says the same to an OpenAI client."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str = Field(description="What is wrong with what, the limit, and the remedy.")
    code: str
    error: OpenAIError


class FindingOut(BaseModel):
    """One thing that a rule found."""

    rule: str
    outcome: str
    message: str
    path: str | None = Field(description="JSON pointer into the result.")
    page: int | None
    bbox: BBox | None = Field(description="x0, y0, x1, y1 in points from the top left of the page as seen.")


class Job(BaseModel):
    """A document being read with a profile."""

    job_id: str
    document_id: str
    profile: str
    profile_version: str
    status: str
    reason: str | None
    heat: str | None
    length_class: str | None
    priority: int | None
    lane: str | None
    pages: int | None
    tables: int | None
    tokens: int | None
    created_at: datetime
    finished_at: datetime | None
    result: dict[str, Any] | None = Field(description="The checked result, once the job is done or needs review.")
    findings: list[FindingOut]
    links: dict[str, str]


class DocumentOut(BaseModel):
    """A document as it was accepted and parsed."""

    document_id: str
    sha256: str
    size_bytes: int
    name: str
    source: str
    created_at: datetime
    parser: str | None
    pages: int | None
    tables: int | None
    tokens: int | None
    warnings: list[str] | None
    near_duplicate_of: str | None
    same_template_as: str | None
    similarity: float | None
    differences: dict[str, Any] | None = Field(description="What changed from the linked document.")
    jobs: list[str]


class Place(BaseModel):
    """A value of a result with the place where it is printed."""

    path: str
    text: str
    value: str | None = Field(description="Decimal, sign and scale applied; a string so that no digit is lost.")
    unit: str | None
    page: int | None
    bbox: list[float] | None
    verdict: str
    confidence: float | None = Field(description="How sure it is that this is the right value, 0 to 1; null: unknown.")
    version: int = Field(description="1 as read; a reviewer's correction is the next.")
    reviewer: str | None = Field(description="Who confirmed or corrected it.")


class Result(BaseModel):
    """The result of a job with the place of every value."""

    job_id: str
    status: str
    result: dict[str, Any]
    fields: list[Place]


class Health(BaseModel):
    """Whether the API can reach its database, and the jobs by status."""

    status: str
    jobs: dict[str, int]


def job_out(record: Record) -> Job:
    """A record as the API shows it."""
    base = f"/v1/jobs/{record.job_id}"
    return Job(
        job_id=record.job_id,
        document_id=record.document_id,
        profile=record.profile,
        profile_version=record.profile_version,
        status=record.status,
        reason=record.reason,
        heat=record.heat,
        length_class=record.length_class,
        priority=record.priority,
        lane=record.lane,
        pages=record.pages,
        tables=record.tables,
        tokens=record.tokens,
        created_at=record.created_at,
        finished_at=record.finished_at,
        result=record.result,
        findings=[finding_out(finding) for finding in record.findings],
        links={"self": base, "result": f"{base}/result", "document": f"/v1/documents/{record.document_id}"},
    )


def finding_out(finding: Finding) -> FindingOut:
    """A finding as the API shows it."""
    return FindingOut(
        rule=finding.rule,
        outcome=finding.outcome,
        message=finding.message,
        path=finding.path,
        page=finding.page,
        bbox=finding.bbox,
    )
