"""What must be true when `bench.chaos` is over, asked of the database; every breach is a line for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from bench.chaos_blows import Fallen
from bench.chaos_client import ORDERING_KEY
from bench.chaos_plan import Work
from docmill.types import TERMINAL
from storage.ledger import check
from tests.stack import Stack
from workers.services import Services

_ENDED: Final = [str(status) for status in TERMINAL]
_ANY: Final = ("parse", "infer", "validate")
#: The stages in which a blow to a program shows; to any other part, in all.
_SHOWS_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "parse": ("parse",),
    "parse-hot": ("parse",),
    "gpu": ("infer",),
    "validate": ("validate",),
}

_FILES: Final = """
SELECT s.name, s.tenant, s.outcome, s.job_id, coalesce(j.status, s.outcome) AS status, j.reason
FROM submissions s LEFT JOIN jobs j USING (job_id)
"""
_STUCK: Final = "SELECT job_id, status, attempt, reason, published_at, lease_until FROM jobs WHERE status <> ALL(%s)"
#: A job ends by one event; poison ends with the lease that was its last.
_ENDS: Final = """
SELECT j.job_id, j.status, count(e.event_id) AS times FROM jobs j LEFT JOIN events e ON e.job_id = j.job_id
 AND (e.kind = ANY(%s) OR e.kind = 'lease_ended' AND e.detail->>'now' = 'failed')
GROUP BY 1, 2 HAVING count(e.event_id) <> 1
"""
_RESULTS: Final = """
SELECT j.job_id, j.status, j.attempt, count(r.job_id) AS results, max(r.attempt) AS of_attempt,
    (SELECT count(*) FROM attempts a WHERE a.job_id = j.job_id AND a.stage = 'validate' AND a.outcome = 'finished'
    ) AS finishers
FROM jobs j LEFT JOIN results r USING (job_id) GROUP BY 1, 2, 3
"""
_READ_TWICE: Final = """
SELECT a.job_id, a.stage, count(*) AS finished, j.rejections FROM attempts a JOIN jobs j USING (job_id)
WHERE a.outcome = 'finished' AND a.stage IN ('parse', 'infer')
GROUP BY 1, 2, 4 HAVING count(*) > 1 + CASE a.stage WHEN 'infer' THEN j.rejections ELSE 0 END
"""
_ORDER: Final = """
WITH keyed AS (
    SELECT tenant, job_id, created_at, finished_at,
        (SELECT min(started_at) FROM attempts a WHERE a.job_id = j.job_id AND a.stage = 'infer') AS began
    FROM jobs j WHERE ordering_key = %s
)
SELECT a.job_id, b.job_id AS overtook FROM keyed a JOIN keyed b ON a.tenant = b.tenant AND a.created_at < b.created_at
WHERE b.began < a.finished_at
"""
_OPEN: Final = """
SELECT a.job_id, a.no, a.stage FROM attempts a JOIN jobs j USING (job_id)
WHERE a.ended_at IS NULL AND j.status = ANY(%s)
"""
_BEGUN_AFTER: Final = """
SELECT extract(epoch FROM min(started_at) - %s) AS seconds FROM attempts WHERE started_at > %s AND stage = ANY(%s)
"""
_LOST: Final = "SELECT stage, count(*) AS times FROM attempts WHERE outcome = 'lost' GROUP BY 1 ORDER BY 1"


@dataclass(frozen=True, slots=True)
class Audit:
    """For each rule the breaches of it, and how the files of each kind ended."""

    breaches: Mapping[str, Sequence[str]]
    ends: Mapping[str, Counter[str]]
    lost_claims: Mapping[str, int]

    @property
    def clean(self) -> bool:
        return not any(self.breaches.values())


def audit(stack: Stack, planned: Sequence[Work], receipts: Mapping[int, str | None], use: Services) -> Audit:
    """Hold what the database says against what was handed in."""
    files = {(row["tenant"], row["name"].rpartition("/")[2]): row for row in stack.rows(_FILES)}
    found = {work.number: files.get((work.tenant, work.name)) for work in planned}
    breaches = {
        "lost": _lost(planned, found, receipts),
        "stuck": _lines(stack.rows(_STUCK, _ENDED)),
        "ended more or less than once": _lines(stack.rows(_ENDS, _ENDED)),
        "double results": _double(stack.rows(_RESULTS), stack.rows(_READ_TWICE)),
        "wrong end": _wrong(planned, found),
        "ledger": _unbalanced(use),
        "order": _lines(stack.rows(_ORDER, ORDERING_KEY)),
        "attempts left open": _lines(stack.rows(_OPEN, _ENDED)),
    }
    ends: dict[str, Counter[str]] = {}
    for work in planned:
        row = found[work.number]
        ends.setdefault(work.kind.name, Counter())[str(row["status"]) if row else "lost"] += 1
    return Audit(breaches, ends, {row["stage"]: row["times"] for row in stack.rows(_LOST)})


def recovery(stack: Stack, blow: Fallen) -> float | None:
    """Seconds until work of a stage that the blow shows in was begun again; None if none was begun any more."""
    stages = list(_SHOWS_IN.get(blow.program, _ANY))
    seconds = stack.rows(_BEGUN_AFTER, blow.at, blow.at, stages)[0]["seconds"]
    return float(seconds) if seconds is not None else None


def ended_jobs(stack: Stack) -> int:
    """How many jobs are over."""
    return int(stack.rows("SELECT count(*) AS jobs FROM jobs WHERE status = ANY(%s)", _ENDED)[0]["jobs"])


def _lost(planned: Sequence[Work], found: Mapping[int, Any], receipts: Mapping[int, str | None]) -> list[str]:
    """Files without a record, and jobs that a client was promised and that are not there."""
    missing = [f"{work.name} of {work.tenant} has no record" for work in planned if found[work.number] is None]
    rows = {row["job_id"] for row in found.values() if row is not None}
    return missing + [
        f"the receipt of file {number} names {job}: no such job"
        for number, job in receipts.items()
        if job and job not in rows
    ]


def _unbalanced(use: Services) -> list[str]:
    with use.database.connect() as connection:
        return [str(one) for one in check(connection)]


def _wrong(planned: Sequence[Work], found: Mapping[int, Any]) -> list[str]:
    return [
        f"{work.name}: {row['status']} ({row['reason']}), not {' or '.join(sorted(work.kind.ends))}"
        for work in planned
        if (row := found[work.number]) is not None and row["status"] not in work.kind.ends
    ]


def _double(rows: Sequence[dict[str, Any]], read_twice: Sequence[dict[str, Any]]) -> list[str]:
    """A job with a result has one, of its last attempt, by one validation; another has none."""

    def fits(row: Mapping[str, Any]) -> bool:
        if row["status"] not in ("done", "needs_review"):
            return bool(row["results"] == 0)
        return bool(row["results"] == row["finishers"] == 1 and row["of_attempt"] == row["attempt"])

    return _lines(row for row in rows if not fits(row)) + _lines(read_twice)


def _lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return [", ".join(f"{name} {_short(value)}" for name, value in row.items()) for row in rows]


def _short(value: object) -> str:
    return value.isoformat(timespec="seconds") if isinstance(value, datetime) else str(value)
