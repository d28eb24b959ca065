"""The tables as they were at first: tenants, documents, jobs, and what their attempts leave.

Revision 0001, after none.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None


def upgrade() -> None:
    _tenants()
    _api_keys()
    _batches()
    _documents()
    _minhash_bands()
    _tables()
    _jobs()
    _submissions()
    _inbox()
    _attempts()
    _results()
    _findings()
    _fields()
    _ledger()
    _events()


def _tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("vip", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", name="pk_tenants"),
    )


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        sa.Column("key_sha256", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["tenant"], ["tenants.tenant"], name="fk_api_keys_tenant"),
        sa.PrimaryKeyConstraint("key_sha256", name="pk_api_keys"),
    )


def _batches() -> None:
    op.create_table(
        "batches",
        sa.Column("batch_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("batch_id", name="pk_batches"),
    )


def _documents() -> None:
    op.create_table(
        "documents",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("blob_key", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("parser", sa.String()),
        sa.Column("pages", sa.Integer()),
        sa.Column("tables", sa.Integer()),
        sa.Column("tokens", sa.Integer()),
        sa.Column("warnings", postgresql.JSONB()),
        sa.Column("signature", sa.LargeBinary()),
        sa.Column("near_duplicate_of", sa.String()),
        sa.Column("similarity", sa.Float()),
        sa.ForeignKeyConstraint(
            ["near_duplicate_of"], ["documents.document_id"], name="fk_documents_near_duplicate_of"
        ),
        sa.PrimaryKeyConstraint("document_id", name="pk_documents"),
        sa.UniqueConstraint("tenant", "sha256", name="uq_documents_tenant_sha256"),
    )


def _minhash_bands() -> None:
    op.create_table(
        "minhash_bands",
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("band", sa.BigInteger(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_minhash_bands_document_id"),
        sa.PrimaryKeyConstraint("tenant", "band", "document_id", name="pk_minhash_bands"),
    )
    op.create_index("ix_minhash_bands_document_id", "minhash_bands", ["document_id"])


def _tables() -> None:
    op.create_table(
        "tables",
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("table_id", sa.String(), nullable=False),
        sa.Column("pages", sa.ARRAY(sa.Integer()), nullable=False),
        sa.Column("regions", postgresql.JSONB(), nullable=False),
        sa.Column("caption", sa.Text()),
        sa.Column("unit", sa.String()),
        sa.Column("scale", sa.Numeric()),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("cols", sa.Integer(), nullable=False),
        sa.Column("reader", sa.String(), nullable=False),
        sa.Column("cells", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_tables_document_id"),
        sa.PrimaryKeyConstraint("document_id", "table_id", name="pk_tables"),
    )


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("document_id", sa.String(), nullable=False),
        sa.Column("batch_id", sa.String()),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("profile_version", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True)),
        sa.Column("worker", sa.String()),
        sa.Column("lost", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("retries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("rejections", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True)),
        sa.Column("not_before", sa.DateTime(timezone=True)),
        sa.Column("needed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("window_s", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=False),
        sa.Column("vip", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("heat", sa.String()),
        sa.Column("length_class", sa.String()),
        sa.Column("priority", sa.Integer()),
        sa.Column("lane", sa.String()),
        sa.Column("queue", sa.String()),
        sa.Column("hot_score", sa.Float()),
        sa.Column("ordering_key", sa.String()),
        sa.Column("reason", sa.Text()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["batch_id"], ["batches.batch_id"], name="fk_jobs_batch_id"),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_jobs_document_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_jobs"),
        sa.UniqueConstraint(
            "document_id", "profile", "profile_version", name="uq_jobs_document_id_profile_profile_version"
        ),
    )
    op.create_index("ix_jobs_lease_until", "jobs", ["lease_until"], postgresql_where=sa.text("lease_until IS NOT NULL"))
    op.create_index("ix_jobs_tenant_created", "jobs", ["tenant", "created_at"])
    op.create_index("ix_jobs_waiting", "jobs", ["status", "published_at", "deadline"])


def _submissions() -> None:
    op.create_table(
        "submissions",
        sa.Column("submission_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("etag", sa.String(), nullable=False),
        sa.Column("profile", sa.String(), nullable=False),
        sa.Column("profile_version", sa.String(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.String()),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("code", sa.String()),
        sa.Column("reason", sa.Text()),
        sa.Column("document_id", sa.String()),
        sa.Column("job_id", sa.String()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["document_id"], ["documents.document_id"], name="fk_submissions_document_id"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_submissions_job_id"),
        sa.PrimaryKeyConstraint("submission_id", name="pk_submissions"),
        sa.UniqueConstraint(
            "tenant", "source", "name", "etag", "profile", "profile_version", name="uq_submissions_same_file"
        ),
    )
    op.create_index("ix_submissions_job_id", "submissions", ["job_id"])


def _inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("etag", sa.String(), nullable=False),
        sa.Column("first_seen", sa.Float(), nullable=False),
        sa.Column("taken", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_inbox"),
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("worker", sa.String(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True)),
        sa.Column("outcome", sa.String()),
        sa.Column("reason", sa.Text()),
        sa.Column("engine", sa.String()),
        sa.Column("model", sa.String()),
        sa.Column("precision", sa.String()),
        sa.Column("prompt_sha256", sa.String()),
        sa.Column("seed", sa.Integer()),
        sa.Column("parts", sa.Integer()),
        sa.Column("prompt_tokens", sa.Integer()),
        sa.Column("cached_tokens", sa.Integer()),
        sa.Column("output_tokens", sa.Integer()),
        sa.Column("queue_ms", sa.Float()),
        sa.Column("prefill_ms", sa.Float()),
        sa.Column("decode_ms", sa.Float()),
        sa.Column("finish_reason", sa.String()),
        sa.Column("cost_usd", sa.Numeric(precision=18, scale=9)),
        sa.Column("extraction", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_attempts_job_id"),
        sa.PrimaryKeyConstraint("job_id", "no", name="pk_attempts"),
    )


def _results() -> None:
    op.create_table(
        "results",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("result", postgresql.JSONB(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("ruleset", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_results_job_id"),
        sa.PrimaryKeyConstraint("job_id", name="pk_results"),
    )


def _findings() -> None:
    op.create_table(
        "findings",
        sa.Column("finding_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("outcome", sa.String(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("path", sa.Text()),
        sa.Column("page", sa.Integer()),
        sa.Column("bbox", sa.ARRAY(sa.Float())),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_findings_job_id"),
        sa.PrimaryKeyConstraint("finding_id", name="pk_findings"),
    )
    op.create_index("ix_findings_job_id", "findings", ["job_id"])


def _fields() -> None:
    op.create_table(
        "fields",
        sa.Column("field_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("value", sa.Numeric()),
        sa.Column("date", sa.Date()),
        sa.Column("unit", sa.String()),
        sa.Column("scale", sa.Numeric()),
        sa.Column("page", sa.Integer()),
        sa.Column("bbox", sa.ARRAY(sa.Float())),
        sa.Column("table_id", sa.String()),
        sa.Column("row", sa.Integer()),
        sa.Column("col", sa.Integer()),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("reviewer", sa.String()),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_fields_job_id"),
        sa.PrimaryKeyConstraint("field_id", name="pk_fields"),
        sa.UniqueConstraint("job_id", "path", name="uq_fields_job_id_path"),
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("entry_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("amount_usd", sa.Numeric(precision=18, scale=9), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.job_id"], name="fk_ledger_job_id"),
        sa.PrimaryKeyConstraint("entry_id", name="pk_ledger"),
        sa.UniqueConstraint("job_id", "attempt", "kind", name="uq_ledger_job_id_attempt_kind"),
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("event_id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("job_id", sa.String()),
        sa.Column("tenant", sa.String()),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer()),
        sa.Column("detail", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_events"),
    )
    op.create_index("ix_events_job_id", "events", ["job_id"])
