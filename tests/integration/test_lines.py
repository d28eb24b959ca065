"""What dispatch reads to find what comes next, on a real PostgreSQL with a long backlog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from docmill.types import Heat
from storage.control import ControlStore
from storage.holds import Hold, Scope
from storage.jobs import JobStore
from storage.lines import explained
from tests.jobs import accepted, route, through_parse

BACKLOG = 50_000
LIMIT = 500

#: A backlog of cold jobs that were parsed: of one tenant's batch most, of a hundred tenants the rest.
_FILL = text("""
INSERT INTO documents (document_id, tenant, sha256, size_bytes, name, source, blob_key, tokens)
SELECT 'doc_' || n, 't' || CASE WHEN n % 5 = 0 THEN n % 100 ELSE 100 END, 'sha_' || n, 1, 'a.pdf', 'bucket', 'b', 300
FROM generate_series(1, :jobs) AS n
""")
_BATCH = text("INSERT INTO batches (batch_id, tenant, label) VALUES ('long', 't100', 'long')")
_JOBS = text("""
INSERT INTO jobs (
    job_id, document_id, batch_id, tenant, profile, profile_version, status, window_s, deadline,
    heat, length_class, priority, lane, queue, hot_score
)
SELECT 'job_' || document_id, document_id, CASE WHEN tenant = 't100' THEN 'long' END, tenant, 'risk-report', '1',
    'queued', 86400, now() + interval '1 day' + substr(sha256, 5)::int * interval '1 second',
    'cold', 'short', 3, 'cpu', 'infer.cold.short', 0.3
FROM documents
""")


@pytest.fixture
def backlog(engine: Engine) -> Iterator[Engine]:
    with engine.begin() as connection:
        connection.execute(_FILL, {"jobs": BACKLOG})
        connection.execute(_BATCH)
        connection.execute(_JOBS)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE jobs"))
    yield engine


def rows_read(node: dict[str, Any]) -> float:
    """The rows of `jobs` that a plan read, with those that it threw away."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if node.get("Relation Name") == "jobs" else 0
    return float(own * node["Actual Loops"] + sum(rows_read(child) for child in node.get("Plans", ())))


def read_by_a_look(engine: Engine) -> float:
    with engine.connect() as connection:
        return rows_read(explained(connection, LIMIT)["Plan"])


def test_a_look_reads_a_few_rows_of_each_line_however_long_the_backlog_is(backlog: Engine) -> None:
    assert read_by_a_look(backlog) < 10 * LIMIT


def test_a_look_does_not_walk_through_a_batch_that_is_held(backlog: Engine) -> None:
    ControlStore(backlog).hold(Scope.BATCH, "long", Hold.DRAIN)
    assert read_by_a_look(backlog) < 10 * LIMIT
    assert {job.tenant for job in JobStore(backlog).waiting(limit=LIMIT)} == {f"t{n}" for n in range(0, 100, 5)}


def test_every_tenant_is_seen_and_the_hot_job_first(backlog: Engine) -> None:
    store = JobStore(backlog)
    hot = accepted(store, b"hot", tenant="t100")
    through_parse(store, hot, to=route(Heat.HOT, priority=0))
    seen = store.waiting(limit=LIMIT)
    assert seen[0].job_id == hot
    assert len(seen) == LIMIT
    assert {job.tenant for job in seen} == {"t100", *(f"t{n}" for n in range(0, 100, 5))}
    of_one = [job.deadline for job in seen[1:] if job.tenant == "t100"]
    assert of_one == sorted(of_one)


def test_what_is_counted_in_flight_is_read_by_its_own_index(backlog: Engine) -> None:
    store = JobStore(backlog)
    store.mark_published([store.waiting(limit=1)[0].job_id])
    assert store.in_flight() == {"infer.cold.short": 1}
