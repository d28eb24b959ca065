"""The table of what the pages say, for full-text search."""

from __future__ import annotations

from sqlalchemy import Column, Computed, ForeignKey, Index, Integer, String, Table, Text
from sqlalchemy.dialects.postgresql import TSVECTOR

from storage.schema import metadata

pages = Table(
    "pages",
    metadata,
    Column("document_id", String, ForeignKey("documents.document_id"), primary_key=True),
    Column("page", Integer, primary_key=True),
    Column("text", Text, nullable=False),
    # `docmill_terms` is made by the migration: words for English, single characters with their places for Chinese. It
    # refuses more than a megabyte of terms, so that a hostile page is searched as far as a person would read it.
    Column("terms", TSVECTOR, Computed("docmill_terms(left(text, 200000))", persisted=True)),
    Index("ix_pages_terms", "terms", postgresql_using="gin"),
)
