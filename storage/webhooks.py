"""Webhooks: who is told of what, and each telling with its tries. An event is recorded in the transaction that makes it
true, so none is lost and none is told of what did not happen.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, RowMapping, any_, func, insert, literal, select, update

from docmill.errors import NotFound
from storage.batch_schema import webhook_deliveries, webhooks
from storage.database import transactional
from storage.files import new_id, page_of, place_of

#: What a webhook may be told of.
EVENT_TYPES = ("batch.completed", "batch.failed", "batch.expired", "batch.cancelled")
#: Seconds before each further try; after the last it is given up, and can be replayed. The Standard Webhooks schedule.
BACK_OFF_S = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
#: How long a replaced secret still signs, where the caller asked for it.
OLD_SECRET = timedelta(hours=24)


def new_secret() -> str:
    """A secret of 256 random bits in the form of Standard Webhooks."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def event_body(event_id: str, kind: str, at: datetime, data: dict[str, Any]) -> str:
    """What a receiver gets: OpenAI's form of an event."""
    event = {"id": event_id, "object": "event", "created_at": int(at.timestamp()), "type": kind, "data": data}
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))


def emit(connection: Connection, kind: str, *, tenant: str, data: dict[str, Any]) -> None:
    """Tell every webhook of the tenant that wants such events, once this transaction is committed."""
    wanting = select(webhooks.c.webhook_id, func.now().label("at")).where(
        webhooks.c.tenant == tenant, webhooks.c.deleted_at.is_(None), literal(kind) == any_(webhooks.c.event_types)
    )
    for row in connection.execute(wanting).all():
        event_id = new_id("evt_")
        values = {"webhook_id": row.webhook_id, "event_id": event_id, "event_type": kind, "next_at": row.at}
        body = event_body(event_id, kind, row.at, data)
        connection.execute(insert(webhook_deliveries).values(**values, body=body))


