"""The bucket door: files in the inbox that have settled are submitted, once for each version of a file."""

from __future__ import annotations

import logging
import time

from docmill.errors import QuotaExceeded, RequestError
from docmill.log import logger, say
from docmill.types import Source
from ingest.folder import InboxFile, Misplaced, Seen, read, scan
from storage import inbox
from storage.ports import Submission
from workers.intake import submit
from workers.services import Services

log = logger("bucket")

#: Files of one tick: the worker that scans also dispatches and checks, and must not be away for long.
TAKE_AT_ONCE = 100


def tick(use: Services) -> None:
    """One look at the inbox: observe, submit what is ready, record what stands in the wrong place."""
    folder = use.settings.inbox
    if not folder.is_dir():
        return
    with use.database.begin() as connection:
        seen, taken = inbox.load(connection, Seen)
    look = scan(folder, seen, time.time(), use.settings.settle_s)
    new = [file for file in look.ready if taken.get(file.key) != file.etag]
    done = [file for file in new[:TAKE_AT_ONCE] if take(file, use)]
    with use.database.begin() as connection:
        inbox.save(connection, look.observed)
        inbox.mark_taken(connection, [file.key for file in done])
    for misplaced in look.misplaced:
        _refuse_misplaced(misplaced, use)


def take(file: InboxFile, use: Services) -> bool:
    """Submit one settled file; False when it changed under our hands and must be looked at again."""
    data = read(file, use.settings.max_bytes)
    if data is None:
        return False
    try:
        submit(
            data,
            name=file.key,
            tenant=file.tenant,
            profile_name=file.profile,
            source=Source.BUCKET,
            use=use,
            etag=file.etag,
        )
    except QuotaExceeded:
        return False  # it waits in the inbox until its tenant may go on
    except RequestError as error:
        submission = Submission(file.tenant, Source.BUCKET, file.key, file.etag, file.profile, file.size)
        use.store.refuse(submission, code=error.code, reason=str(error), sha256=None)
    return True


def _refuse_misplaced(misplaced: Misplaced, use: Services) -> None:
    submission = Submission(use.settings.tenant, Source.BUCKET, misplaced.key, "misplaced", "", 0)
    receipt = use.store.refuse(submission, code="misplaced", reason=misplaced.reason, sha256=None)
    say(log, "misplaced", level=logging.DEBUG, key=misplaced.key, submission=receipt.submission_id)
