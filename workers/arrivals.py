"""What both kinds of inbox do with a file that is ready: enter it, refuse what cannot be, leave what must wait."""

from __future__ import annotations

import logging
from typing import Protocol

from docmill.errors import QuotaExceeded, RequestError
from docmill.log import logger, say
from docmill.types import Source
from storage.ports import Receipt, Submission
from workers.intake import submit
from workers.services import Services

log = logger("bucket")


class Arrival(Protocol):
    """A file of an inbox; `name` tells it from every other file of every inbox, `etag` from its other versions."""

    @property
    def name(self) -> str: ...
    @property
    def tenant(self) -> str: ...
    @property
    def profile(self) -> str: ...
    @property
    def etag(self) -> str: ...


def enter(arrival: Arrival, data: bytes, use: Services) -> Receipt:
    """Submit a file; one that is for no profile or tenant is refused. Raises QuotaExceeded: the file must wait."""
    try:
        return submit(
            data,
            name=arrival.name,
            tenant=arrival.tenant,
            profile_name=arrival.profile,
            source=Source.BUCKET,
            use=use,
            etag=arrival.etag,
        )
    except QuotaExceeded:
        raise
    except RequestError as error:
        profile, size = arrival.profile, len(data)
        submission = Submission(arrival.tenant, Source.BUCKET, arrival.name, arrival.etag, profile, size)
        return use.store.refuse(submission, code=error.code, reason=str(error), sha256=None)


def refuse_misplaced(name: str, etag: str, reason: str, use: Services) -> Receipt:
    """Record what stands where no file belongs; it is nobody's, so it is the tenant's of the settings."""
    submission = Submission(use.settings.tenant, Source.BUCKET, name, etag, "", 0)
    receipt = use.store.refuse(submission, code="misplaced", reason=reason, sha256=None)
    say(log, "misplaced", level=logging.DEBUG, key=name, submission=receipt.submission_id)
    return receipt
