"""The routes. Blocking work (database, blobs) runs in threads; the event loop only waits."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Form, Header, Query, Response, UploadFile
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from docmill.errors import NotFound, TooLarge
from docmill.types import Source, Status
from storage import reading
from workers.api.callers import Tenant, Use, ended, wait_seconds
from workers.api.models import DocumentOut, Health, Job, Place, Problem, Result, job_out
from workers.api.problems import problem
from workers.intake import submit

PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 404, 413, 422, 429)}
ORDERING_KEY = "Documents with the same key are read one after the other, in the order in which they came."
PREFER = "`wait=N`: answer with the result if it is there within N seconds."

router = APIRouter(prefix="", responses=PROBLEMS)


@router.post("/v1/documents", responses={202: {"model": Job}}, response_model=Job, tags=["documents"])
async def post_document(
    use: Use,
    tenant: Tenant,
    response: Response,
    file: UploadFile,
    profile: Annotated[str, Form(description="Name of the profile to read it with.")],
    *,
    prefer: Annotated[str | None, Header(description=PREFER)] = None,
    ordering_key: Annotated[str | None, Form(description=ORDERING_KEY, max_length=512, pattern=r"^[^\x00]+$")] = None,
) -> Any:
    """Send one PDF. 200 with the ended job, or 202 with a link to it."""
    wait_s = wait_seconds(prefer)
    receipt = await run_in_threadpool(
        submit,
        await _read_within(file, use.settings.max_bytes),
        name=file.filename or "unnamed.pdf",
        tenant=tenant,
        profile_name=profile,
        source=Source.API,
        use=use,
        somebody_waits=wait_s > 0,
        ordering_key=ordering_key,
    )
    if receipt.job_id is None:
        return problem(422, receipt.code or "refused", receipt.reason or "refused")
    job = job_out(await ended(receipt.job_id, wait_s, use))
    response.status_code = 200 if Status(job.status).terminal else 202
    response.headers["Location"] = job.links["self"]
    if wait_s:
        response.headers["Preference-Applied"] = f"wait={wait_s:g}"
    return job


@router.get("/v1/documents/{document_id}", tags=["documents"])
def get_document(use: Use, tenant: Tenant, document_id: str) -> DocumentOut:
    """A document and the jobs that read it."""
    with use.database.begin() as connection:
        return DocumentOut(**reading.document(connection, document_id, tenant=tenant))


@router.get("/v1/jobs", tags=["jobs"])
def list_jobs(
    use: Use, tenant: Tenant, status: Status | None = None, limit: Annotated[int, Query(ge=1, le=1000)] = 100
) -> list[Job]:
    """The latest jobs first."""
    with use.database.begin() as connection:
        found = reading.records(connection, tenant=tenant, limit=limit, status=status)
    return [job_out(record) for record in found]


@router.get("/v1/jobs/{job_id}", tags=["jobs"])
def get_job(use: Use, tenant: Tenant, job_id: str) -> Job:
    """One job, with its result once it has ended."""
    return job_out(use.store.record(job_id, tenant=tenant))


@router.get("/v1/jobs/{job_id}/result", tags=["jobs"])
def get_result(use: Use, tenant: Tenant, job_id: str) -> Result:
    """The result with the page and box of every value; 404 until there is one."""
    record = use.store.record(job_id, tenant=tenant)
    if record.result is None:
        raise NotFound(f"{job_id} has no result: it is {record.status} ({record.reason or 'not over yet'})")
    with use.database.begin() as connection:
        places = [Place(**place) for place in reading.fields(connection, job_id)]
    return Result(job_id=job_id, status=record.status, result=record.result, fields=places)


@router.post("/v1/jobs/{job_id}/cancel", tags=["jobs"])
def cancel_job(use: Use, tenant: Tenant, job_id: str) -> Job:
    """End a job that is not over yet; one that is over stays as it is."""
    use.store.cancel(job_id, tenant=tenant)
    return job_out(use.store.record(job_id, tenant=tenant))


@router.get("/v1/profiles", tags=["documents"])
def profiles(use: Use) -> dict[str, Any]:
    """The profiles that a document can be read with, and the JSON Schema of each result."""
    return {name: {"title": profile.title, "schema": profile.schema} for name, profile in use.profiles.items()}


@router.get("/health", tags=["operation"])
def health(use: Use) -> Health:
    """200 while the database answers."""
    return Health(status="ok", jobs={str(status): count for status, count in use.store.counts().items()})


@router.get("/metrics", include_in_schema=False)
def metrics() -> Response:
    """Prometheus text."""
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _read_within(file: UploadFile, max_bytes: int) -> bytes:
    data = await file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"{file.filename!r} has more than {max_bytes:,} bytes: split it or have the limit raised")
    return data
