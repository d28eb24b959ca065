"""The foremost of what waits, at a cost that does not grow with the backlog.

A job that waits stands in a line (the column `line`): its heat, stage, queue, lane, tenant and batch. All jobs of a
line are held or none; within it they stand by deadline. So a look hops from line to line by the index, and takes of
each only the first few.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Row, text

from storage.fixed import as_text
from storage.holds import is_held, waits_for_its_key
from storage.schema import jobs

#: Jobs of every line that are looked at, however many lines there are.
OF_EACH: Final = 8
#: Of few lines more are looked at, so that a line may fill what others leave of the limit.
SHARE: Final = 4

_LOOK = f"""
WITH RECURSIVE line (name) AS (
    (SELECT line FROM jobs WHERE line IS NOT NULL ORDER BY line LIMIT 1)
    UNION ALL
    SELECT (SELECT jobs.line FROM jobs WHERE jobs.line > line.name ORDER BY jobs.line LIMIT 1)
    FROM line WHERE line.name IS NOT NULL
),
open AS (
    SELECT line.name, count(*) OVER () AS lines
    FROM line
    CROSS JOIN LATERAL (
        SELECT * FROM jobs WHERE jobs.line = line.name ORDER BY deadline, created_at, job_id LIMIT 1
    ) AS jobs
    WHERE line.name IS NOT NULL AND NOT ({as_text(is_held(), jobs)})
),
heads AS (
    SELECT foremost.*, left(open.name, 1) AS hottest
    FROM open
    CROSS JOIN LATERAL (
        SELECT * FROM jobs
        WHERE jobs.line = open.name
            AND (jobs.not_before IS NULL OR jobs.not_before <= now())
            AND NOT ({as_text(waits_for_its_key(), jobs)})
        ORDER BY jobs.deadline, jobs.created_at, jobs.job_id
        LIMIT CASE WHEN open.name < '1' THEN :limit ELSE greatest({OF_EACH}, {SHARE} * :limit / open.lines) END
    ) AS foremost
),
in_turn AS (
    SELECT *, row_number() OVER (PARTITION BY queue, tenant ORDER BY hottest, deadline, created_at, job_id) AS turn
    FROM heads
),
chosen AS (
    SELECT * FROM in_turn ORDER BY hottest <> '0', turn, hottest LIMIT :limit
)
SELECT chosen.*, documents.tokens, extract(epoch FROM now() - needed_at) AS age_s
FROM chosen JOIN documents USING (document_id)
ORDER BY chosen.hottest, chosen.deadline, chosen.created_at, chosen.job_id
"""


def foremost(connection: Connection, limit: int) -> list[Row[Any]]:
    """Rows of jobs, hot before warm before cold, then by deadline: the order in which they get their messages.

    All of what is hot comes first. Of the rest the limit takes the foremost of every queue and tenant: a long backlog
    of one must not hide the others, whose lanes may be idle.
    """
    return list(connection.execute(text(_LOOK), {"limit": limit}))


def explained(connection: Connection, limit: int) -> dict[str, Any]:
    """PostgreSQL's plan of such a look, run."""
    plan = connection.execute(text(f"EXPLAIN (ANALYZE, FORMAT JSON) {_LOOK}"), {"limit": limit}).scalar_one()
    found: dict[str, Any] = plan[0]
    return found
