"""The bucket door: files in the inbox, a folder or an S3 bucket, are submitted, once for each version of a file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from docmill.errors import QuotaExceeded
from ingest.folder import InboxFile, Seen, read, scan
from storage import inbox
from workers import bucket_objects
from workers.arrivals import enter, refuse_misplaced
from workers.services import Services

#: Files of one tick: the worker that scans also dispatches and checks, and must not be away for long.
TAKE_AT_ONCE = 100


def tick(use: Services) -> None:
    """One look at the inbox."""
    folder = use.settings.inbox_folder
    if folder is None:
        bucket_objects.tick(use)
    elif folder.is_dir():
        scan_folder(folder, use)


def scan_folder(folder: Path, use: Services) -> None:
    """Observe, submit what is ready, record what stands in the wrong place."""
    with use.database.begin() as connection:
        seen, taken = inbox.load(connection, Seen)
    look = scan(folder, seen, time.time(), use.settings.settle_s)
    done = take_some([file for file in look.ready if taken.get(file.key) != file.etag], use)
    with use.database.begin() as connection:
        inbox.save(connection, look.observed)
        inbox.mark_taken(connection, [file.key for file in done])
    for misplaced in look.misplaced:
        refuse_misplaced(misplaced.key, "misplaced", misplaced.reason, use)


def take_some(files: Sequence[InboxFile], use: Services) -> list[InboxFile]:
    """Submit files until there are enough for one tick. Those of a tenant over its quota wait, and hold up nobody."""
    done: list[InboxFile] = []
    must_wait: set[str] = set()
    for file in files:
        if file.tenant in must_wait:
            continue
        try:
            done += [file] if take(file, use) else []
        except QuotaExceeded:
            must_wait.add(file.tenant)
        if len(done) >= TAKE_AT_ONCE:
            break
    return done


def take(file: InboxFile, use: Services) -> bool:
    """Submit one settled file; False when it changed under our hands and must be looked at again."""
    data = read(file, use.settings.max_bytes)
    if data is None:
        return False
    enter(FileArrival(file.key, file.tenant, file.profile, file.etag), data, use)
    return True


@dataclass(frozen=True, slots=True)
class FileArrival:
    """A file of the folder: its name is its path below the inbox."""

    name: str
    tenant: str
    profile: str
    etag: str
