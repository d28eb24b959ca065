"""The tables of the OpenAI-shaped door: files, uploads, batches with their lines, webhooks with their deliveries."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from storage.schema import Money, _at, _now, metadata

files = Table(
    "files",
    metadata,
    Column("file_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("filename", Text, nullable=False),
    Column("purpose", String, nullable=False),
    # What the content is, whatever the name says: pdf, zip or other.
    Column("kind", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("sha256", String, nullable=False),
    Column("blob_key", String, nullable=False),
    _now("created_at"),
    _at("expires_at"),
    # Deleted for its owner at once; its bytes go once nothing needs them.
    _at("deleted_at"),
    _at("purged_at"),
    Index("ix_files_tenant_created", "tenant", "created_at", "file_id"),
)

uploads = Table(
    "uploads",
    metadata,
    Column("upload_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("filename", Text, nullable=False),
    Column("purpose", String, nullable=False),
    Column("mime_type", String, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("status", String, nullable=False, server_default=text("'pending'")),
    Column("keep_s", Integer),
    Column("file_id", String, ForeignKey("files.file_id")),
    _now("created_at"),
    _at("expires_at", nullable=False),
)

upload_parts = Table(
    "upload_parts",
    metadata,
    Column("part_id", String, primary_key=True),
    Column("upload_id", String, ForeignKey("uploads.upload_id"), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("blob_key", String, nullable=False),
    _now("created_at"),
    Index("ix_upload_parts_upload_id", "upload_id"),
)

batch_runs = Table(
    "batch_runs",
    metadata,
    Column("batch_id", String, ForeignKey("batches.batch_id"), primary_key=True),
    Column("tenant", String, nullable=False),
    Column("endpoint", String, nullable=False),
    Column("input_file_id", String, ForeignKey("files.file_id"), nullable=False),
    Column("completion_window", String, nullable=False),
    Column("metadata", JSONB(none_as_null=True)),
    # What our extension says: profile, more files, priority, ordering key, dry run.
    Column("options", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("output_keep_s", Integer, nullable=False),
    Column("parent_batch_id", String, ForeignKey("batches.batch_id")),
    Column("idempotency_key", String),
    Column("request_sha256", String, nullable=False),
    Column("model", String),
    Column("status", String, nullable=False),
    # How it will end, once that is decided and its last lines and files are still to be written.
    Column("ending", String),
    # How far the input is read: what a worker that takes over goes on from.
    Column("position", BigInteger, nullable=False, server_default=text("0")),
    Column("lines_read", Integer, nullable=False, server_default=text("0")),
    Column("errors", JSONB, nullable=False, server_default=text("'[]'::jsonb")),
    Column("estimate", JSONB(none_as_null=True)),
    Column("total", Integer, nullable=False, server_default=text("0")),
    Column("completed", Integer, nullable=False, server_default=text("0")),
    Column("failed", Integer, nullable=False, server_default=text("0")),
    Column("input_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("cached_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("output_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("output_file_id", String, ForeignKey("files.file_id")),
    Column("error_file_id", String, ForeignKey("files.file_id")),
    _now("created_at"),
    _at("expires_at", nullable=False),
    *(_at(f"{state}_at") for state in ("in_progress", "finalizing", "completed", "failed", "expired")),
    *(_at(f"{state}_at") for state in ("cancelling", "cancelled")),
    Index("ix_batch_runs_tenant_created", "tenant", "created_at", "batch_id"),
    Index(
        "ix_batch_runs_live",
        "created_at",
        postgresql_where=text("status IN ('validating', 'in_progress', 'finalizing', 'cancelling')"),
    ),
    Index(
        "ix_batch_runs_idempotency_key",
        "tenant",
        "idempotency_key",
        unique=True,
        postgresql_where=text("idempotency_key IS NOT NULL"),
    ),
)

batch_lines = Table(
    "batch_lines",
    metadata,
    Column("batch_id", String, ForeignKey("batch_runs.batch_id"), primary_key=True),
    Column("line_no", Integer, primary_key=True),
    Column("custom_id", Text, nullable=False),
    Column("profile", String, nullable=False),
    Column("file_id", String),
    Column("priority", String),
    _at("deadline"),
    Column("ordering_key", String),
    # new, open (it has a job), then completed, failed, cancelled or expired.
    Column("state", String, nullable=False),
    Column("job_id", String, ForeignKey("jobs.job_id")),
    # Whether this line had the document read; one that asks the same as another shares its reading and costs nothing.
    Column("fresh", Boolean, nullable=False, server_default=text("false")),
    Column("status_code", Integer),
    Column("code", String),
    Column("message", Text),
    Column("prompt_tokens", Integer, nullable=False, server_default=text("0")),
    Column("cached_tokens", Integer, nullable=False, server_default=text("0")),
    Column("output_tokens", Integer, nullable=False, server_default=text("0")),
    Column("cost_usd", Money, nullable=False, server_default=text("0")),
    UniqueConstraint("batch_id", "custom_id"),
    Index("ix_batch_lines_new", "batch_id", "line_no", postgresql_where=text("state = 'new'")),
    Index("ix_batch_lines_open", "batch_id", "line_no", postgresql_where=text("state = 'open'")),
    Index("ix_batch_lines_job_id", "job_id", postgresql_where=text("state = 'open'")),
)

webhooks = Table(
    "webhooks",
    metadata,
    Column("webhook_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("name", Text, nullable=False),
    Column("url", Text, nullable=False),
    Column("event_types", ARRAY(String), nullable=False),
    # Signing needs the secret itself; it is shown once, and again only when it is replaced.
    Column("secret", String, nullable=False),
    Column("old_secret", String),
    _at("old_secret_until"),
    _now("created_at"),
    _now("updated_at"),
    _at("deleted_at"),
    Index("ix_webhooks_tenant", "tenant", "created_at"),
)

webhook_deliveries = Table(
    "webhook_deliveries",
    metadata,
    Column("delivery_id", BigInteger, Identity(), primary_key=True),
    Column("webhook_id", String, ForeignKey("webhooks.webhook_id"), nullable=False),
    Column("event_id", String, nullable=False),
    Column("event_type", String, nullable=False),
    Column("body", Text, nullable=False),
    _now("created_at"),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    # When it is tried next; null once it has arrived or was given up.
    _at("next_at"),
    _at("delivered_at"),
    Column("status_code", Integer),
    Column("error", Text),
    UniqueConstraint("webhook_id", "event_id"),
    Index("ix_webhook_deliveries_due", "next_at", postgresql_where=text("next_at IS NOT NULL")),
)
