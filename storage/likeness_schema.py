"""What near-duplicates are found by."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, LargeBinary, String, Table, func

from storage.schema import _at, metadata

minhash_bands = Table(
    "minhash_bands",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("band", BigInteger, primary_key=True),
    # Of the document's facts: repeats are found without a look at the other documents of their template.
    Column("fingerprint", BigInteger, primary_key=True),
    Column("document_id", String, ForeignKey("documents.document_id"), primary_key=True),
)

likenesses = Table(
    "likenesses",
    metadata,
    Column("document_id", String, ForeignKey("documents.document_id"), primary_key=True),
    Column("shingles", LargeBinary, nullable=False),
    Column("facts", LargeBinary, nullable=False),
    _at("indexed_at", nullable=False, server_default=func.clock_timestamp()),
)
