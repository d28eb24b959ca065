"""Who calls, what they may, how often, and how long they wait. `gate.Gate` asks before a byte of the body is read."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
import time
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import Connection

from docmill.types import Record
from storage import api_keys
from storage.api_keys import Key, Scope, without_keys
from storage.audit import record_act
from workers.api.problems import Forbidden, Unauthorised
from workers.services import Services

#: A caller may wait this long in one request; longer waits are for polling.
LONGEST_WAIT_S = 60.0
POLL_S = 0.05

#: Methods that change nothing: they need `read` and leave no trace in the audit.
SAFE = ("GET", "HEAD", "OPTIONS")
#: What a key must be allowed for a call: the first row whose method and start of the path fit. "" fits all.
NEEDS: tuple[tuple[str, str, Scope], ...] = (
    ("", "/v1/audit", Scope.ADMIN),
    *((method, "", Scope.READ) for method in SAFE),
    ("", "/v1/reviews", Scope.REVIEW),
    ("", "/v1/webhook_endpoints", Scope.ADMIN),
    ("", "", Scope.SUBMIT),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls. `actor` is what the audit says: `key:LABEL`, or `anonymous` where keys are not required."""

    tenant: str
    actor: str
    key_id: str | None = None


def services_of(request: Request) -> Services:
    """The services that the application was made with."""
    use: Services = request.app.state.services
    return use


Use = Annotated[Services, Depends(services_of)]


def caller_of(use: Use, request: Request) -> Caller:
    """Who makes this call; the gate knows already where the path is one of `/v1`."""
    known: Caller | None = getattr(request.state, "caller", None)
    return known or admit(request, use)


def tenant_of(caller: Annotated[Caller, Depends(caller_of)]) -> str:
    """Whose call this is."""
    return caller.tenant


Called = Annotated[Caller, Depends(caller_of)]
Tenant = Annotated[str, Depends(tenant_of)]


def admit(request: Request, use: Services) -> Caller:
    """Know the caller, refuse what the key is not for or the quota does not leave, write down what may change things.

    The audit's entry is there before the call is carried out: a process that dies in between hides nothing.
    """
    with use.database.begin() as connection:
        caller = _known(connection, request, use)
    request.state.caller = caller
    use.quotas.count_request(caller.tenant)
    if request.method not in SAFE:
        _write_down("call", request, caller, use)
    return caller


def record_refusal(request: Request, caller: Caller, status: int, use: Services) -> None:
    """A call that is in the audit was not carried out."""
    if request.method not in SAFE:
        _write_down("call_refused", request, caller, use, status=status)


def _write_down(kind: str, request: Request, caller: Caller, use: Services, **more: Any) -> None:
    """The path is kept as it was sent, encoded: it may hold what no database stores."""
    path = without_keys(request.scope.get("raw_path", b"").partition(b"?")[0].decode("ascii", "replace"))[:500]
    detail = {"method": request.method, "path": path, "request_id": request.state.request_id, "key_id": caller.key_id}
    with use.database.begin() as connection:
        record_act(connection, kind, tenant=caller.tenant, actor=caller.actor, detail={**detail, **more})


def token_of(authorization: str | None) -> str:
    """The token of `Bearer TOKEN`, or the password of `Basic …` (services that can send nothing else use that)."""
    kind, _, rest = (authorization or "").strip().partition(" ")
    if kind.lower() == "basic":
        try:
            return base64.b64decode(rest, validate=True).decode().partition(":")[2].strip()
        except (binascii.Error, UnicodeDecodeError):
            return rest
    return rest.strip() if kind.lower() == "bearer" else kind


def needed(method: str, path: str) -> Scope:
    """What a key must be allowed for this call."""
    return next(scope for verb, start, scope in NEEDS if verb in ("", method) and path.startswith(start))


def _known(connection: Connection, request: Request, use: Services) -> Caller:
    token = token_of(request.headers.get("authorization"))
    if not token:
        if use.settings.require_api_key:
            raise Unauthorised(
                "this API wants a key: send `Authorization: Bearer KEY` (`docmill keys create` makes one)"
            )
        return Caller(use.settings.tenant, "anonymous")
    key = api_keys.find(connection, token)
    if key is None:
        raise Unauthorised("the key is unknown, revoked or over its time: `docmill keys create` makes a new one")
    _allow(key, needed(request.method, request.url.path))
    return Caller(key.tenant, f"key:{key.label}", key.key_id)


def _allow(key: Key, scope: Scope) -> None:
    if not key.allows(scope):
        has = ", ".join(sorted(key.scopes))
        raise Forbidden(f"{key.key_id} is for {has}; this call needs {scope} (`docmill keys create --scope {scope}`)")


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
