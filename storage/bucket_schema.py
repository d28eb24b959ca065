"""The tables of the bucket door: what was seen in a bucket and what of it was taken, and how far a listing has come."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, String, Table, Text, text

from storage.schema import _at, _now, metadata

bucket_objects = Table(
    "bucket_objects",
    metadata,
    # The URL of the inbox and the key below it, in the form that any database holds (`ingest.folder.key_of`).
    Column("bucket", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("profile", String, nullable=False),
    # As it was seen last, by a listing or an event (an event may not say); what was submitted last.
    Column("etag", String),
    Column("taken_etag", String),
    Column("version", String),
    _now("seen_at"),
    Column("waiting", Boolean, nullable=False, server_default=text("true")),
    # A worker that takes it holds it until then; one that dies lets go of it by that.
    _at("not_before"),
    Column("submission_id", BigInteger, ForeignKey("submissions.submission_id")),
    # Whether the receipt of its end is written, and the original moved or tagged, where that is wanted.
    Column("settled", Boolean, nullable=False, server_default=text("false")),
    Index("ix_bucket_objects_waiting", "bucket", "seen_at", postgresql_where=text("waiting")),
    Index(
        "ix_bucket_objects_unsettled",
        "bucket",
        "key",
        postgresql_where=text("taken_etag IS NOT NULL AND NOT settled"),
    ),
)

bucket_listings = Table(
    "bucket_listings",
    metadata,
    Column("bucket", Text, primary_key=True),
    # The last key that was listed: a new process goes on behind it.
    Column("after", Text, nullable=False, server_default=text("''")),
    Column("listed", Integer, nullable=False, server_default=text("0")),
    _now("started_at"),
    _at("finished_at"),
)
