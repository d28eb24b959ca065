"""Carrying batches from one state to the next, a small step at a time, each of them safe to repeat.

A loop of its own rather than messages: the database says what is to be done, so nothing is lost when the broker or this
process goes, and any number of such processes may run.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

from sqlalchemy import RowMapping

from docmill.errors import QuotaExceeded
from docmill.log import logger, say
from storage.batches import error_of
from workers.batch_estimate import estimate
from workers.batch_input import next_chunk
from workers.batch_jobs import plan
from workers.batch_output import write_errors, write_output
from workers.services import Services

log = logger("batches")

#: Lines that one transaction gives jobs, or ends.
OPENED_AT_ONCE = 500
ENDED_AT_ONCE = 1000
#: Unfinished jobs that a batch has at most: the rest waits as lines, where it costs dispatch nothing.
MOST_OPEN = 5000
#: Looking for jobs that have ended takes at most this share of the time.
LOOKING = 0.05
#: Seconds between two looks for bytes that nobody needs.
PURGE_S = 60.0
PURGED_AT_ONCE = 200


class Runner:
    """Steps every batch that is not over; `run` does so until it is told to stop."""

    def __init__(self, use: Services, *, looking: float = LOOKING) -> None:
        self._use = use
        self._looking = looking
        self._look_at: dict[str, float] = {}
        self._purge_at = 0.0

    def run(self, stop: threading.Event) -> None:
        """Again and again, with a pause while there is nothing to do."""
        while not stop.is_set():
            if not self.tick():
                stop.wait(self._use.settings.tick_s)

    def tick(self) -> bool:
        """One step of each batch. True: there is more to do at once."""
        busy = False
        try:
            for batch_id in self._use.batches.live():
                busy |= self._step(batch_id)
            self._purge_now_and_then()
        except Exception as error:
            say(log, "tick_failed", level=logging.ERROR, error=True, why=error)
        return busy

    def _step(self, batch_id: str) -> bool:
        """A batch whose step fails does not hold up the others; it is tried again at the next tick."""
        try:
            batch = self._use.batches.get(batch_id)
            busy = STEPS[batch["status"]](self, batch)
        except Exception as error:
            say(log, "step_failed", level=logging.ERROR, error=True, batch_id=batch_id, why=error)
            return False
        return busy

    # ------------------------------------------------------------ states

    def validate(self, batch: RowMapping) -> bool:
        """Read one more piece of the input."""
        use = self._use
        if batch["ending"] == "estimate":
            use.batches.tell_estimate(batch["batch_id"], estimate(batch, use))
        elif _is_over_time(batch):
            message = "The completion window was over before the input had been read."
            use.batches.fail(batch["batch_id"], [error_of("batch_expired", message)])
        elif batch["parent_batch_id"] is not None:
            use.batches.copy_failed(batch)
        else:
            chunk = next_chunk(batch, use)
            use.batches.add_lines(batch, chunk)
            say(log, "read", batch_id=batch["batch_id"], lines=chunk.lines_read, over=chunk.over)
        return True

    def work(self, batch: RowMapping) -> bool:
        """Give lines their jobs, end those whose job has ended, until there is none left or the window is over."""
        if batch["ending"] is not None:
            return self.end(batch)
        if _is_over_time(batch):
            self._use.batches.decide_end(batch["batch_id"], "expired")
            return True
        opened = self._open(batch)
        ended = self._settle(batch)
        if opened == ended == 0 and not self._use.lines.unfinished(batch["batch_id"]):
            self._use.batches.decide_end(batch["batch_id"], "completed")
            return True
        return opened > 0 or ended == ENDED_AT_ONCE

    def end(self, batch: RowMapping) -> bool:
        """End what is unfinished, write what there is."""
        use = self._use
        if batch["in_progress_at"] is None:
            use.batches.drop_lines(batch["batch_id"])
            return not use.batches.finish(batch, None, None)
        if use.lines.settle(batch, limit=ENDED_AT_ONCE):
            return True
        doomed = use.lines.doomed(batch, limit=ENDED_AT_ONCE)
        if not doomed:
            return self.write(batch)
        for line in doomed:
            if line["job_id"] is not None and not line["plain"]:
                use.store.cancel(line["job_id"], tenant=batch["tenant"])
        use.lines.end(batch, doomed)
        return True

    def write(self, batch: RowMapping) -> bool:
        """The files, then the end."""
        use = self._use
        done = use.batches.finish(batch, write_output(batch, use), write_errors(batch, use))
        self._look_at.pop(batch["batch_id"], None)
        say(log, "over", batch_id=batch["batch_id"], ending=batch["ending"], first=done)
        return False

    # ------------------------------------------------------------ steps

    def _open(self, batch: RowMapping) -> int:
        use = self._use
        try:
            use.quotas.check_spending(batch["tenant"])
        except QuotaExceeded as error:
            say(log, "quota", batch_id=batch["batch_id"], why=error)
            return 0
        room = min(OPENED_AT_ONCE, use.lines.room(batch, most=MOST_OPEN))
        lines = use.lines.new(batch, limit=room) if room else []
        if lines:
            use.lines.open(batch, *plan(batch, lines, use))
        return len(lines)

    def _settle(self, batch: RowMapping) -> int:
        """Look for ended jobs, and the less often the longer that takes."""
        began = time.monotonic()
        if began < self._look_at.get(batch["batch_id"], 0.0):
            return 0
        ended = self._use.lines.settle(batch, limit=ENDED_AT_ONCE)
        if ended < ENDED_AT_ONCE:
            now = time.monotonic()
            self._look_at[batch["batch_id"]] = now + (now - began) / self._looking
        return ended

    def _purge_now_and_then(self) -> None:
        if time.monotonic() >= self._purge_at:
            self._purge_at = time.monotonic() + PURGE_S
            self.purge()

    def purge(self) -> None:
        """Remove bytes that nobody needs: of deleted files, of parts whose upload is over."""
        use = self._use
        for rows, key, forget in (
            (use.files.unneeded(limit=PURGED_AT_ONCE), "file_id", use.files.mark_purged),
            (use.files.loose_parts(limit=PURGED_AT_ONCE), "part_id", use.files.forget_parts),
        ):
            for row in rows:
                use.blobs.delete(row["blob_key"])
            if rows:
                forget([row[key] for row in rows])
                say(log, "purged", what=key, number=len(rows))


def _is_over_time(batch: RowMapping) -> bool:
    return bool(datetime.now(UTC) >= batch["expires_at"])


STEPS: dict[str, Callable[[Runner, RowMapping], bool]] = {
    "validating": Runner.validate,
    "in_progress": Runner.work,
    "finalizing": Runner.write,
    "cancelling": Runner.end,
}
