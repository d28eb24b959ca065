"""`/v1/batches` in OpenAI's shape: create, look, list, cancel; and to try again what failed."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from sqlalchemy import RowMapping

from storage.batches import OUTPUT_KEEP_S, NewBatch
from workers.api.callers import Tenant, Use
from workers.api.openai_models import (
    PROBLEMS,
    BatchObject,
    ExpiresAfter,
    Id,
    OpenAIRoute,
    Page,
    batch_object,
    page_of,
)
from workers.batch_line import ENDPOINTS, LONGEST_ID, PRIORITIES
from workers.file_store import BadParameter
from workers.services import Services

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
#: The longest window: what is not needed within a month is not needed.
LONGEST_WINDOW_S = 30 * 86_400
OVER = ("completed", "expired", "cancelled")
_NO_NUL = r"^[^\x00]*$"

router = APIRouter(prefix="/v1/batches", tags=["batches"], responses=PROBLEMS, route_class=OpenAIRoute)


class Extension(BaseModel):
    """`docmill`: what our batches can do beside. It goes into `extra_body` of the `openai` client."""

    model_config = ConfigDict(extra="forbid")
    profile: str | None = Field(default=None, description="Profile of documents that come without one.")
    file_ids: list[str] = Field(default=[], max_length=10_000, description="More PDF or zip files for this batch.")
    priority: str | None = Field(default=None, description="`high`: as if somebody waited for every line.")
    ordering_key: Annotated[str, StringConstraints(max_length=LONGEST_ID, pattern=_NO_NUL)] | None = Field(
        default=None, description="Lines of one key are read in the order of the file."
    )
    dry_run: bool = Field(default=False, description="Read the input and tell what it would cost; run nothing.")
    retry_failed_of: str | None = Field(default=None, description="Try again the lines of this batch that failed.")


class CreateBatch(BaseModel):
    """A batch to be."""

    model_config = ConfigDict(extra="forbid")
    input_file_id: str
    endpoint: str = Field(description=f"One of {', '.join(ENDPOINTS)}.")
    completion_window: str = Field(description="24h, or another time such as 15m: the shorter, the sooner it is read.")
    metadata: (
        dict[
            Annotated[str, StringConstraints(max_length=64, pattern=_NO_NUL)],
            Annotated[str, StringConstraints(max_length=512, pattern=_NO_NUL)],
        ]
        | None
    ) = Field(default=None, max_length=16)
    output_expires_after: ExpiresAfter | None = None
    docmill: Extension | None = None


Key = Annotated[
    str | None,
    Header(alias="Idempotency-Key", max_length=255, description="The same key and request give the same batch."),
]


@router.post("")
def create_batch(use: Use, tenant: Tenant, wanted: CreateBatch, idempotency_key: Key = None) -> BatchObject:
    """Take a batch in. Its input is read afterwards: what is wrong with it is told by the batch, not here."""
    asked = wanted.docmill or Extension()
    if asked.retry_failed_of is not None:
        return _retry(use, tenant, asked.retry_failed_of, wanted.completion_window, idempotency_key)
    if wanted.endpoint not in ENDPOINTS:
        raise BadParameter("endpoint", f"{wanted.endpoint!r} is not one of {', '.join(ENDPOINTS)}")
    window_s = seconds_of(wanted.completion_window)
    _check_extension(asked, use)
    _check_input(wanted, asked, tenant, use)
    use.quotas.check_spending(tenant)
    new = NewBatch(
        tenant=tenant,
        endpoint=wanted.endpoint,
        input_file_id=wanted.input_file_id,
        completion_window=wanted.completion_window,
        window_s=window_s,
        request_sha256=hashlib.sha256(wanted.model_dump_json().encode()).hexdigest(),
        metadata=wanted.metadata,
        options=asked.model_dump(exclude_defaults=True),
        idempotency_key=idempotency_key,
        output_keep_s=wanted.output_expires_after.seconds if wanted.output_expires_after else OUTPUT_KEEP_S,
    )
    return batch_object(use.batches.create(new))


def seconds_of(window: str) -> int:
    """Seconds of `24h`, `15m`, `30s`, `7d`. Raises BadParameter."""
    found = re.fullmatch(r"([1-9]\d{0,6})([smhd])", window)
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not 0 < seconds <= LONGEST_WINDOW_S:
        raise BadParameter("completion_window", f"{window!r} is no window: 24h, or a number of s, m, h or d up to 30d")
    return seconds


def _check_extension(asked: Extension, use: Services) -> None:
    if asked.profile is not None and asked.profile not in use.profiles:
        there = ", ".join(sorted(use.profiles))
        raise BadParameter("docmill.profile", f"there is no profile {asked.profile!r}; available: {there}")
    if asked.priority not in (None, *PRIORITIES):
        raise BadParameter("docmill.priority", f"{asked.priority!r} is not one of {', '.join(PRIORITIES)}")


def _check_input(wanted: CreateBatch, asked: Extension, tenant: str, use: Services) -> None:
    """What can be said of the input without a look inside."""
    file = use.files.get(wanted.input_file_id, tenant=tenant)
    if file["kind"] != "other" and asked.profile is None:
        raise BadParameter("docmill.profile", "documents as input need the profile that they are read with")
    if file["kind"] == "other" and file["purpose"] != "batch":
        raise BadParameter("input_file_id", f"{wanted.input_file_id} has purpose {file['purpose']}, not batch")
    if file["kind"] == "other" and asked.file_ids:
        raise BadParameter("docmill.file_ids", "more files go with a PDF or zip as input, not with a file of requests")


@router.get("")
def list_batches(
    use: Use, tenant: Tenant, after: str | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> Page[BatchObject]:
    """Batches, the newest first."""
    rows, more = use.batches.page(tenant=tenant, after=after, limit=limit)
    return page_of([batch_object(row) for row in rows], more)


@router.get("/{batch_id}")
def get_batch(use: Use, tenant: Tenant, batch_id: Id) -> BatchObject:
    """A batch as it is now."""
    return batch_object(use.batches.get(batch_id, tenant=tenant))


@router.post("/{batch_id}/cancel")
def cancel_batch(use: Use, tenant: Tenant, batch_id: Id) -> BatchObject:
    """End it; what has a result by then keeps it. One that is over, or about to be, stays as it is."""
    return batch_object(use.batches.cancel(batch_id, tenant=tenant))


@router.post("/{batch_id}/retry_failed")
def retry_failed(use: Use, tenant: Tenant, batch_id: Id, idempotency_key: Key = None) -> BatchObject:
    """A child batch of the requests that have no result."""
    return _retry(use, tenant, batch_id, None, idempotency_key)


def _retry(use: Services, tenant: str, parent_id: str, window: str | None, key: str | None) -> BatchObject:
    parent = use.batches.get(parent_id, tenant=tenant)
    use.quotas.check_spending(tenant)
    _check_parent(parent)
    window = window or parent["completion_window"]
    kept: dict[str, Any] = {name: parent[name] for name in ("endpoint", "input_file_id", "metadata", "output_keep_s")}
    new = NewBatch(
        tenant=tenant,
        completion_window=window,
        window_s=seconds_of(window),
        request_sha256=hashlib.sha256(f"{parent_id} {window}".encode()).hexdigest(),
        options=parent["options"],
        parent_batch_id=parent_id,
        idempotency_key=key,
        **kept,
    )
    return batch_object(use.batches.create(new))


def _check_parent(parent: RowMapping) -> None:
    if parent["status"] not in OVER or not parent["failed"]:
        raise BadParameter(
            "batch_id",
            f"{parent['batch_id']} is {parent['status']} with {parent['failed']} failed requests: there is nothing to "
            "try again before it has ended with some",
        )
