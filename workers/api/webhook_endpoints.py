"""`/v1/webhook_endpoints` in OpenAI's shape: who is told of batches; and what was told, and telling it again."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from storage.webhooks import EVENT_TYPES
from workers.api.callers import Tenant, Use
from workers.api.openai_models import (
    PROBLEMS,
    Deleted,
    Delivery,
    Id,
    OpenAIRoute,
    Page,
    WebhookEndpoint,
    WebhookEndpointWithSecret,
    delivery,
    page_of,
    webhook_endpoint,
)
from workers.file_store import BadParameter
from workers.webhooks import call_now, target_of

EventType = Literal["batch.completed", "batch.failed", "batch.expired", "batch.cancelled"]
Text = Annotated[str, StringConstraints(min_length=1, max_length=2000, pattern=r"^[^\x00]*$")]

router = APIRouter(prefix="/v1/webhook_endpoints", tags=["webhooks"], responses=PROBLEMS, route_class=OpenAIRoute)


class CreateWebhook(BaseModel):
    """Whom to tell of what."""

    model_config = ConfigDict(extra="forbid")
    name: Text
    url: Text = Field(description="https, at a public address, unless the operator allows the host.")
    event_types: list[EventType] = Field(min_length=1, max_length=len(EVENT_TYPES))


class ChangeWebhook(BaseModel):
    """What is to be otherwise."""

    model_config = ConfigDict(extra="forbid")
    name: Text | None = None
    url: Text | None = None
    event_types: list[EventType] | None = Field(default=None, min_length=1, max_length=len(EVENT_TYPES))


class Rotation(BaseModel):
    """Whether the old secret still signs for a day."""

    keep_old_secret_active_for_24_hours: bool = False


class TestCall(BaseModel):
    """Of which kind the sample is."""

    event_type: EventType


class TestResult(BaseModel):
    """What the receiver answered."""

    object: Literal["webhook_endpoint.test"] = "webhook_endpoint.test"
    event_type: str
    status_code: int
    success: Literal[True] = True
    webhook_endpoint_id: str


class Replay(BaseModel):
    """What to tell again: these events, all since a moment (Unix seconds), or by default what never arrived."""

    model_config = ConfigDict(extra="forbid")
    event_ids: list[str] = Field(default=[], max_length=1000)
    since: int | None = Field(default=None, ge=0, le=253_402_300_799)


class Replayed(BaseModel):
    """How many are told again."""

    object: Literal["webhook_endpoint.replay"] = "webhook_endpoint.replay"
    webhook_endpoint_id: str
    deliveries: int


@router.post("")
def create_webhook(use: Use, tenant: Tenant, new: CreateWebhook) -> WebhookEndpointWithSecret:
    """Tell a URL of events. The secret that signs is shown this once."""
    target_of(new.url, use.settings.webhook_hosts)
    return _with_secret(use.webhooks.create(tenant=tenant, **new.model_dump()))


def _with_secret(row: Any) -> WebhookEndpointWithSecret:
    return WebhookEndpointWithSecret(**webhook_endpoint(row).model_dump(), signing_secret=row["secret"])


@router.get("")
def list_webhooks(
    use: Use, tenant: Tenant, after: str | None = None, limit: Annotated[int, Query(ge=1, le=100)] = 20
) -> Page[WebhookEndpoint]:
    """Webhooks, the newest first."""
    rows, more = use.webhooks.page(tenant=tenant, after=after, limit=limit)
    return page_of([webhook_endpoint(row) for row in rows], more)


@router.get("/{webhook_id}")
def get_webhook(use: Use, tenant: Tenant, webhook_id: Id) -> WebhookEndpoint:
    """One webhook."""
    return webhook_endpoint(use.webhooks.get(webhook_id, tenant=tenant))


@router.post("/{webhook_id}")
def change_webhook(use: Use, tenant: Tenant, webhook_id: Id, change: ChangeWebhook) -> WebhookEndpoint:
    """Change what is given."""
    if change.url is not None:
        target_of(change.url, use.settings.webhook_hosts)
    return webhook_endpoint(use.webhooks.change(webhook_id, change.model_dump(exclude_none=True), tenant=tenant))


@router.delete("/{webhook_id}")
def delete_webhook(use: Use, tenant: Tenant, webhook_id: Id) -> Deleted:
    """Tell it nothing more."""
    use.webhooks.delete(webhook_id, tenant=tenant)
    return Deleted(id=webhook_id, object="webhook_endpoint.deleted")


@router.post("/{webhook_id}/rotate_secret")
def rotate_secret(use: Use, tenant: Tenant, webhook_id: Id, how: Rotation | None = None) -> WebhookEndpointWithSecret:
    """A new secret, shown this once."""
    keep_old = how is not None and how.keep_old_secret_active_for_24_hours
    return _with_secret(use.webhooks.rotate(webhook_id, tenant=tenant, keep_old=keep_old))


@router.post("/{webhook_id}/test")
async def test_webhook(use: Use, tenant: Tenant, webhook_id: Id, call: TestCall) -> TestResult:
    """Send a sample event now, once."""
    row = await run_in_threadpool(use.webhooks.get, webhook_id, tenant=tenant)
    status_code = await run_in_threadpool(call_now, row, call.event_type, use)
    return TestResult(event_type=call.event_type, status_code=status_code, webhook_endpoint_id=webhook_id)


@router.get("/{webhook_id}/deliveries")
def list_deliveries(
    use: Use,
    tenant: Tenant,
    webhook_id: Id,
    after: Annotated[str | None, Query(description="Id of the last event of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Page[Delivery]:
    """What was told, the latest first, with the tries of each."""
    rows, more = use.webhooks.deliveries(webhook_id, tenant=tenant, after=after, limit=limit)
    return page_of([delivery(row) for row in rows], more)


@router.post("/{webhook_id}/replay")
def replay(use: Use, tenant: Tenant, webhook_id: Id, what: Replay | None = None) -> Replayed:
    """Tell it again; the events keep their ids, so a receiver knows what it has had."""
    asked = what or Replay()
    since = None if asked.since is None else datetime.fromtimestamp(asked.since, UTC)
    number = use.webhooks.replay(webhook_id, tenant=tenant, event_ids=asked.event_ids, since=since)
    if asked.event_ids and not number:
        raise BadParameter("event_ids", f"{webhook_id} was told of none of these events")
    return Replayed(webhook_endpoint_id=webhook_id, deliveries=number)
