"""The ledger: reservations, settlements, refunds and corrections, each with what was used, never changed.

Revision 0006, after 0005.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_COST = sa.Numeric(20, 12)
_COUNTS = ("prompt_tokens", "cached_tokens", "output_tokens")

#: Before, the only entries were those of readings that had been finished.
_AS_SETTLED = """
UPDATE ledger SET
    kind = 'settle', profile = jobs.profile, length_class = jobs.length_class, lane = jobs.lane,
    prompt_tokens = coalesce(attempts.prompt_tokens, 0),
    cached_tokens = coalesce(attempts.cached_tokens, 0),
    output_tokens = coalesce(attempts.output_tokens, 0)
FROM jobs, attempts
WHERE jobs.job_id = ledger.job_id AND attempts.job_id = ledger.job_id AND attempts.no = ledger.attempt
"""


def upgrade() -> None:
    for table, column in (("ledger", "amount_usd"), ("attempts", "cost_usd")):
        op.alter_column(table, column, type_=_COST)
    op.add_column("attempts", sa.Column("gpu_seconds", sa.Numeric(18, 6)))
    _columns()
    op.execute(_AS_SETTLED)
    op.alter_column("ledger", "profile", nullable=False)
    op.drop_constraint("uq_ledger_job_id_attempt_kind", "ledger")
    op.create_index(
        "uq_ledger_once",
        "ledger",
        ["job_id", "attempt", "kind"],
        unique=True,
        postgresql_where=sa.text("kind <> 'correct'"),
    )
    op.create_index("ix_ledger_tenant_at", "ledger", ["tenant", "at"])
    op.execute(
        "CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE ON ledger "
        "FOR EACH ROW EXECUTE FUNCTION refuse_change()"
    )


def _columns() -> None:
    for name in ("profile", "length_class", "lane", "waste"):
        op.add_column("ledger", sa.Column(name, sa.String()))
    zero: dict[str, Any] = {"nullable": False, "server_default": sa.text("0")}
    op.add_column("ledger", sa.Column("gpu_seconds", sa.Numeric(18, 6), **zero))
    for name in _COUNTS:
        op.add_column("ledger", sa.Column(name, sa.BigInteger(), **zero))
    op.add_column("ledger", sa.Column("retries", sa.Integer(), **zero))
    op.add_column("ledger", sa.Column("estimated", sa.Boolean(), nullable=False, server_default=sa.text("false")))
