"""What a store of jobs can do, in words and types; both implementations pass `tests/conformance/test_jobs.py`.

A worker *claims* a job for one stage with one compare-and-set that raises `attempt` and sets a lease. Every later
write carries that attempt and raises `StaleAttempt` if the job was claimed or swept meanwhile; nothing is written
then. `published` marks that a message was given to the broker: it is a hint for the sweeper, never the truth.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Protocol

from docmill.likeness import Likeness
from docmill.types import Document, Extraction, PreparedDocument, Record, Route, Source, Status, Usage, Verdict


class Stage(StrEnum):
    """A step that a worker claims a job for."""

    PARSE = "parse"
    INFER = "infer"
    VALIDATE = "validate"


class Waste(StrEnum):
    """Why what an attempt used has brought nothing."""

    #: A lost attempt finished its reading all the same, after another had been given the job.
    DUPLICATE = "duplicate"
    #: Its worker died or hung.
    LOST = "lost"
    CANCELLED = "cancelled"
    #: The model's answer was cut off, empty, or not of the schema.
    UNUSABLE = "unusable"
    #: The rules or a reviewer rejected the reading.
    REJECTED = "rejected"
    #: The engine failed, or the answer came too late.
    FAILED = "failed"


#: No queue has a message.
NO_HEADS: Mapping[str, str] = MappingProxyType({})

#: The status in which a job waits for a stage.
WAITS_FOR = {Stage.PARSE: Status.RECEIVED, Stage.INFER: Status.QUEUED, Stage.VALIDATE: Status.VALIDATING}
#: The status in which a job is while a worker holds it for a stage.
HELD_AS = {Stage.PARSE: Status.RECEIVED, Stage.INFER: Status.RUNNING, Stage.VALIDATE: Status.VALIDATING}


@dataclass(frozen=True, slots=True)
class Submission:
    """A file at a door. `etag` tells versions of one name apart (the sha256, where the door has nothing better)."""

    tenant: str
    source: Source
    name: str
    etag: str
    profile: str
    size_bytes: int
    #: A file that was read with an older version of its profile is read again when it comes again.
    profile_version: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """What is asked for: the job's identity and its need. `window_s` 0 means that somebody waits."""

    job_id: str
    profile: str
    profile_version: str
    window_s: int = 0
    vip: bool = False
    batch_id: str | None = None
    ordering_key: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to a submission: accepted, duplicate or refused, each with its record."""

    submission_id: int
    outcome: str
    document_id: str | None
    job_id: str | None
    code: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a job for one stage until the lease ends."""

    job_id: str
    attempt: int
    stage: Stage
    document_id: str
    tenant: str
    profile: str
    profile_version: str
    blob_key: str
    vip: bool
    age_s: float
    window_s: int
    remaining_s: float
    retries: int
    rejections: int
    #: Workers that this job has lost since it last got on.
    lost: int = 0
    route: Route | None = None
    ordering_key: str | None = None
    #: Its document repeats an earlier one to the last shingle.
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Waiting:
    """A job that waits in the database for its next stage."""

    job_id: str
    stage: Stage
    tenant: str
    profile: str
    vip: bool
    age_s: float
    window_s: int
    deadline: datetime
    tokens: int
    route: Route | None


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: jobs whose lease had ended, jobs given up as poison, messages presumed lost."""

    returned: tuple[str, ...]
    poisoned: tuple[str, ...]
    unpublished: tuple[str, ...]


class Jobs(Protocol):
    """The state machine and what hangs on it. Every method is one transaction."""

    def accept(self, document: Document, *, blob_key: str, submission: Submission, order: Order) -> Receipt:
        """Record an accepted file; the same bytes and profile again give the same job and outcome `duplicate`."""
        ...

    def refuse(self, submission: Submission, *, code: str, reason: str, sha256: str | None) -> Receipt:
        """Record a file that was not accepted, with the reason."""
        ...

    def claim(self, job_id: str, stage: Stage, *, worker: str, lease_s: float) -> Claim | None:
        """Take the job, or None if it does not wait for this stage (a second delivery)."""
        ...

    def renew(self, claims: Collection[Claim], *, lease_s: float) -> frozenset[Claim]:
        """Extend the leases of the claims that still hold, and return those: the others were lost or cancelled."""
        ...

    def finish_parse(
        self, claim: Claim, prepared: PreparedDocument, route: Route, *, likeness: Likeness, sent: bool = False
    ) -> None:
        """Save document facts and tables, link it to one that it repeats, queue the job. Raises StaleAttempt.

        `sent`, here and below: the caller gives the next message to the broker now, so the job counts as published.
        """
        ...

    def repeated_reading(self, claim: Claim) -> Extraction | None:
        """How the document was read that the claimed one repeats to the last shingle, with the same profile.

        None unless that reading was accepted and no person had to look at it.
        """
        ...

    def reserve(self, claim: Claim, amount_usd: Decimal, *, note: Mapping[str, Any] | None = None) -> None:
        """Hold what the attempt may cost, before it uses the engine. Raises StaleAttempt.

        `note` says what was done to keep it below a cap; it becomes an event of the job.
        """
        ...

    def settle(self, claim: Claim, usage: Usage, *, waste: Waste) -> None:
        """Book what an attempt has used that finished nothing. Never stale: money is spent, whoever holds the job now.

        The second report of an attempt changes nothing. If the attempt was given up meanwhile and charged by estimate,
        the estimate is taken back.
        """
        ...

    def finish_infer(self, claim: Claim, extraction: Extraction, *, sent: bool = False) -> None:
        """Save the extraction, settle its cost, hand the job to validation. Raises StaleAttempt."""
        ...

    def finish_validate(
        self,
        claim: Claim,
        verdict: Verdict,
        extraction: Extraction,
        *,
        retry: Route | None,
        ends: Status | None = None,
        sent: bool = False,
    ) -> Status:
        """Save findings; queue the job again on `retry`, or end it with its one result. Raises StaleAttempt.

        It ends as `ends` says, or as is usual for the verdict; `failed` has no result, `needs_review` opens a review.
        """
        ...

    def give_back(self, claim: Claim, *, reason: str, delay_s: float, counts: bool) -> None:
        """Return the job to wait for this stage again; `counts` raises its retries. Raises StaleAttempt."""
        ...

    def alone(self, claim: Claim) -> None:
        """Note that nothing else runs in this worker: if it is lost now, the claim's job is to blame."""
        ...

    def lose(self, claim: Claim, *, reason: str, max_lost: int) -> None:
        """What `sweep` does to a claim whose lease has ended, now: its worker cannot go on. Raises StaleAttempt."""
        ...

    def fail(self, claim: Claim, *, code: str, reason: str) -> None:
        """End the job as failed, with the reason. Raises StaleAttempt."""
        ...

    def cancel(self, job_id: str, *, tenant: str) -> bool:
        """End a job that is not over yet; a worker that holds it finds its claim stale."""
        ...

    def extraction(self, claim: Claim) -> Extraction:
        """The latest extraction of the claimed job."""
        ...

    def waiting(self, *, limit: int) -> Sequence[Waiting]:
        """Jobs that wait for a message, by deadline; of one ordering key's to be read, the first that is not over."""
        ...

    def in_flight(self) -> dict[str, int]:
        """For each queue the jobs that are published or running, not finished with the stage."""
        ...

    def mark_published(self, job_ids: Iterable[str]) -> None:
        """A message for the present stage was given to the broker."""
        ...

    def mark_unpublished(self, job_ids: Iterable[str]) -> None:
        """The broker did not take the message: the job waits here again."""
        ...

    def reroute(self, job_id: str, route: Route) -> None:
        """Change the route of a job that waits (ageing)."""
        ...

    def sweep(
        self, *, republish_after_s: float, max_lost: int, heads: Mapping[str, str] = NO_HEADS, grace_s: float = 0.0
    ) -> Swept:
        """Return ended leases to their queues, give up poison, presume old messages lost.

        No lease ends within `grace_s` of the store's own start, before which nobody could renew it. Poison is what was
        lost `max_lost` times in one stage, the last time alone in its worker.

        `heads` has the job of the next message of each queue that the broker holds messages of. What was published
        before that one is lost, what came after it is only late; where the head's own job tells nothing, all is late.
        """
        ...

    def unpublish_all(self) -> int:
        """The broker was emptied: every waiting job needs a new message. Returns their number."""
        ...

    def record(self, job_id: str, *, tenant: str | None = None) -> Record:
        """One job. Raises NotFound, also for another tenant's."""
        ...

    def counts(self) -> dict[Status, int]:
        """Jobs by status."""
        ...
