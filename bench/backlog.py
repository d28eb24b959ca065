"""What a look of dispatch costs as the backlog grows: `python -m bench.pipeline --backlog 1000000`.

Cold jobs of a hundred tenants are put into a real PostgreSQL, ten thousand at first and then up to the number given. At
each length a look is timed (the jobs that come next, what is in flight), with the rows that it read, beside the count
of the whole backlog, which dispatch makes every ten seconds at most.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, text

from bench.report import Figure, finish, show
from storage.control import ControlStore
from storage.database import connect
from storage.jobs import JobStore
from storage.lines import explained
from storage.migrate import upgrade
from workers.dispatch import HORIZON
from workers.local import EmbeddedPostgres

LOOKS: Final = 9
SHORTEST: Final = 10_000
TENANTS: Final = 100

_DOCUMENTS: Final = text("""
INSERT INTO documents (document_id, tenant, sha256, size_bytes, name, source, blob_key, tokens)
SELECT 'doc_' || n, 't' || n % :tenants, 'sha_' || n, 1, 'a.pdf', 'bucket', 'b', 300
FROM generate_series(CAST(:first AS bigint), :last) AS n
""")
_JOBS: Final = text("""
INSERT INTO jobs (
    job_id, document_id, tenant, profile, profile_version, status, window_s, deadline,
    heat, length_class, priority, lane, queue, hot_score
)
SELECT 'job_' || n, 'doc_' || n, 't' || n % :tenants, 'risk-report', '1', 'queued', 864000,
    now() + interval '1 day' + n * interval '0.5 s', 'cold', 'short', 3, 'cpu', 'infer.cold.short', 0.3
FROM generate_series(CAST(:first AS bigint), :last) AS n
""")


def main(jobs: int) -> int:
    """Fill, look, fill further, look again."""
    home = Path(tempfile.mkdtemp(prefix="docmill-bench-"))
    postgres = EmbeddedPostgres(home)
    try:
        upgrade(postgres.url)
        engine = connect(postgres.url)
        rows: list[tuple[float, ...]] = []
        there = 0
        for length in sorted({SHORTEST, min(jobs, 10 * SHORTEST), jobs}):
            _fill(engine, there + 1, length)
            there = length
            rows.append((length, *_look(engine)))
    finally:
        postgres.stop()
    show("a look of dispatch (ms)", ["waiting jobs", "rows read", "next jobs", "in flight", "count of all"], rows)
    return finish("backlog", _figures(rows), details=rows)


def _fill(engine: Engine, first: int, last: int) -> None:
    with engine.begin() as connection:
        for statement in (_DOCUMENTS, _JOBS):
            connection.execute(statement, {"first": first, "last": last, "tenants": TENANTS})
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE jobs"))


def _look(engine: Engine) -> tuple[float, float, float, float]:
    store, control = JobStore(engine), ControlStore(engine)
    with engine.connect() as connection:
        read = rows_read(explained(connection, HORIZON)["Plan"])
    return (
        read,
        _median_ms(lambda: store.waiting(limit=HORIZON)),
        _median_ms(store.in_flight),
        _median_ms(control.backlog),
    )


def rows_read(node: dict[str, Any]) -> float:
    """The rows of `jobs` that a plan read, with those that it threw away."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if node.get("Relation Name") == "jobs" else 0
    return float(own * node["Actual Loops"] + sum(rows_read(child) for child in node.get("Plans", ())))


def _median_ms(look: Callable[[], object]) -> float:
    took = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        look()
        took.append(1000 * (time.perf_counter() - began))
    return statistics.median(took)


def _figures(rows: list[tuple[float, ...]]) -> list[Figure]:
    short, long = rows[0], rows[-1]
    return [
        Figure("waiting_jobs", long[0]),
        Figure("rows_read", long[1]),
        Figure("rows_read_of_shortest", long[1] / short[1], "<= 2"),
        Figure("look_ms", long[2] + long[3]),
        Figure("look_of_shortest", (long[2] + long[3]) / (short[2] + short[3]), "<= 3"),
        Figure("count_ms", long[4]),
    ]
