"""`docmill keys|tenants|audit`: who may use the API, how much of it, and who changed what."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from workers.console import errors as _err
from workers.console import tables as _out

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from storage.api_keys import Key, Scope
    from workers.services import Services

keys = typer.Typer(help="API keys: made, listed, ended.", no_args_is_help=True)
tenants = typer.Typer(help="Tenants and their quotas.", no_args_is_help=True)

_UNITS = {"m": 60, "h": 3600, "d": 86400}

TenantArgument = Annotated[str, typer.Argument(help="Name of the tenant.")]
TenantOption = Annotated[str, typer.Option("--tenant", "-t", help="Only this tenant's.")]


@keys.command("create")
def create_key(
    tenant: TenantArgument,
    label: Annotated[str, typer.Option(help="What the key is for; the audit names it.")] = "cli",
    scope: Annotated[
        list[str] | None, typer.Option(help="read, submit, review or admin; give it again for more.")
    ] = None,
    expires: Annotated[str, typer.Option(help="How long it holds, as 90d, 12h or 30m; else until revoked.")] = "",
) -> None:
    """Make a key; it is shown once. Without --scope it may read, submit and review."""
    from storage import api_keys

    scopes, ends = _scopes(scope or []), _ends(expires)
    with _act() as (connection, _):
        token = api_keys.create(connection, tenant, label, scopes=scopes, expires_at=ends)
        detail = {"key_id": api_keys.key_id_of(token), "label": label, "scopes": [*scopes], "expires_at": str(ends)}
        _write_down(connection, "key_created", tenant, detail)
    typer.echo(token)


@keys.command("list")
def list_keys(tenant: TenantOption = "") -> None:
    """Every key that was made, without its token."""
    from storage import api_keys

    table = Table("key", "tenant", "label", "scopes", "made", "state")
    with _act() as (connection, _):
        for key in api_keys.listed(connection, tenant or None):
            made = f"{key.created_at:%Y-%m-%d %H:%M}"
            table.add_row(key.key_id, key.tenant, key.label, ", ".join(sorted(key.scopes)), made, _state(key))
    _out.print(table)


@keys.command("revoke")
def revoke_key(key: Annotated[str, typer.Argument(help="Its name, key_…, as `docmill keys list` shows it.")]) -> None:
    """End a key, at once and for good."""
    from storage import api_keys

    with _act() as (connection, _):
        tenant = api_keys.revoke_key(connection, key)
        if tenant is not None:
            _write_down(connection, "key_revoked", tenant, {"key_id": key})
    if tenant is None:
        _err.print(f"there is no key {key} in force: `docmill keys list` shows those that there are")
        raise typer.Exit(1)
    _out.print(f"{key} of {tenant} is revoked")


@tenants.command("set")
def set_tenant(
    tenant: TenantArgument,
    requests_per_minute: Annotated[str, typer.Option(help="Calls and files a minute.")] = "",
    tokens_per_day: Annotated[str, typer.Option(help="Tokens a day, UTC.")] = "",
    usd_per_day: Annotated[str, typer.Option(help="US dollars a day, UTC.")] = "",
    usd_per_month: Annotated[str, typer.Option(help="US dollars a month, UTC.")] = "",
) -> None:
    """Set limits of a tenant, who is entered if new. 0: no limit; `default`: that of the settings."""
    from storage import tenants as kept

    given = {
        "requests_per_minute": requests_per_minute,
        "tokens_per_day": tokens_per_day,
        "usd_per_day": usd_per_day,
        "usd_per_month": usd_per_month,
    }
    changes = {name: _limit(name, value) for name, value in given.items() if value}
    with _act() as (connection, use):
        quota = kept.set_quota(connection, tenant, changes).over(use.quotas.usual)
        _write_down(connection, "tenant_set", tenant, {name: given[name] for name in changes})
    _out.print(f"{tenant}: " + ", ".join(f"{name} {_shown(getattr(quota, name))}" for name in kept.LIMITS))


@tenants.command("list")
def list_tenants() -> None:
    """Every tenant with the limits in force and what it has used."""
    from storage import tenants as kept

    table = Table("tenant", "requests/min", "tokens today", "of", "USD today", "of", "USD this month", "of")
    with _act() as (connection, use):
        for tenant, own in kept.listed(connection):
            limit, today = own.over(use.quotas.usual), use.quotas.used_today(tenant)
            month = use.quotas.used_this_month(tenant)
            table.add_row(
                *(tenant, _shown(limit.requests_per_minute), str(today.tokens), _shown(limit.tokens_per_day)),
                *(f"{today.usd:f}", _shown(limit.usd_per_day), f"{month.usd:f}", _shown(limit.usd_per_month)),
            )
    _out.print(table)


def audit(tenant: TenantOption = "", limit: Annotated[int, typer.Option(help="Acts at most.", min=1)] = 100) -> None:
    """Who changed what from outside, the latest first."""
    from storage.audit import entries

    table = Table("at", "tenant", "who", "what", "detail")
    with _act() as (connection, _):
        for one in entries(connection, tenant=tenant or None, limit=limit):
            detail = " ".join(f"{name}={value}" for name, value in one.detail.items() if value is not None)
            table.add_row(f"{one.at:%Y-%m-%d %H:%M:%S}", one.tenant, one.actor, one.kind, detail)
    _out.print(table)


def register(main: typer.Typer) -> None:
    """Add the commands to `docmill`."""
    main.add_typer(keys, name="keys")
    main.add_typer(tenants, name="tenants")
    main.command()(audit)


@contextmanager
def _act() -> Iterator[tuple[Connection, Services]]:
    """One transaction on the running stack's database."""
    from workers.cli import use_running_stack
    from workers.services import services

    use_running_stack()
    use = services()
    with use.database.begin() as connection:
        yield connection, use


def _write_down(connection: Connection, kind: str, tenant: str, detail: Mapping[str, object]) -> None:
    from storage.audit import record_act
    from workers.commands import actor

    record_act(connection, kind, tenant=tenant, actor=actor(), detail=dict(detail))


def _scopes(names: list[str]) -> tuple[Scope, ...]:
    from storage.api_keys import USUAL, Scope

    wrong = sorted(set(names) - set(Scope))
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)}: a scope is one of {', '.join(Scope)}")
    return tuple(Scope(name) for name in names) or USUAL


def _ends(expires: str) -> datetime | None:
    if not expires:
        return None
    found = re.fullmatch(r"(\d{1,5})([mhd])", expires)
    if found is None:
        raise typer.BadParameter(f"{expires!r} is no time: give minutes, hours or days as 30m, 12h or 90d")
    return datetime.now(UTC) + timedelta(seconds=int(found[1]) * _UNITS[found[2]])


def _limit(name: str, value: str) -> int | Decimal | None:
    if value == "default":
        return None
    try:
        limit = Decimal(value) if name.startswith("usd") else int(value)
    except (InvalidOperation, ValueError):
        limit = -1
    if not 0 <= limit < 10**9:
        raise typer.BadParameter(f"{value!r} is no limit: give a number from 0 to 999,999,999, or `default`")
    return limit


def _state(key: Key) -> str:
    if key.revoked_at is not None:
        return f"revoked {key.revoked_at:%Y-%m-%d %H:%M}"
    if key.expires_at is None:
        return "in force"
    over = key.expires_at <= datetime.now(UTC)
    return f"{'ended' if over else 'in force until'} {key.expires_at:%Y-%m-%d %H:%M}"


def _shown(limit: int | Decimal | None) -> str:
    return f"{Decimal(limit).normalize():,f}" if limit else "no limit"