@dataclass(frozen=True, slots=True)
class WebhookStore:
    """Webhooks and their deliveries on PostgreSQL."""

    engine: Engine

    @transactional
    def create(
        self, connection: Connection, *, tenant: str, name: str, url: str, event_types: Sequence[str]
    ) -> RowMapping:
        values = {"tenant": tenant, "name": name, "url": url, "event_types": sorted(set(event_types))}
        made = insert(webhooks).values(webhook_id=new_id("we_"), secret=new_secret(), **values).returning(webhooks)
        return connection.execute(made).mappings().one()

    @transactional
    def get(self, connection: Connection, webhook_id: str, *, tenant: str) -> RowMapping:
        return _get(connection, webhook_id, tenant)

    @transactional
    def page(
        self, connection: Connection, *, tenant: str, after: str | None, limit: int
    ) -> tuple[list[RowMapping], bool]:
        wanted = select(webhooks).where(webhooks.c.tenant == tenant, webhooks.c.deleted_at.is_(None))
        key = webhooks.c.webhook_id
        start = place_of(connection, webhooks, key, after, tenant=tenant) if after else None
        if after and start is None:
            raise no_such_webhook(after)
        return page_of(connection, wanted, webhooks, key, start, limit=limit, ascending=False)

    @transactional
    def change(self, connection: Connection, webhook_id: str, values: Mapping[str, Any], *, tenant: str) -> RowMapping:
        """Change what is given. Raises NotFound."""
        _get(connection, webhook_id, tenant)
        changed = update(webhooks).where(webhooks.c.webhook_id == webhook_id)
        connection.execute(changed.values({**values, "updated_at": func.now()}))
        return _get(connection, webhook_id, tenant)

    @transactional
    def rotate(self, connection: Connection, webhook_id: str, *, tenant: str, keep_old: bool) -> RowMapping:
        """A new secret; the old one still signs for a day if it is kept."""
        old = _get(connection, webhook_id, tenant)["secret"] if keep_old else None
        until = func.now() + OLD_SECRET if keep_old else None
        connection.execute(
            update(webhooks)
            .where(webhooks.c.webhook_id == webhook_id, webhooks.c.tenant == tenant)
            .values(secret=new_secret(), old_secret=old, old_secret_until=until, updated_at=func.now())
        )
        return _get(connection, webhook_id, tenant)

    @transactional
    def delete(self, connection: Connection, webhook_id: str, *, tenant: str) -> None:
        """Nothing more is sent to it, not even what was to be tried again."""
        _get(connection, webhook_id, tenant)
        one = webhook_deliveries.c.webhook_id == webhook_id
        connection.execute(update(webhook_deliveries).where(one).values(next_at=None))
        connection.execute(update(webhooks).where(webhooks.c.webhook_id == webhook_id).values(deleted_at=func.now()))

    @transactional
    def deliveries(
        self, connection: Connection, webhook_id: str, *, tenant: str, after: str | None, limit: int
    ) -> tuple[list[RowMapping], bool]:
        """The latest first."""
        _get(connection, webhook_id, tenant)
        wanted = select(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id)
        if after is not None:
            number = select(webhook_deliveries.c.delivery_id).where(
                webhook_deliveries.c.webhook_id == webhook_id, webhook_deliveries.c.event_id == after
            )
            wanted = wanted.where(webhook_deliveries.c.delivery_id < number.scalar_subquery())
        newest = wanted.order_by(webhook_deliveries.c.delivery_id.desc()).limit(limit + 1)
        rows = connection.execute(newest).mappings().all()
        return list(rows[:limit]), len(rows) > limit

    @transactional
    def replay(
        self,
        connection: Connection,
        webhook_id: str,
        *,
        tenant: str,
        event_ids: Sequence[str] = (),
        since: datetime | None = None,
    ) -> int:
        """Send again: these events, all since a moment, or what was given up. Returns their number."""
        _get(connection, webhook_id, tenant)
        again = update(webhook_deliveries).where(webhook_deliveries.c.webhook_id == webhook_id)
        if event_ids:
            again = again.where(webhook_deliveries.c.event_id.in_(event_ids))
        elif since is not None:
            again = again.where(webhook_deliveries.c.created_at >= since)
        else:
            again = again.where(webhook_deliveries.c.delivered_at.is_(None))
        fresh = {"next_at": func.now(), "attempts": 0, "delivered_at": None, "error": None}
        return connection.execute(again.values(fresh)).rowcount

    @transactional
    def take_due(self, connection: Connection, *, limit: int, hold_s: float) -> list[RowMapping]:
        """Deliveries whose time has come, with their webhook; another worker sees them `hold_s` later."""
        due = (
            select(webhook_deliveries.c.delivery_id)
            .where(webhook_deliveries.c.next_at <= func.now())
            .order_by(webhook_deliveries.c.next_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        taken = list(connection.execute(due).scalars())
        _set(connection, taken, next_at=func.now() + timedelta(seconds=hold_s))
        shown = webhooks.c.url, webhooks.c.secret, webhooks.c.old_secret, webhooks.c.old_secret_until
        rows = select(webhook_deliveries, *shown).join(webhooks).where(webhook_deliveries.c.delivery_id.in_(taken))
        return list(connection.execute(rows).mappings())

    @transactional
    def delivered(self, connection: Connection, delivery_id: int, *, status_code: int) -> None:
        values = {"delivered_at": func.now(), "next_at": None, "status_code": status_code, "error": None}
        _set(connection, [delivery_id], attempts=webhook_deliveries.c.attempts + 1, **values)

    @transactional
    def not_delivered(
        self, connection: Connection, delivery: RowMapping, *, status_code: int | None, error: str, scale: float = 1.0
    ) -> None:
        """Try again later, or give it up after the last try."""
        tried = delivery["attempts"]
        again = tried < len(BACK_OFF_S)
        pause = timedelta(seconds=BACK_OFF_S[tried] * scale) if again else None
        next_at = func.now() + pause if pause is not None else None
        values = {"next_at": next_at, "status_code": status_code, "error": error}
        _set(connection, [delivery["delivery_id"]], attempts=tried + 1, **values)


def _set(connection: Connection, ids: Iterable[int], **values: Any) -> None:
    one = webhook_deliveries.c.delivery_id.in_(list(ids))
    connection.execute(update(webhook_deliveries).where(one).values(values))


def no_such_webhook(webhook_id: str) -> NotFound:
    """Also for another tenant's."""
    return NotFound(f"there is no webhook {webhook_id}; GET /v1/webhook_endpoints lists those that exist")


def _get(connection: Connection, webhook_id: str, tenant: str) -> RowMapping:
    mine = webhooks.c.webhook_id == webhook_id, webhooks.c.tenant == tenant, webhooks.c.deleted_at.is_(None)
    row = connection.execute(select(webhooks).where(*mine)).mappings().one_or_none()
    if row is None:
        raise no_such_webhook(webhook_id)
    return row
