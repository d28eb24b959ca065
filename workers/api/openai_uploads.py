"""`/v1/uploads` in OpenAI's shape: a large file in parts, in any order, within an hour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fastapi import APIRouter, UploadFile
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from docmill.errors import RequestError
from storage.files import new_id
from workers.api.callers import Tenant, Use
from workers.api.openai_files import pieces_of
from workers.api.openai_models import (
    PROBLEMS,
    ExpiresAfter,
    Id,
    OpenAIRoute,
    UploadObject,
    UploadPart,
    file_object,
    upload_object,
)
from workers.file_store import LONGEST_NAME, BadParameter, Passing, check_purpose, keep
from workers.services import Services

#: OpenAI's limits.
LARGEST_UPLOAD = 8 * 1024**3
LARGEST_PART = 64 * 1024**2

router = APIRouter(prefix="/v1/uploads", tags=["files"], responses=PROBLEMS, route_class=OpenAIRoute)


class NewUpload(BaseModel):
    """What is to come."""

    model_config = ConfigDict(extra="forbid")
    bytes: int = Field(ge=0, le=LARGEST_UPLOAD)
    filename: str = Field(min_length=1, max_length=LONGEST_NAME, pattern=r"^[^\x00]*$")
    mime_type: str = Field(max_length=200, pattern=r"^[^\x00]*$")
    purpose: str
    expires_after: ExpiresAfter | None = None


class Completion(BaseModel):
    """All parts in order."""

    model_config = ConfigDict(extra="forbid")
    part_ids: list[str] = Field(max_length=10_000)
    md5: str | None = None


@router.post("")
def create_upload(use: Use, tenant: Tenant, new: NewUpload) -> UploadObject:
    """Begin an upload; it lasts an hour."""
    check_purpose(new.purpose, new.filename)
    most = use.settings.batch_file_max_bytes if new.purpose == "batch" else LARGEST_UPLOAD
    if new.bytes > most:
        raise BadParameter("bytes", f"{new.filename!r} is too large: the limit is {most:,} bytes")
    values = {name: getattr(new, name) for name in ("bytes", "filename", "mime_type", "purpose")}
    keep_s = new.expires_after.seconds if new.expires_after else None
    return upload_object(use.files.new_upload({**values, "tenant": tenant, "keep_s": keep_s}))


@router.post("/{upload_id}/parts")
async def add_part(use: Use, tenant: Tenant, upload_id: Id, data: UploadFile) -> UploadPart:
    """Keep one part, of at most 64 MiB."""
    row = await run_in_threadpool(_keep_part, use, tenant, upload_id, data)
    return UploadPart(id=row["part_id"], created_at=int(row["created_at"].timestamp()), upload_id=upload_id)


def _keep_part(use: Services, tenant: str, upload_id: str, data: UploadFile) -> RowMapping:
    upload = _pending(use, tenant, upload_id)
    part_id = new_id("part_")
    key = f"uploads/{tenant}/{upload_id}/{part_id}"
    passing = Passing(pieces_of(data.file), LARGEST_PART)
    use.blobs.put_stream(key, passing)
    if passing.size > LARGEST_PART:
        use.blobs.delete(key)
        raise BadParameter("data", f"a part has at most {LARGEST_PART:,} bytes: split it")
    return use.files.add_part(upload, part_id=part_id, size=passing.size, blob_key=key)


def _pending(use: Services, tenant: str, upload_id: str) -> RowMapping:
    upload = use.files.upload(upload_id, tenant=tenant)
    if upload["status"] != "pending":
        raise RequestError(f"upload {upload_id} is {upload['status']}: make a new one")
    return upload


@router.post("/{upload_id}/complete")
def complete_upload(use: Use, tenant: Tenant, upload_id: Id, completion: Completion) -> UploadObject:
    """Join the parts to one file."""
    upload = _pending(use, tenant, upload_id)
    parts = _in_order(use, upload, completion.part_ids)
    new = keep(
        _joined(use, parts),
        tenant=tenant,
        filename=upload["filename"],
        purpose=upload["purpose"],
        keep_s=upload["keep_s"],
        use=use,
        md5=completion.md5,
        limit=LARGEST_UPLOAD,
    )
    row = use.files.end_upload(upload_id, "completed", new=new)
    return upload_object(row, file_object(use.files.get(new.file_id, tenant=tenant)))


def _in_order(use: Services, upload: RowMapping, part_ids: Sequence[str]) -> list[RowMapping]:
    """The parts as the caller lists them: each of this upload, all bytes that were announced."""
    known = use.files.parts(upload["upload_id"])
    if unknown := [part_id for part_id in part_ids if part_id not in known]:
        raise BadParameter("part_ids", f"{unknown[0]!r} is no part of {upload['upload_id']}")
    parts = [known[part_id] for part_id in part_ids]
    size = sum(part["bytes"] for part in parts)
    if size != upload["bytes"]:
        raise BadParameter("part_ids", f"the parts have {size:,} bytes, the upload was to have {upload['bytes']:,}")
    return parts


def _joined(use: Services, parts: Sequence[RowMapping]) -> Iterator[bytes]:
    for part in parts:
        yield from use.blobs.stream(part["blob_key"])


@router.post("/{upload_id}/cancel")
def cancel_upload(use: Use, tenant: Tenant, upload_id: Id) -> UploadObject:
    """Give it up; its parts go."""
    _pending(use, tenant, upload_id)
    return upload_object(use.files.end_upload(upload_id, "cancelled"))
