"""Where a bucket tells of new objects: as a webhook of the bucket itself, or of a topic or queue that it tells."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body
from pydantic import BaseModel, Field

from docmill.errors import NotFound
from ingest.bucket_events import created
from workers import bucket_objects
from workers.api.callers import Tenant, Use
from workers.api.models import Problem

PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429)}

router = APIRouter(prefix="/v1/bucket-events", tags=["bucket"], responses=PROBLEMS)

Message = Annotated[Any, Body(description="As S3, SNS, SQS or EventBridge sends it.")]


class Heard(BaseModel):
    """How many objects were told of, and how many of them are inputs of this inbox and will be looked at."""

    told: int = Field(description="Objects that the message says were put.")
    looked_at: int


@router.post("", status_code=202)
def hear(use: Use, tenant: Tenant, message: Message) -> Heard:
    """Tell of objects that were put into the bucket. Each is looked at in the bucket itself, so nothing is believed."""
    if use.settings.inbox_folder is not None:
        raise NotFound(
            "the inbox is a folder, of which nobody need tell; DOCMILL_INBOX=s3://bucket/prefix changes that"
        )
    events = list(created(message))
    return Heard(told=len(events), looked_at=bucket_objects.told(events, use.bucket, use))
