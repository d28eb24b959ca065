"""What is held back, and where the degradation ladder stands."""

from __future__ import annotations

from sqlalchemy import Column, Integer, String, Table, Text
from sqlalchemy.dialects.postgresql import JSONB

from storage.schema import _now, metadata

holds = Table(
    "holds",
    metadata,
    Column("scope", String, primary_key=True),
    Column("name", String, primary_key=True),
    Column("kind", String, nullable=False),
    Column("reason", Text),
    _now("since"),
)

ladder = Table(
    "ladder",
    metadata,
    Column("ladder_id", Integer, primary_key=True, autoincrement=False),
    Column("state", JSONB, nullable=False),
    _now("updated_at"),
)
