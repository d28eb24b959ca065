"""Who calls, and how long they wait."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.concurrency import run_in_threadpool

from docmill.types import Record
from storage import api_keys
from workers.api.problems import Unauthorised
from workers.services import Services

#: A caller may wait this long in one request; longer waits are for polling.
LONGEST_WAIT_S = 60.0
POLL_S = 0.05


def services_of(request: Request) -> Services:
    """The services that the application was made with."""
    use: Services = request.app.state.services
    return use


Use = Annotated[Services, Depends(services_of)]


def tenant_of(use: Use, authorization: Annotated[str | None, Header()] = None) -> str:
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


Tenant = Annotated[str, Depends(tenant_of)]


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
