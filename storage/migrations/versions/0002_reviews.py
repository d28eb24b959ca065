"""The review queue, and versions and confidence of values.

Revision 0002, after 0001.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"

#: Jobs that needed a review before there was a queue.
_QUEUE_WHAT_WAITS = """
INSERT INTO reviews (job_id, opened_at, reason)
SELECT job_id, coalesce(finished_at, updated_at), reason FROM jobs WHERE status = 'needs_review'
"""


def upgrade() -> None:
    _fields()
    _reviews()
    op.execute(_QUEUE_WHAT_WAITS)


def _fields() -> None:
    op.add_column("fields", sa.Column("confidence", sa.Float()))
    op.add_column("fields", sa.Column("version", sa.Integer(), server_default=sa.text("1"), nullable=False))
    op.add_column(
        "fields",
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
    )
    op.add_column("fields", sa.Column("superseded_at", sa.DateTime(timezone=True)))
    op.add_column("fields", sa.Column("note", sa.Text()))
    op.drop_constraint("uq_fields_job_id_path", "fields")
    op.create_unique_constraint("uq_fields_job_id_path_version", "fields", ["job_id", "path", "version"])
    op.create_index(
        "ix_fields_current",
        "fields",
        ["job_id", "path"],
        unique=True,
        postgresql_where=sa.text("superseded_at IS NULL"),
    )


def _reviews() -> None:
    op.create_table(
        "reviews",
        sa.Column("review_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("reason", sa.Text()),
        sa.Column("decision", sa.String()),
        sa.Column("reviewer", sa.String()),
        sa.Column("note", sa.Text()),
        sa.Column("decided_at", sa.DateTime(timezone=True)),
        sa.Column("result_before", postgresql.JSONB()),
        sa.Column("result_after", postgresql.JSONB()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_reviews_job_id"),
        sa.PrimaryKeyConstraint("review_id", name="pk_reviews"),
    )
    op.create_index("ix_reviews_job_id", "reviews", ["job_id"])
    op.create_index("ix_reviews_open", "reviews", ["job_id"], unique=True, postgresql_where=sa.text("decision IS NULL"))
