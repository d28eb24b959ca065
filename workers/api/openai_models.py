"""The objects of OpenAI's files, uploads, batches and webhook endpoints, as our API gives them out."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from fastapi import Path, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from workers.api.models import Problem
from workers.file_store import BadParameter

#: What every route here may answer with, beside what it is for.
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {"model": Problem} for code in (400, 401, 403, 404, 408, 413, 422, 429, 503)
}
Id = Annotated[str, Path(pattern=r"^[A-Za-z0-9_\-]{1,80}$")]
Item = TypeVar("Item", bound=BaseModel)


class OpenAIRoute(APIRoute):
    """A route whose misfit parameters are 400 with `param`, as OpenAI answers them."""

    def get_route_handler(self) -> Any:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except RequestValidationError as error:
                first = error.errors()[0]
                param = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
                raise BadParameter(param, f"{param}: {first['msg']}") from error

        return answer


class Page(BaseModel, Generic[Item]):
    """A page of a list; `after` takes the id of its last item."""

    object: Literal["list"] = "list"
    data: list[Item]
    first_id: str | None
    last_id: str | None
    has_more: bool


class ExpiresAfter(BaseModel):
    """When a file goes."""

    model_config = ConfigDict(extra="forbid")
    anchor: Literal["created_at"]
    seconds: int = Field(ge=3600, le=2_592_000)


class FileObject(BaseModel):
    """A file that was uploaded, or written by a batch."""

    id: str
    object: Literal["file"] = "file"
    bytes: int
    created_at: int
    expires_at: int | None
    filename: str
    purpose: str
    status: Literal["uploaded", "processed", "error"] = "processed"
    status_details: str | None = None


class Deleted(BaseModel):
    """What is gone."""

    id: str
    object: str
    deleted: bool = True


class UploadObject(BaseModel):
    """A file that comes in parts."""

    id: str
    object: Literal["upload"] = "upload"
    bytes: int
    created_at: int
    expires_at: int
    filename: str
    purpose: str
    status: Literal["pending", "completed", "cancelled", "expired"]
    file: FileObject | None = None


class UploadPart(BaseModel):
    """A part of an upload."""

    id: str
    object: Literal["upload.part"] = "upload.part"
    created_at: int
    upload_id: str


class BatchError(BaseModel):
    """What is wrong with an input file."""

    code: str | None
    message: str | None
    param: str | None
    line: int | None


class BatchErrors(BaseModel):
    """What is wrong with an input file: a hundred faults at most."""

    object: Literal["list"] = "list"
    data: list[BatchError]


class RequestCounts(BaseModel):
    """Requests of a batch; in every end but that of a failed validation `completed + failed` is `total`."""

    total: int
    completed: int
    failed: int


class BatchUsage(BaseModel):
    """Tokens of a batch's own readings."""

    input_tokens: int
    input_tokens_details: dict[str, int]
    output_tokens: int
    output_tokens_details: dict[str, int]
    total_tokens: int


class BatchExtension(BaseModel):
    """What docmill says of a batch beside."""

    parent_batch_id: str | None = Field(description="The batch whose failed requests this one tries again.")
    options: dict[str, Any] = Field(description="`docmill` of the request that made it.")
    estimate: dict[str, Any] | None = Field(description="What a dry run says of tokens and cost.")


class BatchObject(BaseModel):
    """A batch. Every key is there; what is not so far is null."""

    id: str
    object: Literal["batch"] = "batch"
    endpoint: str
    model: str | None
    errors: BatchErrors | None
    input_file_id: str
    completion_window: str
    status: Literal[
        "validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"
    ]
    output_file_id: str | None
    error_file_id: str | None
    created_at: int
    in_progress_at: int | None
    expires_at: int | None
    finalizing_at: int | None
    completed_at: int | None
    failed_at: int | None
    expired_at: int | None
    cancelling_at: int | None
    cancelled_at: int | None
    request_counts: RequestCounts
    usage: BatchUsage
    metadata: dict[str, str] | None
    docmill: BatchExtension


