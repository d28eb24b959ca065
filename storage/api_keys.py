"""Keys of the API: a token is shown once, when it is made; only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from storage.schema import api_keys, tenants

#: So that a token is known for what it is, by people and by scanners for leaked secrets.
PREFIX = "docmill_"


class Scope(StrEnum):
    """What a key may be used for. `admin` may do everything that its tenant may."""

    READ = "read"
    SUBMIT = "submit"
    REVIEW = "review"
    ADMIN = "admin"


#: What a key is made for where nothing is said.
USUAL = (Scope.READ, Scope.SUBMIT, Scope.REVIEW)


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it may be shown: by its name, never by its token."""

    key_id: str
    tenant: str
    label: str
    scopes: frozenset[Scope]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None

    def allows(self, scope: Scope) -> bool:
        """Whether the key may be used for this."""
        return scope in self.scopes or Scope.ADMIN in self.scopes


def create(
    connection: Connection,
    tenant: str,
    label: str,
    *,
    scopes: Iterable[Scope] = USUAL,
    expires_at: datetime | None = None,
) -> str:
    """Make a key for a tenant, who is entered if new, and return its token: nobody can read it again."""
    token = PREFIX + secrets.token_urlsafe(32)
    connection.execute(insert(tenants).values(tenant=tenant).on_conflict_do_nothing())
    row = {"key_sha256": _hash(token), "key_id": key_id_of(token), "tenant": tenant, "label": label}
    connection.execute(insert(api_keys).values({**row, "scopes": sorted(set(scopes)), "expires_at": expires_at}))
    return token


def key_id_of(token: str) -> str:
    """The name of a token's key."""
    return f"key_{_hash(token)[:16]}"


def without_keys(text: str) -> str:
    """A text for logs and the audit: a token that somebody put into it by mistake is blanked out."""
    return re.sub(rf"{PREFIX}[\w-]+", f"{PREFIX}…", text)


def find(connection: Connection, token: str) -> Key | None:
    """The key of this token, or None if it is unknown, revoked or over its time."""
    row = connection.execute(
        select(api_keys).where(
            api_keys.c.key_sha256 == _hash(token),
            api_keys.c.revoked_at.is_(None),
            or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > func.now()),
        )
    ).one_or_none()
    return None if row is None else _key(row)


def listed(connection: Connection, tenant: str | None = None) -> Sequence[Key]:
    """Every key of a tenant, or of all, ended ones too, the oldest first."""
    statement = select(api_keys).order_by(api_keys.c.created_at, api_keys.c.key_id)
    if tenant is not None:
        statement = statement.where(api_keys.c.tenant == tenant)
    return [_key(row) for row in connection.execute(statement)]


def revoke(connection: Connection, tenant: str, label: str) -> int:
    """End every key of this label, at once and for good. Returns their number: 0 means that there was none."""
    return _revoke(connection, api_keys.c.tenant == tenant, api_keys.c.label == label)


def revoke_key(connection: Connection, key_id: str) -> str | None:
    """End one key by its name, at once and for good. Returns its tenant; None if there is no such key in force."""
    tenant = connection.execute(select(api_keys.c.tenant).where(api_keys.c.key_id == key_id)).scalar_one_or_none()
    return tenant if _revoke(connection, api_keys.c.key_id == key_id) else None


def _revoke(connection: Connection, *which: ColumnElement[bool]) -> int:
    in_force = api_keys.c.revoked_at.is_(None)
    return connection.execute(update(api_keys).where(*which, in_force).values(revoked_at=func.now())).rowcount


def _key(row: Row[Any]) -> Key:
    return Key(
        key_id=row.key_id,
        tenant=row.tenant,
        label=row.label,
        scopes=frozenset(Scope(name) for name in row.scopes),
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )


def _hash(token: str) -> str:
    """A plain hash will do: the token is 256 random bits, which no one guesses."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
