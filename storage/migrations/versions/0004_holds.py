"""Holds on tenants, lanes and batches; the state of the degradation ladder; jobs of one ordering key in order.

Revision 0004, after 0003.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "holds",
        sa.Column("scope", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("scope", "name", name=op.f("pk_holds")),
    )
    op.create_table(
        "ladder",
        sa.Column("ladder_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("state", postgresql.JSONB(), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("ladder_id", name=op.f("pk_ladder")),
    )
    op.create_index(
        "ix_jobs_ordering_key",
        "jobs",
        ["tenant", "ordering_key", "created_at"],
        postgresql_where=sa.text("ordering_key IS NOT NULL"),
    )
