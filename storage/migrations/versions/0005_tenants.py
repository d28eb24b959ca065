"""Tenants: keys with scopes and an end, quotas, and an audit that nobody rewrites.

Revision 0005, after 0004.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"

#: Corrections of an audit are new rows. TRUNCATE stays possible to the owner of the table, as DROP is.
_APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: no row of it is changed or deleted', TG_TABLE_NAME;
END $$
"""


def upgrade() -> None:
    _keys()
    for name, kind in (
        ("requests_per_minute", sa.Integer()),
        ("tokens_per_day", sa.BigInteger()),
        ("usd_per_day", sa.Numeric(18, 9)),
        ("usd_per_month", sa.Numeric(18, 9)),
    ):
        op.add_column("tenants", sa.Column(name, kind))
    op.add_column("events", sa.Column("actor", sa.String()))
    op.create_index("ix_events_audit", "events", ["tenant", "event_id"], postgresql_where=sa.text("actor IS NOT NULL"))
    op.execute(_APPEND_ONLY)
    op.execute(
        "CREATE TRIGGER events_append_only BEFORE UPDATE OR DELETE ON events "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    )


def _keys() -> None:
    """A key that was made before may do what it could do: everything but administration."""
    op.add_column("api_keys", sa.Column("key_id", sa.String()))
    op.execute("UPDATE api_keys SET key_id = 'key_' || left(key_sha256, 16)")
    op.alter_column("api_keys", "key_id", nullable=False)
    op.create_unique_constraint("uq_api_keys_key_id", "api_keys", ["key_id"])
    op.add_column(
        "api_keys",
        sa.Column(
            "scopes",
            postgresql.ARRAY(sa.String()),
            server_default=sa.text("'{read,submit,review}'"),
            nullable=False,
        ),
    )
    op.add_column("api_keys", sa.Column("expires_at", sa.DateTime(timezone=True)))
