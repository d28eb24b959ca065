"""What happens after an error: one table, as data. The first class that matches decides."""

from __future__ import annotations

from dataclasses import dataclass

from docmill.errors import (
    DeadlineExceeded,
    DocmillError,
    EngineDead,
    EngineUnavailable,
    InputError,
    ModelError,
    ParserCrashed,
    PromptTooLong,
    RequestError,
    SystemFault,
)


@dataclass(frozen=True, slots=True)
class Policy:
    """`tries` attempts in all, `delay_s` times the number of tries so far between them."""

    tries: int
    delay_s: float = 0.0


REJECT = Policy(tries=1)

TABLE: tuple[tuple[type[BaseException], Policy], ...] = (
    (InputError, REJECT),
    (RequestError, REJECT),
    (PromptTooLong, REJECT),
    (ModelError, Policy(tries=2)),
    # The engine takes its worker down with it; the supervisor brings both back. It counts, for the document may be
    # what kills the engine; five, because the others that were being read with it are innocent.
    (EngineDead, Policy(tries=5, delay_s=1.0)),
    (EngineUnavailable, Policy(tries=20, delay_s=1.0)),
    (DeadlineExceeded, Policy(tries=3, delay_s=1.0)),
    (ParserCrashed, Policy(tries=3, delay_s=0.5)),
    (SystemFault, Policy(tries=5, delay_s=1.0)),
    # An error that nobody foresaw: a person should see it soon, so it is tried once more and then failed.
    (Exception, Policy(tries=2, delay_s=1.0)),
)


def policy_for(error: BaseException) -> Policy:
    """The row of the table for this error."""
    return next(policy for kind, policy in TABLE if isinstance(error, kind))


def code_of(error: BaseException) -> str:
    """The stable word under which the error is recorded."""
    return error.code if isinstance(error, DocmillError) else "internal_error"


def describe(error: BaseException) -> str:
    """The reason for a person: a message of ours as it is, another's with its type."""
    return str(error) if isinstance(error, DocmillError) else f"{type(error).__name__}: {error}"
