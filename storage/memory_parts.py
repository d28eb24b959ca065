"""The store of parts in memory, beside the store of jobs in memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from docmill.types import LengthClass
from storage.memory import MemoryJobStore
from storage.parts import LAST, SHARE, Usual
from storage.ports import Claim


@dataclass
class MemoryParts:
    """`parts.Parts` in memory. What was kept for a job is forgotten when the job no longer waits to be read."""

    store: MemoryJobStore
    _kept: dict[str, dict[str, bytes]] = field(default_factory=lambda: defaultdict(dict))

    def keep_part(self, claim: Claim, key: str, answer: bytes) -> None:
        self.store.held(claim)
        self._kept[claim.job_id][key] = answer

    def kept_parts(self, claim: Claim) -> dict[str, bytes]:
        if self.store.jobs[claim.job_id].extraction is not None:
            self._kept.pop(claim.job_id, None)
        return dict(self._kept[claim.job_id])

    def usual_answer(self, profile: str, version: str, length: LengthClass) -> Usual:
        read = [
            job.extraction.longest_output
            for job in self.store.jobs.values()
            if job.extraction is not None
            and job.extraction.longest_output
            and job.route is not None
            and (job.order.profile, job.order.profile_version, job.route.length_class) == (profile, version, length)
        ][-LAST:]
        at = max(0, -(-len(read) * int(100 * SHARE) // 100) - 1)
        return Usual(len(read), sorted(read)[at] if read else 0)
