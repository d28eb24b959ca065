"""The rules that hold for every store of jobs, whatever it is kept in: pure, shared by `jobs` and `memory`."""

from __future__ import annotations

from docmill.errors import NotFound, StaleAttempt
from docmill.types import Heat, Outcome, Status, Verdict
from storage.ports import HELD_AS, WAITS_FOR, Claim, Order

#: Known documents that measure the way through the system are this tenant's; the views leave them out.
PROBE_TENANT = "docmill-probe"

#: By when a request that somebody waits for is overdue.
IMMEDIATE_DEADLINE_S = 60

#: Jaccard index of shingles from which two documents are linked.
SIMILAR = 0.8
#: Only then work is shared: one clause more or less could be what a profile asks for.
SAME_TEXT = 1.0

#: What the verdict of a validation makes of a job.
ENDS_AS = {
    Outcome.PASS: Status.DONE,
    Outcome.FLAG: Status.DONE,
    Outcome.REVIEW: Status.NEEDS_REVIEW,
    Outcome.REJECT: Status.NEEDS_REVIEW,
}

#: A job that ends so has a result.
WITH_RESULT = frozenset({Status.DONE, Status.NEEDS_REVIEW})

#: The stage that a job in this status waits for or is in.
STAGE_OF = {status: stage for stages in (WAITS_FOR, HELD_AS) for stage, status in stages.items()}

#: Where a job goes back to when its worker is lost.
GOES_BACK_TO = {status: WAITS_FOR[stage] for status, stage in STAGE_OF.items()}

#: What a job that has got on starts from in its next stage: what went wrong before is not that stage's.
GOT_ON = {"lost": 0, "retries": 0}

#: The order in which waiting jobs get their messages.
HOTTEST_FIRST = {Heat.HOT: 0, Heat.WARM: 1, Heat.COLD: 2}

#: Where jobs are counted that wait for a parser: somebody waits for the first kind.
PARSE_HOT, PARSE_COLD = "parse.hot", "parse.cold"
#: The queue of what was read and is to be checked.
VALIDATE = "validate"

CANCELLED = "cancelled by the caller"
LOST = "the lease ended: the worker died or hung"
#: The reason of an open attempt that a worker reads with nothing beside it.
ALONE = "read alone: its worker was lost before"


def seconds_allowed(order: Order) -> int:
    """How long the job may take before it is overdue."""
    return order.window_s or IMMEDIATE_DEADLINE_S


def heat_before_parse(*, vip: bool, window_s: int) -> Heat:
    """Before its length is known, a job is hot if somebody waits for it or its tenant is a VIP."""
    return Heat.HOT if vip or window_s == 0 else Heat.COLD


def duplicate_reason(name: str, job_id: str) -> str:
    """Why a file makes no job of its own. The job may have failed, so nothing is said of its result."""
    return f"the same bytes as {name}, read with the same profile: {job_id} is the job of this file too"


def poison_reason(max_lost: int) -> str:
    """A job whose worker died this often is not tried again."""
    return f"poison: its worker was lost {max_lost} times; the bytes are kept"


def failure_reason(code: str, reason: str) -> str:
    """The code first: it is what a person searches for."""
    return f"{code}: {reason}"


def reason_of(verdict: Verdict) -> str:
    """One line for a person: what decided the verdict."""
    worst = [finding for finding in verdict.findings if finding.outcome == verdict.outcome]
    if verdict.outcome == Outcome.PASS or not worst:
        return "all rules passed"
    more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
    return f"{verdict.outcome}: {worst[0].rule}: {worst[0].message}{more}"


def stale(claim: Claim) -> StaleAttempt:
    """What a write of a lost claim raises."""
    return StaleAttempt(
        f"attempt {claim.attempt} of {claim.job_id} no longer holds the job: another worker has it, or it ended"
    )


def no_such_job(job_id: str) -> NotFound:
    """Also for another tenant's job: that it exists is not theirs to know."""
    return NotFound(f"there is no job {job_id}; `docmill status` and GET /v1/jobs list those that exist")
