"""The line in which a job waits, and indexes by which dispatch looks at the heads of lines and at what is in flight.

Revision 0011, after 0010.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

LINE = (
    "CASE WHEN status IN ('received', 'queued', 'validating') AND lease_until IS NULL AND published_at IS NULL THEN "
    "CASE coalesce(heat, CASE WHEN vip OR window_s = 0 THEN 'hot' ELSE 'cold' END)"
    " WHEN 'hot' THEN '0' WHEN 'warm' THEN '1' ELSE '2' END"
    " || '/' || status || '/' || coalesce(queue, '') || '/' || coalesce(lane, '') || '/' || tenant"
    " || '/' || coalesce(batch_id, '') END"
)


def upgrade() -> None:
    op.add_column("jobs", sa.Column("line", sa.String(collation="C"), sa.Computed(LINE, persisted=True)))
    op.create_index(
        "ix_jobs_line",
        "jobs",
        ["line", "deadline", "created_at", "job_id"],
        postgresql_where=sa.text("line IS NOT NULL"),
    )
    op.create_index(
        "ix_jobs_in_flight",
        "jobs",
        ["status"],
        postgresql_where=sa.text("published_at IS NOT NULL OR lease_until IS NOT NULL"),
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_in_flight", table_name="jobs")
    op.drop_index("ix_jobs_line", table_name="jobs")
    op.drop_column("jobs", "line")
