"""Answers to single parts of a document; how long the answers of a reading were.

Revision 0008, after 0007.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "parts",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_parts_job_id")),
        sa.PrimaryKeyConstraint("job_id", "key", name=op.f("pk_parts")),
    )
    op.add_column("attempts", sa.Column("read_as", sa.String()))
    op.add_column("attempts", sa.Column("longest_output", sa.Integer()))
    op.create_index(
        "ix_attempts_read_as",
        "attempts",
        ["read_as", "ended_at"],
        postgresql_where=sa.text("longest_output IS NOT NULL"),
    )
