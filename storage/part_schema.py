"""The table of answers to single parts of a document, kept until the whole document has been read."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Integer, LargeBinary, String, Table

from storage.schema import _now, metadata

parts = Table(
    "parts",
    metadata,
    Column("job_id", String, ForeignKey("jobs.job_id"), primary_key=True),
    # A digest of the question and of the model that answered it.
    Column("key", String, primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("answer", LargeBinary, nullable=False),
    _now("created_at"),
)
