"""Known documents that were sent through the front door, and how they fared."""

from __future__ import annotations

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, String, Table, text
from sqlalchemy.dialects.postgresql import JSONB

from storage.schema import _now, metadata

probes = Table(
    "probes",
    metadata,
    Column("job_id", String, ForeignKey("jobs.job_id"), primary_key=True),
    Column("expected", JSONB, nullable=False),
    _now("sent_at"),
    # Null until the job is over.
    Column("outcome", String),
    Column("heat", String),
    Column("length_class", String),
    Column("seconds", Float),
    Column("in_time", Boolean),
    Index("ix_probes_sent_at", "sent_at"),
    Index("ix_probes_open", "job_id", postgresql_where=text("outcome IS NULL")),
)
