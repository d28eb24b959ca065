"""What readings leave for the next: answers to single parts of a document, and how long answers usually are.

A part that was read is kept until its document has been read as a whole, so that an attempt after a failure asks only
for what is missing. A reading that is finished says how long the longest answer to one of its prompts was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from sqlalchemy import Connection, Engine, delete, func, literal, select
from sqlalchemy.dialects.postgresql import insert

from docmill.types import LengthClass, Route
from storage import rules
from storage.database import transactional
from storage.fence import claimed_by
from storage.part_schema import parts
from storage.ports import Claim
from storage.schema import attempts, jobs

#: How long answers are is told by the last so many readings, and by the one that is longer than so many of them.
LAST: Final = 200
SHARE: Final = 0.95


class Usual(NamedTuple):
    """The 95th percentile of the longest answers of so many readings, in tokens."""

    readings: int
    tokens: int


class Parts(Protocol):
    """Both implementations pass `tests/conformance/test_parts.py`."""

    def keep_part(self, claim: Claim, key: str, answer: bytes) -> None:
        """Keep the answer to a part, once. Raises StaleAttempt if the claim is no longer ours."""
        ...

    def kept_parts(self, claim: Claim) -> dict[str, bytes]:
        """All answers that attempts at this job have kept, by their keys."""
        ...

    def usual_answer(self, profile: str, version: str, length: LengthClass) -> Usual:
        """How long the answers of the last readings were of documents of this length, with this profile."""
        ...


@dataclass(frozen=True, slots=True)
class PartStore:
    """`Parts` on PostgreSQL. Safe to use from many threads."""

    engine: Engine

    @transactional
    def keep_part(self, connection: Connection, claim: Claim, key: str, answer: bytes) -> None:
        ours = select(jobs.c.job_id, literal(key), literal(claim.attempt), literal(answer)).where(claimed_by(claim))
        statement = insert(parts).from_select(["job_id", "key", "attempt", "answer"], ours)
        # A commit whose answer was lost is repeated.
        kept = connection.execute(
            statement.on_conflict_do_update(
                index_elements=[parts.c.job_id, parts.c.key], set_={"answer": statement.excluded.answer}
            ).returning(parts.c.key)
        )
        if kept.one_or_none() is None:
            raise rules.stale(claim)

    @transactional
    def kept_parts(self, connection: Connection, claim: Claim) -> dict[str, bytes]:
        kept = select(parts.c.key, parts.c.answer).where(parts.c.job_id == claim.job_id)
        return {key: answer for key, answer in connection.execute(kept)}

    @transactional
    def usual_answer(self, connection: Connection, profile: str, version: str, length: LengthClass) -> Usual:
        last = (
            select(attempts.c.longest_output)
            .where(attempts.c.read_as == _read_as(profile, version, length), attempts.c.longest_output.is_not(None))
            .order_by(attempts.c.ended_at.desc())
            .limit(LAST)
            .subquery()
        )
        at_share = func.percentile_disc(SHARE).within_group(last.c.longest_output)
        readings, tokens = connection.execute(select(func.count(), at_share).select_from(last)).one()
        return Usual(readings, tokens or 0)


def forget(connection: Connection, job_id: str) -> None:
    """The document has been read as a whole: its parts have served their time."""
    connection.execute(delete(parts).where(parts.c.job_id == job_id))


def read_as(profile: str, version: str, route: Route | None) -> str | None:
    """What readings are alike by, as far as the length of their answers goes."""
    return None if route is None else _read_as(profile, version, route.length_class)


def _read_as(profile: str, version: str, length: LengthClass) -> str:
    return f"{profile}/{version}/{length}"
