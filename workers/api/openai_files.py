"""`/v1/files` in OpenAI's shape: upload, look, list, delete, download."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, BinaryIO, Literal
from urllib.parse import quote

from fastapi import APIRouter, Form, Query, UploadFile
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from docmill.errors import NotFound
from storage.files import no_such_file
from workers.api.callers import Tenant, Use
from workers.api.openai_models import PROBLEMS, Deleted, FileObject, Id, OpenAIRoute, Page, file_object, page_of
from workers.file_store import BadParameter, keep_and_record

PIECE_BYTES = 1024 * 1024
_CONTENT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}

router = APIRouter(prefix="/v1/files", tags=["files"], responses=PROBLEMS, route_class=OpenAIRoute)


@router.post("")
async def upload_file(
    use: Use,
    tenant: Tenant,
    file: UploadFile,
    purpose: Annotated[str, Form(description="batch (JSONL of requests), user_data (PDF, zip), …")],
    anchor: Annotated[Literal["created_at"] | None, Form(alias="expires_after[anchor]")] = None,
    seconds: Annotated[int | None, Form(alias="expires_after[seconds]", ge=3600, le=2_592_000)] = None,
) -> FileObject:
    """Keep a file. What is in it is looked at when a batch reads it."""
    if (anchor is None) != (seconds is None):
        raise BadParameter("expires_after", "`expires_after` has both, an anchor and seconds")
    row = await run_in_threadpool(
        keep_and_record,
        pieces_of(file.file),
        use=use,
        tenant=tenant,
        filename=file.filename or "unnamed",
        purpose=purpose,
        keep_s=seconds,
    )
    return file_object(row)


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """A file in pieces, so that memory does not grow with it."""
    while piece := file.read(PIECE_BYTES):
        yield piece


@router.get("")
def list_files(
    use: Use,
    tenant: Tenant,
    purpose: str | None = None,
    after: str | None = None,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 10_000,
    order: Literal["asc", "desc"] = "desc",
) -> Page[FileObject]:
    """Files by their time of creation, the newest first."""
    rows, more = use.files.page(tenant=tenant, purpose=purpose, after=after, limit=limit, ascending=order == "asc")
    return page_of([file_object(row) for row in rows], more)


@router.get("/{file_id}")
def get_file(use: Use, tenant: Tenant, file_id: Id) -> FileObject:
    """What is known of a file."""
    return file_object(use.files.get(file_id, tenant=tenant))


@router.delete("/{file_id}")
def delete_file(use: Use, tenant: Tenant, file_id: Id) -> Deleted:
    """Forget a file. Batches and documents that were made of it go on."""
    use.files.delete(file_id, tenant=tenant)
    return Deleted(id=file_id, object="file")


@router.get("/{file_id}/content", response_class=StreamingResponse, responses=_CONTENT)
def file_content(use: Use, tenant: Tenant, file_id: Id) -> StreamingResponse:
    """The bytes."""
    row = use.files.get(file_id, tenant=tenant)
    try:
        pieces = use.blobs.stream(row["blob_key"])
    except NotFound as error:
        raise no_such_file(file_id) from error
    headers = {
        "Content-Length": str(row["bytes"]),
        "Content-Disposition": f"attachment; filename*=utf-8''{quote(row['filename'], safe='')}",
    }
    return StreamingResponse(pieces, media_type="application/octet-stream", headers=headers)
