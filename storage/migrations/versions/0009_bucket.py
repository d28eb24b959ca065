"""What was seen in a bucket and what of it was taken; how far a listing has come.

Revision 0009, after 0008.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "bucket_objects",
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("etag", sa.String()),
        sa.Column("taken_etag", sa.String()),
        sa.Column("version", sa.String()),
        _now("seen_at"),
        sa.Column("waiting", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("not_before", sa.DateTime(timezone=True)),
        sa.Column("submission_id", sa.BigInteger()),
        sa.Column("settled", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.ForeignKeyConstraint(
            ["submission_id"], ["submissions.submission_id"], name="fk_bucket_objects_submission_id"
        ),
        sa.PrimaryKeyConstraint("bucket", "key", name="pk_bucket_objects"),
    )
    op.create_index(
        "ix_bucket_objects_waiting", "bucket_objects", ["bucket", "seen_at"], postgresql_where=sa.text("waiting")
    )
    op.create_index(
        "ix_bucket_objects_unsettled",
        "bucket_objects",
        ["bucket", "key"],
        postgresql_where=sa.text("taken_etag IS NOT NULL AND NOT settled"),
    )
    op.create_table(
        "bucket_listings",
        sa.Column("bucket", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("listed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        _now("started_at"),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.PrimaryKeyConstraint("bucket", name="pk_bucket_listings"),
    )


def _now(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False)
