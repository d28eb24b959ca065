"""What readings have taken so far, for an estimate of what a batch would take."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Engine, RowMapping, Subquery, and_, func, select

from docmill.types import Status
from storage.batch_schema import batch_lines, files
from storage.database import transactional
from storage.schema import attempts, documents, jobs

#: Tokens of a document of which nothing is known: two pages of text.
UNKNOWN_DOCUMENT = 1000
#: The latest readings that a mean is taken of.
READINGS = 1000


@dataclass(frozen=True, slots=True)
class EstimateStore:
    """Means of what was measured."""

    engine: Engine

    @transactional
    def of_batch(self, connection: Connection, batch: RowMapping) -> list[RowMapping]:
        """By profile: requests, those that are read already, mean tokens of the documents and of readings."""
        own = batch_lines.c.batch_id == batch["batch_id"], batch_lines.c.state == "new"
        bytes_of = and_(files.c.file_id == batch_lines.c.file_id, files.c.tenant == batch["tenant"])
        same = and_(documents.c.tenant == files.c.tenant, documents.c.sha256 == files.c.sha256)
        read = and_(
            jobs.c.document_id == documents.c.document_id,
            jobs.c.profile == batch_lines.c.profile,
            jobs.c.status.in_([Status.DONE, Status.NEEDS_REVIEW]),
        )
        counted = (
            select(
                batch_lines.c.profile,
                func.count(batch_lines.c.line_no.distinct()).label("requests"),
                func.count(batch_lines.c.line_no.distinct()).filter(jobs.c.job_id.is_not(None)).label("done"),
                func.coalesce(func.avg(documents.c.tokens), UNKNOWN_DOCUMENT).label("mean_document"),
            )
            .outerjoin(files, bytes_of)
            .outerjoin(documents, same)
            .outerjoin(jobs, read)
            .where(*own)
            .group_by(batch_lines.c.profile)
            .subquery()
        )
        means = _means(batch["tenant"])
        wanted = select(counted, means.c.mean_prompt, means.c.mean_output).outerjoin(
            means, means.c.profile == counted.c.profile
        )
        return list(connection.execute(wanted).mappings())


def _means(tenant: str) -> Subquery:
    """Tokens of the latest readings by profile."""
    latest = (
        select(jobs.c.profile, attempts.c.prompt_tokens, attempts.c.output_tokens)
        .join(jobs, jobs.c.job_id == attempts.c.job_id)
        .where(jobs.c.tenant == tenant, attempts.c.prompt_tokens.is_not(None))
        .order_by(attempts.c.started_at.desc())
        .limit(READINGS)
        .subquery()
    )
    return (
        select(
            latest.c.profile,
            func.avg(latest.c.prompt_tokens).label("mean_prompt"),
            func.avg(latest.c.output_tokens).label("mean_output"),
        )
        .group_by(latest.c.profile)
        .subquery()
    )
