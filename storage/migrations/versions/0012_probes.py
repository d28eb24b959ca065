"""Probes; jobs by the time at which they came, of which probes are a share.

Revision 0012, after 0011.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.create_table(
        "probes",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("expected", postgresql.JSONB(), nullable=False),
        sa.Column("sent_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("outcome", sa.String()),
        sa.Column("heat", sa.String()),
        sa.Column("length_class", sa.String()),
        sa.Column("seconds", sa.Float()),
        sa.Column("in_time", sa.Boolean()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_probes_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_probes")),
    )
    op.create_index("ix_probes_sent_at", "probes", ["sent_at"])
    op.create_index("ix_probes_open", "probes", ["job_id"], postgresql_where=sa.text("outcome IS NULL"))
    op.create_index("ix_jobs_created_at", "jobs", ["created_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_created_at", table_name="jobs")
    op.drop_table("probes")
