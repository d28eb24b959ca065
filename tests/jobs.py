"""Jobs for tests: the values that go through a store, and ways to carry a job through its stages."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

from docmill.likeness import LIKE_NOTHING, Likeness
from docmill.types import (
    BBox,
    Block,
    BlockKind,
    Document,
    Extraction,
    FieldValue,
    Finding,
    Heat,
    LengthClass,
    Outcome,
    Page,
    PreparedDocument,
    Printed,
    Region,
    Route,
    Source,
    Table,
    Usage,
    Verdict,
)
from storage.ports import Claim, Jobs, Order, Receipt, Stage, Submission

BOX = BBox(1.0, 2.0, 3.0, 4.0)


def document_of(
    data: bytes, *, tenant: str = "acme", name: str = "report.pdf", source: Source = Source.CLI
) -> Document:
    digest = hashlib.sha256(data).hexdigest()
    return Document(f"doc_{tenant}_{digest[:12]}", tenant, digest, len(data), name, source)


def submission_of(
    data: bytes,
    *,
    tenant: str = "acme",
    name: str = "report.pdf",
    source: Source = Source.CLI,
    profile: str = "risk-report",
    version: str = "1",
) -> Submission:
    return Submission(tenant, source, name, hashlib.sha256(data).hexdigest(), profile, len(data), version)


def order_of(document: Document, *, profile: str = "risk-report", version: str = "1", **need: Any) -> Order:
    return Order(f"job_{document.document_id}_{profile}_{version}", profile, version, **need)


def accept(
    store: Jobs,
    data: bytes,
    *,
    tenant: str = "acme",
    name: str = "report.pdf",
    source: Source = Source.CLI,
    profile: str = "risk-report",
    version: str = "1",
    **need: Any,
) -> Receipt:
    """Hand a file in; `need` is what `Order` takes (window_s, vip, ...)."""
    document = document_of(data, tenant=tenant, name=name, source=source)
    return store.accept(
        document,
        blob_key=f"blob-{document.sha256}",
        submission=submission_of(data, tenant=tenant, name=name, source=source, profile=profile, version=version),
        order=order_of(document, profile=profile, version=version, **need),
    )


def accepted(store: Jobs, data: bytes, **options: Any) -> str:
    """Hand a file in and give its job's id."""
    job_id = accept(store, data, **options).job_id
    assert job_id is not None, "an accepted file has a job"
    return job_id


def route(heat: Heat = Heat.WARM, *, lane: str = "cpu", priority: int = 2) -> Route:
    return Route(heat, LengthClass.SHORT, priority, lane, f"infer.{heat}.short@{lane}", 0.6)


def prepared_of(document_id: str) -> PreparedDocument:
    region = Region(1, BOX)
    table = Table("t1", (), rows=2, cols=2, regions=(region,), reader="lines", unit="元", scale=Decimal(10000))
    block = Block(BlockKind.TABLE, 1, BOX, Printed(""), table)
    return PreparedDocument(document_id, (Page(1, 595, 842, (block,)),), (), 300, b"", "parser-1")


def extraction(
    result: dict[str, Any] | None = None, *, cost: Decimal = Decimal("0.001"), model: str = "smollm2"
) -> Extraction:
    usage = Usage(prompt_tokens=100, cached_tokens=40, output_tokens=10, cost_usd=cost)
    kept = {"total": "5.2"} if result is None else result
    return Extraction(kept, (), usage, "stub-1", model, "fp16", "prompt", 0, "stop", str(kept))


def finding(rule: str, outcome: Outcome, message: str = "it does not add up") -> Finding:
    return Finding(rule, outcome, message, "/total", 1, BOX)


def value(path: str, printed: str, *, number: Decimal | None = None, **more: Any) -> FieldValue:
    place = {"page": 1, **more}
    return FieldValue(path, printed, number, bbox=BOX, table_id="t1", row=0, col=1, **place)


def verdict(outcome: Outcome, *findings: Finding, fields: tuple[FieldValue, ...] = ()) -> Verdict:
    return Verdict(outcome, findings, fields, "rules-1")


def claimed(store: Jobs, job_id: str, stage: Stage, *, lease_s: float = 60.0) -> Claim:
    """The claim of a job that must be free."""
    claim = store.claim(job_id, stage, worker="test", lease_s=lease_s)
    assert claim is not None, f"{job_id} does not wait for {stage}"
    return claim


def through_parse(
    store: Jobs,
    job_id: str,
    *,
    likeness: Likeness = LIKE_NOTHING,
    to: Route | None = None,
) -> None:
    claim = claimed(store, job_id, Stage.PARSE)
    store.finish_parse(claim, prepared_of(claim.document_id), to or route(), likeness=likeness)


def through_infer(
    store: Jobs,
    job_id: str,
    *,
    result: dict[str, Any] | None = None,
    cost: Decimal = Decimal("0.001"),
    model: str = "smollm2",
) -> Extraction:
    """Parse it, where that is still to do, and read it."""
    if store.record(job_id).tokens is None:
        through_parse(store, job_id)
    read = extraction(result, cost=cost, model=model)
    store.finish_infer(claimed(store, job_id, Stage.INFER), read)
    return read


def through_all(store: Jobs, job_id: str, outcome: Outcome = Outcome.PASS) -> None:
    read = through_infer(store, job_id)
    judged = verdict(outcome, *([] if outcome == Outcome.PASS else [finding("rule", outcome)]))
    store.finish_validate(claimed(store, job_id, Stage.VALIDATE), judged, read, retry=None)
