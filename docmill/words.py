"""The words that all stages share: states, heats, lengths, doors."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where a job is. The database owns this; DESIGN "State" has the picture."""

    RECEIVED = "received"
    PREPARED = "prepared"
    QUEUED = "queued"
    RUNNING = "running"
    VALIDATING = "validating"
    DONE = "done"
    NEEDS_REVIEW = "needs_review"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DUPLICATE = "duplicate"

    @property
    def terminal(self) -> bool:
        return self in TERMINAL


TERMINAL = frozenset({Status.DONE, Status.NEEDS_REVIEW, Status.FAILED, Status.CANCELLED, Status.DUPLICATE})


class Heat(StrEnum):
    """How soon a result is needed."""

    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class LengthClass(StrEnum):
    """Prompt length: short < 512 tokens, medium 512 to 2048, long > 2048."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"


class Source(StrEnum):
    """The door through which a file came."""

    BUCKET = "bucket"
    API = "api"
    CLI = "cli"
    BATCH = "batch"
