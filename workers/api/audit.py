"""The audit over HTTP: who changed what, for a key that may administrate."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from storage import audit
from workers.api.callers import Tenant, Use
from workers.api.models import Problem

PROBLEMS: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in (400, 401, 403, 422, 429)}
#: The largest number that PostgreSQL holds.
LAST_ID = 2**63 - 1

router = APIRouter(prefix="/v1/audit", tags=["audit"], responses=PROBLEMS)


class Act(BaseModel):
    """One act. `call` is written before the call is carried out; `call_refused` follows if it was not."""

    event_id: int
    at: datetime
    actor: str = Field(description="key:LABEL, cli:USER, bucket, or anonymous where keys are not required.")
    kind: str
    job_id: str | None
    detail: dict[str, Any] = Field(description="Of a call: method, path, request id, key id, and status if refused.")


@router.get("")
def list_acts(
    use: Use,
    tenant: Tenant,
    before: Annotated[int | None, Query(ge=1, le=LAST_ID, description="The event id that the page ends above.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[Act]:
    """What was changed from outside, the latest first."""
    with use.database.begin() as connection:
        found = audit.entries(connection, tenant=tenant, before=before, limit=limit)
    return [Act(**{name: getattr(one, name) for name in Act.model_fields}) for one in found]
