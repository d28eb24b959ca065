"""What a tenant may use, and what it has used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert

from storage.schema import ledger, tenants


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits of a tenant. None: that of the settings; 0: none. Days and months are those of UTC."""

    requests_per_minute: int | None = None
    tokens_per_day: int | None = None
    usd_per_day: Decimal | None = None
    usd_per_month: Decimal | None = None

    def over(self, usual: Quota) -> Quota:
        """This quota, with the usual one where it says nothing."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        return Quota(**{name: getattr(usual, name) if value is None else value for name, value in own.items()})


LIMITS = tuple(one.name for one in fields(Quota))


@dataclass(frozen=True, slots=True)
class Used:
    """What a tenant's jobs have used since a moment."""

    tokens: int
    usd: Decimal


def quota(connection: Connection, tenant: str) -> Quota:
    """The quota that was set for the tenant; an unknown tenant has none of its own."""
    row = connection.execute(select(*_limits()).where(tenants.c.tenant == tenant)).one_or_none()
    return Quota() if row is None else Quota(*row)


def set_quota(connection: Connection, tenant: str, changes: Mapping[str, int | Decimal | None]) -> Quota:
    """Change some of a tenant's limits; the tenant is entered if new."""
    new = insert(tenants).values({"tenant": tenant, **changes})
    again = new.on_conflict_do_update(index_elements=["tenant"], set_=dict(changes) or {"tenant": tenant})
    return Quota(*connection.execute(again.returning(*_limits())).one())


def listed(connection: Connection) -> Sequence[tuple[str, Quota]]:
    """Every tenant that was entered, with its own quota."""
    rows = connection.execute(select(tenants.c.tenant, *_limits()).order_by(tenants.c.tenant))
    return [(row[0], Quota(*row[1:])) for row in rows]


def used(connection: Connection, tenant: str, since: datetime) -> Used:
    """What the tenant's jobs have used since then by the ledger, with the money that is held for what runs now."""
    tokens = func.coalesce(func.sum(ledger.c.prompt_tokens + ledger.c.output_tokens), 0)
    money = func.coalesce(func.sum(ledger.c.amount_usd), 0)
    statement = select(tokens, money).where(ledger.c.tenant == tenant, ledger.c.at >= since)
    row = connection.execute(statement).one()
    return Used(int(row[0]), Decimal(row[1]))


def _limits() -> list[Any]:
    return [tenants.c[name] for name in LIMITS]
