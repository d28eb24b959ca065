"""Keys of the API: a token is shown once, when it is made; only its SHA-256 is kept."""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert

from storage.schema import api_keys, tenants

#: So that a token is known for what it is, by people and by scanners for leaked secrets.
PREFIX = "docmill_"


def create(connection: Connection, tenant: str, label: str) -> str:
    """Make a key for a tenant, who is entered if new, and return its token: nobody can read it again."""
    token = PREFIX + secrets.token_urlsafe(32)
    connection.execute(insert(tenants).values(tenant=tenant).on_conflict_do_nothing())
    connection.execute(
        insert(api_keys).values(key_sha256=_hash(token), key_id="key_" + _hash(token)[:16], tenant=tenant, label=label)
    )
    return token


def tenant_of(connection: Connection, token: str) -> str | None:
    """Whose key it is, or None if it is unknown or revoked."""
    return connection.execute(
        select(api_keys.c.tenant).where(api_keys.c.key_sha256 == _hash(token), api_keys.c.revoked_at.is_(None))
    ).scalar_one_or_none()


def revoke(connection: Connection, tenant: str, label: str) -> int:
    """End every key of this label, at once and for good. Returns their number: 0 means that there was none."""
    revoked = connection.execute(
        update(api_keys)
        .where(api_keys.c.tenant == tenant, api_keys.c.label == label, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=func.now())
    )
    return revoked.rowcount


def _hash(token: str) -> str:
    """A plain hash will do: the token is 256 random bits, which no one guesses."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