class WebhookEndpoint(BaseModel):
    """Who is told of which events."""

    id: str
    object: Literal["webhook_endpoint"] = "webhook_endpoint"
    name: str
    url: str
    event_types: list[str]
    created_at: int
    updated_at: int
    signing_secret_hint: str


class WebhookEndpointWithSecret(WebhookEndpoint):
    """A new one, or one with a new secret: it is shown this once."""

    signing_secret: str


class Delivery(BaseModel):
    """One telling of one event."""

    id: str = Field(description="The event; the header `webhook-id`.")
    object: Literal["webhook_delivery"] = "webhook_delivery"
    event_type: str
    created_at: int
    attempts: int
    next_attempt_at: int | None
    delivered_at: int | None
    status_code: int | None
    error: str | None


def seconds(at: datetime | None) -> int | None:
    """Unix seconds."""
    return None if at is None else int(at.timestamp())


def page_of(items: list[Item], has_more: bool) -> Page[Item]:
    """A list in OpenAI's form."""
    ids = [str(item.id) for item in items]  # type: ignore[attr-defined]  # all items of lists have one
    return Page[Item](data=items, first_id=ids[0] if ids else None, last_id=ids[-1] if ids else None, has_more=has_more)


def file_object(row: RowMapping) -> FileObject:
    """A row of `files`."""
    return FileObject(
        id=row["file_id"],
        bytes=row["bytes"],
        created_at=int(row["created_at"].timestamp()),
        expires_at=seconds(row["expires_at"]),
        filename=row["filename"],
        purpose=row["purpose"],
    )


def upload_object(row: RowMapping, file: FileObject | None = None) -> UploadObject:
    """A row of `uploads`."""
    return UploadObject(
        id=row["upload_id"],
        bytes=row["bytes"],
        created_at=int(row["created_at"].timestamp()),
        expires_at=int(row["expires_at"].timestamp()),
        filename=row["filename"],
        purpose=row["purpose"],
        status=row["status"],
        file=file,
    )


_TIMES = ("in_progress", "expires", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
_SAME = ("endpoint", "model", "input_file_id", "completion_window", "status", "output_file_id", "error_file_id")


def batch_object(row: RowMapping) -> BatchObject:
    """A row of `batch_runs`. A batch that reads its last lines before it expires is in progress until then."""
    times: dict[str, Any] = {f"{name}_at": seconds(row[f"{name}_at"]) for name in _TIMES}
    used = {name: row[name] for name in ("input_tokens", "output_tokens")}
    return BatchObject(
        id=row["batch_id"],
        **{name: row[name] for name in _SAME},
        errors=BatchErrors(data=row["errors"]) if row["errors"] else None,
        created_at=int(row["created_at"].timestamp()),
        **times,
        request_counts=RequestCounts(**{name: row[name] for name in ("total", "completed", "failed")}),
        usage=BatchUsage(
            **used,
            input_tokens_details={"cached_tokens": row["cached_tokens"]},
            output_tokens_details={"reasoning_tokens": 0},
            total_tokens=sum(used.values()),
        ),
        metadata=row["metadata"],
        docmill=BatchExtension(
            parent_batch_id=row["parent_batch_id"], options=row["options"], estimate=row["estimate"]
        ),
    )


def webhook_endpoint(row: RowMapping) -> WebhookEndpoint:
    """A row of `webhooks`."""
    return WebhookEndpoint(
        id=row["webhook_id"],
        name=row["name"],
        url=row["url"],
        event_types=row["event_types"],
        created_at=int(row["created_at"].timestamp()),
        updated_at=int(row["updated_at"].timestamp()),
        signing_secret_hint="whsec_…" + row["secret"][-4:],
    )


def delivery(row: RowMapping) -> Delivery:
    """A row of `webhook_deliveries`."""
    return Delivery(
        id=row["event_id"],
        event_type=row["event_type"],
        created_at=int(row["created_at"].timestamp()),
        attempts=row["attempts"],
        next_attempt_at=seconds(row["next_at"]),
        delivered_at=seconds(row["delivered_at"]),
        status_code=row["status_code"],
        error=row["error"],
    )
