"""The routes. Blocking work (database, blobs) runs in threads; the event loop only waits."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Form, Header, Query, Request, Response, UploadFile
from fastapi.concurrency import run_in_threadpool
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from docmill import __version__
from docmill.errors import NotFound, TooLarge
from docmill.types import Record, Source, Status
from storage import api_keys, reading
from workers.api.models import DocumentOut, Health, Job, Place, Problem, Result, job_out
from workers.api.problems import Unauthorised, answer_errors, problem
from workers.intake import submit
from workers.services import Services

#: A caller may wait this long in one request; longer waits are for polling.
LONGEST_WAIT_S = 60.0
POLL_S = 0.05

PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem},
    401: {"model": Problem},
    404: {"model": Problem},
    413: {"model": Problem},
    422: {"model": Problem},
}


def make_api(use: Services) -> FastAPI:
    """The application over these services."""
    api = FastAPI(
        title="docmill",
        version=__version__,
        summary="PDFs to checked, cited rows.",
        license_info={"name": "AGPL-3.0-or-later", "identifier": "AGPL-3.0-or-later"},
    )
    answer_errors(api)
    _document_routes(api, use)
    _job_routes(api, use)
    _operator_routes(api, use)
    return api


def tenant_of(use: Services, authorization: str | None) -> str:
    """Whose call this is. Without a key it acts for the tenant of the settings, unless keys are required."""
    token = (authorization or "").removeprefix("Bearer ").strip()
    if not token:
        if use.settings.require_api_key:
            raise Unauthorised("this API wants a key: send `Authorization: Bearer KEY` (`docmill key` makes one)")
        return use.settings.tenant
    with use.database.begin() as connection:
        tenant = api_keys.tenant_of(connection, token)
    if tenant is None:
        raise Unauthorised("the key is unknown or revoked: `docmill key` makes a new one")
    return tenant


def wait_seconds(prefer: str | None) -> float:
    """N of `Prefer: wait=N` (RFC 7240), within our limit; 0 without it."""
    found = re.search(r"\bwait\s*=\s*\"?(\d+(?:\.\d+)?)", prefer or "")
    return min(float(found[1]), LONGEST_WAIT_S) if found else 0.0


async def ended(job_id: str, wait_s: float, use: Services) -> Record:
    """The job's record, as soon as it has ended or the time is over."""
    until = time.monotonic() + wait_s
    while True:
        record = await run_in_threadpool(use.store.record, job_id)
        if record.status.terminal or time.monotonic() >= until:
            return record
        await asyncio.sleep(POLL_S)


def _document_routes(api: FastAPI, use: Services) -> None:
    async def caller(authorization: Annotated[str | None, Header()] = None) -> str:
        return await run_in_threadpool(tenant_of, use, authorization)

    @api.post("/v1/documents", responses={202: {"model": Job}, **PROBLEMS}, tags=["documents"])
    async def post_document(
        file: UploadFile,
        profile: Annotated[str, Form(description="Name of the profile to read it with.")],
        response: Response,
        tenant: Annotated[str, Depends(caller)],
        prefer: Annotated[str | None, Header(description="`wait=N`: answer with the result if it is there in N s.")] = None,
    ) -> Any:
        """Send one PDF. 200 with the ended job, or 202 with a link to it."""
        data = await _read_within(file, use.settings.max_bytes)
        wait_s = wait_seconds(prefer)
        receipt = await run_in_threadpool(
            submit,
            data,
            name=file.filename or "unnamed.pdf",
            tenant=tenant,
            profile_name=profile,
            source=Source.API,
            use=use,
            somebody_waits=wait_s > 0,
        )
        if receipt.job_id is None:
            return problem(422, receipt.code or "refused", receipt.reason or "refused")
        job = job_out(await ended(receipt.job_id, wait_s, use))
        done = Status(job.status).terminal
        response.status_code = 200 if done else 202
        response.headers["Location"] = job.links["self"]
        if wait_s:
            response.headers["Preference-Applied"] = f"wait={wait_s:g}"
        return job

    @api.get("/v1/documents/{document_id}", responses=PROBLEMS, tags=["documents"])
    def get_document(document_id: str, tenant: Annotated[str, Depends(caller)]) -> DocumentOut:
        """A document and the jobs that read it."""
        with use.database.begin() as connection:
            return DocumentOut(**reading.document(connection, document_id, tenant=tenant))


def _job_routes(api: FastAPI, use: Services) -> None:
    async def caller(authorization: Annotated[str | None, Header()] = None) -> str:
        return await run_in_threadpool(tenant_of, use, authorization)

    @api.get("/v1/jobs", responses=PROBLEMS, tags=["jobs"])
    def list_jobs(
        tenant: Annotated[str, Depends(caller)],
        status: Status | None = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> list[Job]:
        """The latest jobs first."""
        with use.database.begin() as connection:
            found = reading.records(connection, tenant=tenant, limit=limit, status=status)
        return [job_out(record) for record in found]

    @api.get("/v1/jobs/{job_id}", responses=PROBLEMS, tags=["jobs"])
    def get_job(job_id: str, tenant: Annotated[str, Depends(caller)]) -> Job:
        """One job, with its result once it has ended."""
        return job_out(use.store.record(job_id, tenant=tenant))

    @api.get("/v1/jobs/{job_id}/result", responses=PROBLEMS, tags=["jobs"])
    def get_result(job_id: str, tenant: Annotated[str, Depends(caller)]) -> Result:
        """The result with the page and box of every value; 404 until there is one."""
        record = use.store.record(job_id, tenant=tenant)
        if record.result is None:
            raise NotFound(f"{job_id} has no result: it is {record.status}" + (f" ({record.reason})" if record.reason else ""))
        with use.database.begin() as connection:
            places = reading.fields(connection, job_id)
        return Result(
            job_id=job_id, status=record.status, result=record.result, fields=[Place(**place) for place in places]
        )

    @api.post("/v1/jobs/{job_id}/cancel", responses=PROBLEMS, tags=["jobs"])
    def cancel_job(job_id: str, tenant: Annotated[str, Depends(caller)]) -> Job:
        """End a job that is not over yet; one that is over stays as it is."""
        use.store.cancel(job_id, tenant=tenant)
        return job_out(use.store.record(job_id, tenant=tenant))


def _operator_routes(api: FastAPI, use: Services) -> None:
    @api.get("/health", tags=["operation"])
    def health() -> Health:
        """200 while the database answers."""
        return Health(status="ok", jobs={str(status): count for status, count in use.store.counts().items()})

    @api.get("/v1/profiles", tags=["documents"])
    def profiles() -> dict[str, Any]:
        """The profiles that a document can be read with, and the JSON Schema of each result."""
        return {profile.name: {"title": profile.title, "schema": profile.schema} for profile in use.profiles.values()}

    @api.get("/metrics", tags=["operation"], include_in_schema=False)
    def metrics(request: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


async def _read_within(file: UploadFile, max_bytes: int) -> bytes:
    data = await file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise TooLarge(f"{file.filename!r} has more than {max_bytes:,} bytes: split it or have the limit raised")
    return data
