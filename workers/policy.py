"""What happens after an error and after a verdict: two tables, as data.

For an error the first class that matches decides. For a verdict `policy.yaml` does, or the file that the settings name.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec
import yaml
from redis.exceptions import RedisError
from sqlalchemy.exc import OperationalError

from docmill.errors import (
    BlobsUnavailable,
    DatabaseUnavailable,
    DeadlineExceeded,
    DocmillError,
    EngineDead,
    EngineUnavailable,
    InputError,
    ModelError,
    NotFound,
    ParserCrashed,
    PromptTooLong,
    RequestError,
    SystemFault,
)
from docmill.types import Outcome


@dataclass(frozen=True, slots=True)
class Policy:
    """`tries` attempts in all, `delay_s` times the number of tries so far between them.

    What does not count is tried for ever, always after `delay_s`. What `loses` the worker counts as a lost worker.
    """

    tries: int
    delay_s: float = 0.0
    counts: bool = True
    loses: bool = False


REJECT = Policy(tries=1)

AWAY = Policy(tries=1, delay_s=1.0, counts=False)
FULL = Policy(tries=1, delay_s=10.0, counts=False)
#: What a machine says that has no room left, for files or open ones, or may not write.
OF_THE_DISK = frozenset(
    {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EACCES}
)

TABLE: tuple[tuple[type[BaseException], Policy], ...] = (
    (InputError, REJECT),
    # In a stage, what is not there are bytes of ours: a disk that is not mounted comes back.
    (NotFound, Policy(tries=8, delay_s=20.0)),
    (RequestError, REJECT),
    (PromptTooLong, REJECT),
    (ModelError, Policy(tries=2)),
    # The engine takes its worker down with it; the supervisor brings both back. The document may be what kills the
    # engine, but at most one of those that were being read with it.
    (EngineDead, Policy(tries=1, loses=True)),
    # No document fails for a full disk or a store that is away.
    (BlobsUnavailable, FULL),
    (DatabaseUnavailable, AWAY),
    (OperationalError, AWAY),
    (RedisError, AWAY),
    (EngineUnavailable, Policy(tries=20, delay_s=1.0)),
    (DeadlineExceeded, Policy(tries=3, delay_s=1.0)),
    (ParserCrashed, Policy(tries=3, delay_s=0.5)),
    (SystemFault, Policy(tries=5, delay_s=1.0)),
    # An error that nobody foresaw: a person should see it soon, so it is tried once more and then failed.
    (Exception, Policy(tries=2, delay_s=1.0)),
)


def policy_for(error: BaseException) -> Policy:
    """The row of the table for this error."""
    if isinstance(error, OSError) and error.errno in OF_THE_DISK:
        return FULL
    return next(policy for kind, policy in TABLE if isinstance(error, kind))


def code_of(error: BaseException) -> str:
    """The stable word under which the error is recorded."""
    return error.code if isinstance(error, DocmillError) else "internal_error"


def describe(error: BaseException) -> str:
    """The reason for a person: a message of ours as it is, another's with its type."""
    return str(error) if isinstance(error, DocmillError) else f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------- after a verdict

VERDICTS = Path(__file__).parent / "policy.yaml"


class Step(StrEnum):
    """What follows a verdict; `policy.yaml` says what each means."""

    ACCEPT = "accept"
    RETRY = "retry"
    REVIEW = "review"
    REJECT = "reject"


class BrokenPolicy(ValueError):
    """The policy file is not of its form; the message names the file, the place and the reason."""


@dataclass(frozen=True, slots=True)
class VerdictPolicy:
    """For each outcome the step after the first reading, after the second, and so on; the last one holds for the rest.

    `profiles` has what is different for one profile.
    """

    default: dict[Outcome, tuple[Step, ...]]
    profiles: dict[str, dict[Outcome, tuple[Step, ...]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if missing := [outcome.value for outcome in Outcome if not self.default.get(outcome)]:
            raise ValueError(f"default says nothing for {', '.join(missing)}: give each outcome a list of steps")
        for name, steps in (("default", self.default), *self.profiles.items()):
            for outcome, line in steps.items():
                if not line or line[-1] == Step.RETRY:
                    raise ValueError(f"{name}: {outcome} must end in accept, review or reject, or it is read for ever")

    def step(self, profile: str, outcome: Outcome, readings_before: int) -> Step:
        """What follows this outcome of a job that was read, and rejected, so often before."""
        steps = self.profiles.get(profile, {}).get(outcome) or self.default[outcome]
        return steps[min(readings_before, len(steps) - 1)]


def load_policy(file: Path = VERDICTS) -> VerdictPolicy:
    """The policy of a file. Raises BrokenPolicy."""
    try:
        return msgspec.convert(yaml.safe_load(file.read_text(encoding="utf-8")), VerdictPolicy)
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise BrokenPolicy(f"{file}: {error}") from error
