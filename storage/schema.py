"""The tables (SQLAlchemy Core). Changes go through Alembic; a test compares the two."""

from __future__ import annotations

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    Column,
    Computed,
    Date,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Numeric,
    String,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

NAMING = {
    "ix": "ix_%(column_0_N_label)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)

#: US dollars: nine decimal places hold the price of one token of a small model.
Money = Numeric(18, 9)
#: As `inference/cost.py` rounds: the ledger loses no digit of it.
Cost = Numeric(20, 12)


def _at(name: str, **options: object) -> Column[object]:
    return Column(name, DateTime(timezone=True), **options)  # type: ignore[arg-type]  # options are Column keywords


def _now(name: str) -> Column[object]:
    return _at(name, nullable=False, server_default=func.now())


def _job() -> Column[object]:
    return Column("job_id", String, ForeignKey("jobs.job_id"), nullable=False)


tenants = Table(
    "tenants",
    metadata,
    Column("tenant", String, primary_key=True),
    Column("vip", Boolean, nullable=False, server_default=text("false")),
    _now("created_at"),
    # Quotas: null means that of the settings, 0 means none.
    Column("requests_per_minute", Integer),
    Column("tokens_per_day", BigInteger),
    Column("usd_per_day", Money),
    Column("usd_per_month", Money),
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_sha256", String, primary_key=True),
    Column("tenant", String, ForeignKey("tenants.tenant"), nullable=False),
    Column("label", String, nullable=False),
    _now("created_at"),
    _at("revoked_at"),
    # The name of the key that may be shown: the token cannot, and labels may repeat.
    Column("key_id", String, nullable=False, unique=True),
    Column("scopes", ARRAY(String), nullable=False, server_default=text("'{read,submit,review}'")),
    _at("expires_at"),
)

batches = Table(
    "batches",
    metadata,
    Column("batch_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("label", String, nullable=False),
    _now("created_at"),
)

documents = Table(
    "documents",
    metadata,
    Column("document_id", String, primary_key=True),
    Column("tenant", String, nullable=False),
    Column("sha256", String, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("name", String, nullable=False),
    Column("source", String, nullable=False),
    Column("blob_key", String, nullable=False),
    _now("created_at"),
    Column("parser", String),
    Column("pages", Integer),
    Column("tables", Integer),
    Column("tokens", Integer),
    Column("warnings", JSONB),
    # A document is linked to one earlier one: it repeats it, or only shares its template and differs in facts.
    Column("near_duplicate_of", String, ForeignKey("documents.document_id")),
    Column("same_template_as", String, ForeignKey("documents.document_id")),
    Column("similarity", Float),
    Column("differences", JSONB),
    UniqueConstraint("tenant", "sha256"),
)

tables = Table(
    "tables",
    metadata,
    Column("document_id", String, ForeignKey("documents.document_id"), primary_key=True),
    Column("table_id", String, primary_key=True),
    Column("pages", ARRAY(Integer), nullable=False),
    Column("regions", JSONB, nullable=False),
    Column("caption", Text),
    Column("unit", String),
    Column("scale", Numeric),
    Column("rows", Integer, nullable=False),
    Column("cols", Integer, nullable=False),
    Column("reader", String, nullable=False),
    Column("cells", LargeBinary, nullable=False),
    # The same as rows of texts, for SQL.
    Column("grid", JSONB),
)

jobs = Table(
    "jobs",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("document_id", String, ForeignKey("documents.document_id"), nullable=False),
    Column("batch_id", String, ForeignKey("batches.batch_id")),
    Column("tenant", String, nullable=False),
    Column("profile", String, nullable=False),
    Column("profile_version", String, nullable=False),
    Column("status", String, nullable=False),
    # The fencing token: raised by every claim; a write carries the number it was claimed with.
    Column("attempt", Integer, nullable=False, server_default=text("0")),
    _at("lease_until"),
    Column("worker", String),
    Column("lost", Integer, nullable=False, server_default=text("0")),
    Column("retries", Integer, nullable=False, server_default=text("0")),
    Column("rejections", Integer, nullable=False, server_default=text("0")),
    # When a message for the present stage was last given to the broker; null while the job waits here.
    _at("published_at"),
    _at("not_before"),
    _now("needed_at"),
    Column("window_s", Integer, nullable=False, server_default=text("0")),
    _at("deadline", nullable=False),
    Column("vip", Boolean, nullable=False, server_default=text("false")),
    Column("heat", String),
    Column("length_class", String),
    Column("priority", Integer),
    Column("lane", String),
    Column("queue", String),
    Column("hot_score", Float),
    Column("ordering_key", String),
    Column("reason", Text),
    _now("created_at"),
    _now("updated_at"),
    _at("finished_at"),
    UniqueConstraint("document_id", "profile", "profile_version"),
    # The line in which a job waits (storage/lines.py): all of one line are held, or none; null while it does not wait.
    Column(
        "line",
        String(collation="C"),
        Computed(
            "CASE WHEN status IN ('received', 'queued', 'validating')"
            " AND lease_until IS NULL AND published_at IS NULL THEN "
            "CASE coalesce(heat, CASE WHEN vip OR window_s = 0 THEN 'hot' ELSE 'cold' END)"
            " WHEN 'hot' THEN '0' WHEN 'warm' THEN '1' ELSE '2' END"
            " || '/' || status || '/' || coalesce(queue, '') || '/' || coalesce(lane, '') || '/' || tenant"
            " || '/' || coalesce(batch_id, '') END",
            persisted=True,
        ),
    ),
    Index("ix_jobs_waiting", "status", "published_at", "deadline"),
    Index("ix_jobs_line", "line", "deadline", "created_at", "job_id", postgresql_where=text("line IS NOT NULL")),
    Index(
        "ix_jobs_in_flight",
        "status",
        postgresql_where=text("published_at IS NOT NULL OR lease_until IS NOT NULL"),
    ),
    Index("ix_jobs_lease_until", "lease_until", postgresql_where=text("lease_until IS NOT NULL")),
    Index("ix_jobs_tenant_created", "tenant", "created_at"),
    Index("ix_jobs_created_at", "created_at"),
    Index(
        "ix_jobs_ordering_key",
        "tenant",
        "ordering_key",
        "created_at",
        postgresql_where=text("ordering_key IS NOT NULL"),
    ),
)

submissions = Table(
    "submissions",
    metadata,
    Column("submission_id", BigInteger, Identity(), primary_key=True),
    Column("tenant", String, nullable=False),
    Column("source", String, nullable=False),
    Column("name", Text, nullable=False),
    Column("etag", String, nullable=False),
    Column("profile", String, nullable=False),
    Column("profile_version", String, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String),
    Column("outcome", String, nullable=False),
    Column("code", String),
    Column("reason", Text),
    Column("document_id", String, ForeignKey("documents.document_id")),
    Column("job_id", String, ForeignKey("jobs.job_id")),
    _now("created_at"),
    UniqueConstraint("tenant", "source", "name", "etag", "profile", "profile_version", name="uq_submissions_same_file"),
    Index("ix_submissions_job_id", "job_id"),
)

inbox = Table(
    "inbox",
    metadata,
    Column("key", Text, primary_key=True),
    Column("etag", String, nullable=False),
    Column("first_seen", Float, nullable=False),
    Column("taken", Boolean, nullable=False, server_default=text("false")),
)

attempts = Table(
    "attempts",
    metadata,
    Column("job_id", String, ForeignKey("jobs.job_id"), primary_key=True),
    Column("no", Integer, primary_key=True),
    Column("stage", String, nullable=False),
    Column("worker", String, nullable=False),
    _now("started_at"),
    _at("ended_at"),
    Column("outcome", String),
    Column("reason", Text),
    Column("engine", String),
    Column("model", String),
    Column("precision", String),
    Column("prompt_sha256", String),
    Column("seed", Integer),
    Column("parts", Integer),
    Column("prompt_tokens", Integer),
    Column("cached_tokens", Integer),
    Column("output_tokens", Integer),
    Column("queue_ms", Float),
    Column("prefill_ms", Float),
    Column("decode_ms", Float),
    Column("finish_reason", String),
    Column("cost_usd", Cost),
    Column("gpu_seconds", Numeric(18, 6)),
    Column("extraction", LargeBinary),
    Column("read_as", String),
    Column("longest_output", Integer),
    Index("ix_attempts_read_as", "read_as", "ended_at", postgresql_where=text("longest_output IS NOT NULL")),
)

results = Table(
    "results",
    metadata,
    # One result a job, by the primary key.
    Column("job_id", String, ForeignKey("jobs.job_id"), primary_key=True),
    Column("attempt", Integer, nullable=False),
    Column("result", JSONB, nullable=False),
    Column("verdict", String, nullable=False),
    Column("ruleset", String, nullable=False),
    _now("created_at"),
)

findings = Table(
    "findings",
    metadata,
    Column("finding_id", BigInteger, Identity(), primary_key=True),
    _job(),
    Column("attempt", Integer, nullable=False),
    Column("rule", String, nullable=False),
    Column("outcome", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("path", Text),
    Column("page", Integer),
    Column("bbox", ARRAY(Float)),
    Index("ix_findings_job_id", "job_id"),
)

fields = Table(
    "fields",
    metadata,
    Column("field_id", BigInteger, Identity(), primary_key=True),
    _job(),
    Column("path", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("value", Numeric),
    Column("date", Date),
    Column("unit", String),
    Column("scale", Numeric),
    Column("page", Integer),
    Column("bbox", ARRAY(Float)),
    Column("table_id", String),
    Column("row", Integer),
    Column("col", Integer),
    Column("verdict", String, nullable=False),
    Column("confidence", Float),
    # A correction adds a version; what stood there before is kept, with the time at which it was superseded.
    Column("version", Integer, nullable=False, server_default=text("1")),
    _now("created_at"),
    _at("superseded_at"),
    Column("reviewer", String),
    Column("note", Text),
    # What made this version; a reviewer's has those of the reading that was corrected.
    Column("model", String),
    Column("prompt_sha256", String),
    Column("parser", String),
    Column("ruleset", String),
    UniqueConstraint("job_id", "path", "version"),
    Index("ix_fields_current", "job_id", "path", unique=True, postgresql_where=text("superseded_at IS NULL")),
)

reviews = Table(
    "reviews",
    metadata,
    Column("review_id", BigInteger, Identity(), primary_key=True),
    _job(),
    _now("opened_at"),
    Column("reason", Text),
    Column("decision", String),
    Column("reviewer", String),
    Column("note", Text),
    _at("decided_at"),
    # What a correction made of what: the examples that rules are tested with are written from these.
    Column("result_before", JSONB),
    Column("result_after", JSONB),
    Index("ix_reviews_job_id", "job_id"),
    # One open review a job, by the database's own rule.
    Index("ix_reviews_open", "job_id", unique=True, postgresql_where=text("decision IS NULL")),
)

ledger = Table(
    "ledger",
    metadata,
    Column("entry_id", BigInteger, Identity(), primary_key=True),
    _now("at"),
    Column("tenant", String, nullable=False),
    _job(),
    Column("attempt", Integer, nullable=False),
    Column("kind", String, nullable=False),
    Column("amount_usd", Cost, nullable=False),
    # As of the attempt: a job may be routed elsewhere afterwards.
    Column("profile", String, nullable=False),
    Column("length_class", String),
    Column("lane", String),
    Column("gpu_seconds", Numeric(18, 6), nullable=False, server_default=text("0")),
    Column("prompt_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("cached_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("output_tokens", BigInteger, nullable=False, server_default=text("0")),
    Column("retries", Integer, nullable=False, server_default=text("0")),
    Column("waste", String),
    Column("estimated", Boolean, nullable=False, server_default=text("false")),
    # Corrections may be many; a trigger refuses UPDATE and DELETE.
    Index("uq_ledger_once", "job_id", "attempt", "kind", unique=True, postgresql_where=text("kind <> 'correct'")),
    Index("ix_ledger_tenant_at", "tenant", "at"),
)

events = Table(
    "events",
    metadata,
    Column("event_id", BigInteger, Identity(), primary_key=True),
    _now("at"),
    Column("job_id", String),
    Column("tenant", String),
    Column("kind", String, nullable=False),
    Column("attempt", Integer),
    Column("detail", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    # Who caused it from outside (a key, the command line): rows that have one are the audit.
    Column("actor", String),
    Index("ix_events_job_id", "job_id"),
    Index("ix_events_audit", "tenant", "event_id", postgresql_where=text("actor IS NOT NULL")),
)

# The tables of the OpenAI-shaped door stand in a module of their own and belong to the same metadata.
import storage.batch_schema  # noqa: E402  # after `metadata`, which it needs
import storage.bucket_schema  # noqa: E402  # likewise
import storage.control_schema  # noqa: E402  # likewise
import storage.likeness_schema  # noqa: E402  # likewise
import storage.part_schema  # noqa: E402  # likewise
import storage.probe_schema  # noqa: E402  # likewise
import storage.text_schema  # noqa: E402, F401  # likewise
