"""The OpenAI-shaped door: files, uploads, batches and their lines; webhooks and their deliveries.

Revision 0007, after 0006.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    _files()
    _webhooks()
    _batch_runs()
    _uploads()
    _webhook_deliveries()
    _batch_lines()
    _upload_parts()


def _files() -> None:
    op.create_table(
        "files",
        sa.Column("file_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("blob_key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("purged_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("file_id", name=op.f("pk_files")),
    )
    op.create_index("ix_files_tenant_created", "files", ["tenant", "created_at", "file_id"], unique=False)


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("event_types", sa.ARRAY(sa.String()), nullable=False),
        sa.Column("secret", sa.String(), nullable=False),
        sa.Column("old_secret", sa.String(), nullable=True),
        sa.Column("old_secret_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("pk_webhooks")),
    )
    op.create_index("ix_webhooks_tenant", "webhooks", ["tenant", "created_at"], unique=False)


def _batch_runs() -> None:
    op.create_table(
        "batch_runs",
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("endpoint", sa.String(), nullable=False),
        sa.Column("input_file_id", sa.String(), nullable=False),
        sa.Column("completion_window", sa.String(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(), nullable=True),
        sa.Column("options", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("output_keep_s", sa.Integer(), nullable=False),
        sa.Column("parent_batch_id", sa.String(), nullable=True),
        sa.Column("idempotency_key", sa.String(), nullable=True),
        sa.Column("request_sha256", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("ending", sa.String(), nullable=True),
        sa.Column("position", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lines_read", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("errors", postgresql.JSONB(), server_default=sa.text("'[]'::jsonb"), nullable=False),
        sa.Column("estimate", postgresql.JSONB(), nullable=True),
        sa.Column("total", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("completed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_file_id", sa.String(), nullable=True),
        sa.Column("error_file_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("in_progress_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finalizing_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expired_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelling_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("cancelled_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.batch_id"], name=op.f("fk_batch_runs_batch_id")),
        sa.ForeignKeyConstraint(["error_file_id"], ["files.file_id"], name=op.f("fk_batch_runs_error_file_id")),
        sa.ForeignKeyConstraint(["input_file_id"], ["files.file_id"], name=op.f("fk_batch_runs_input_file_id")),
        sa.ForeignKeyConstraint(["output_file_id"], ["files.file_id"], name=op.f("fk_batch_runs_output_file_id")),
        sa.ForeignKeyConstraint(["parent_batch_id"], ["batches.batch_id"], name=op.f("fk_batch_runs_parent_batch_id")),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_batch_runs")),
    )
    op.create_index(
        "ix_batch_runs_idempotency_key",
        "batch_runs",
        ["tenant", "idempotency_key"],
        unique=True,
        postgresql_where=sa.text("idempotency_key IS NOT NULL"),
    )
    op.create_index(
        "ix_batch_runs_live",
        "batch_runs",
        ["created_at"],
        postgresql_where=sa.text("status IN ('validating', 'in_progress', 'finalizing', 'cancelling')"),
    )
    op.create_index("ix_batch_runs_tenant_created", "batch_runs", ["tenant", "created_at", "batch_id"], unique=False)


def _uploads() -> None:
    op.create_table(
        "uploads",
        sa.Column("upload_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("filename", sa.Text(), nullable=False),
        sa.Column("purpose", sa.String(), nullable=False),
        sa.Column("mime_type", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("keep_s", sa.Integer(), nullable=True),
        sa.Column("file_id", sa.String(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["file_id"], ["files.file_id"], name=op.f("fk_uploads_file_id")),
        sa.PrimaryKeyConstraint("upload_id", name=op.f("pk_uploads")),
    )


def _webhook_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("delivery_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("webhook_id", sa.String(), nullable=False),
        sa.Column("event_id", sa.String(), nullable=False),
        sa.Column("event_type", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["webhook_id"], ["webhooks.webhook_id"], name=op.f("fk_webhook_deliveries_webhook_id")),
        sa.PrimaryKeyConstraint("delivery_id", name=op.f("pk_webhook_deliveries")),
        sa.UniqueConstraint("webhook_id", "event_id", name=op.f("uq_webhook_deliveries_webhook_id_event_id")),
    )
    op.create_index(
        "ix_webhook_deliveries_due",
        "webhook_deliveries",
        ["next_at"],
        postgresql_where=sa.text("next_at IS NOT NULL"),
    )


def _batch_lines() -> None:
    op.create_table(
        "batch_lines",
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("line_no", sa.Integer(), nullable=False),
        sa.Column("custom_id", sa.Text(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("file_id", sa.String(), nullable=True),
        sa.Column("priority", sa.String(), nullable=True),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ordering_key", sa.String(), nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=True),
        sa.Column("fresh", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("code", sa.String(), nullable=True),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cached_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["batch_id"], ["batch_runs.batch_id"], name=op.f("fk_batch_lines_batch_id")),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name=op.f("fk_batch_lines_job_id")),
        sa.PrimaryKeyConstraint("batch_id", "line_no", name=op.f("pk_batch_lines")),
        sa.UniqueConstraint("batch_id", "custom_id", name=op.f("uq_batch_lines_batch_id_custom_id")),
    )
    op.create_index("ix_batch_lines_job_id", "batch_lines", ["job_id"], postgresql_where=sa.text("state = 'open'"))
    for state in ("new", "open"):
        op.create_index(
            f"ix_batch_lines_{state}",
            "batch_lines",
            ["batch_id", "line_no"],
            postgresql_where=sa.text(f"state = '{state}'"),
        )


def _upload_parts() -> None:
    op.create_table(
        "upload_parts",
        sa.Column("part_id", sa.String(), nullable=False),
        sa.Column("upload_id", sa.String(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("blob_key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["upload_id"], ["uploads.upload_id"], name=op.f("fk_upload_parts_upload_id")),
        sa.PrimaryKeyConstraint("part_id", name=op.f("pk_upload_parts")),
    )
    op.create_index("ix_upload_parts_upload_id", "upload_parts", ["upload_id"], unique=False)
