"""Near-duplicates are confirmed by their shingles and vetoed by their facts.

Bands that were made without them cannot be compared: the index starts anew, links that were made stay.

Revision 0003, after 0002.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_column("documents", "signature")
    op.add_column("documents", sa.Column("same_template_as", sa.String()))
    op.add_column("documents", sa.Column("differences", postgresql.JSONB()))
    op.create_foreign_key(
        "fk_documents_same_template_as", "documents", "documents", ["same_template_as"], ["document_id"]
    )
    op.drop_table("minhash_bands")
    _minhash_bands()
    _likenesses()


def _minhash_bands() -> None:
    op.create_table(
        "minhash_bands",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("band", sa.BigInteger(), nullable=False),
        sa.Column("fingerprint", sa.BigInteger(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_minhash_bands_document_id"),
        sa.PrimaryKeyConstraint("tenant", "band", "fingerprint", "document_id", name="pk_minhash_bands"),
    )


def _likenesses() -> None:
    op.create_table(
        "likenesses",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("shingles", sa.LargeBinary(), nullable=False),
        sa.Column("facts", sa.LargeBinary(), nullable=False),
        sa.Column(
            "indexed_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_likenesses_document_id"),
        sa.PrimaryKeyConstraint("document_id", name="pk_likenesses"),
    )
