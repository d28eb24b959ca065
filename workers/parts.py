"""What a reading may know of earlier ones: answers that were kept, and how long answers usually are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from docmill.log import logger, say
from docmill.types import LengthClass, Route
from inference.output_length import predicted
from inference.profile import Profile
from storage.parts import Parts, Usual
from storage.ports import Claim
from workers.ladder import Fresh

log = logger("parts")

#: How old the usual length of answers may be.
USUAL_S: Final = 30.0


@dataclass
class KeptAnswers:
    """`inference.reading.Kept` for one claim. What earlier attempts have kept is read when the first part asks."""

    claim: Claim
    store: Parts

    @cached_property
    def _before(self) -> Mapping[str, bytes]:
        """The first attempt at reading a job finds nothing, so the database is asked only after one that failed."""
        again = self.claim.retries or self.claim.rejections or self.claim.attempt > _FIRST_READING
        found = self.store.kept_parts(self.claim) if again else {}
        if found:
            say(log, "kept", job_id=self.claim.job_id, attempt=self.claim.attempt, parts=len(found))
        return found

    def load(self) -> KeptAnswers:
        """Read now what was kept, on the thread of the caller: `get` is asked on the engine's loop."""
        _ = self._before
        return self

    def get(self, key: str) -> bytes | None:
        return self._before.get(key)

    def keep(self, key: str, answer: bytes) -> None:
        self.store.keep_part(self.claim, key, answer)


#: Parsing is a job's first attempt, its first reading the second.
_FIRST_READING: Final = 2


class UsualAnswers:
    """How long answers usually are, asked for each profile and length class no more often than every half minute."""

    def __init__(self, store: Parts) -> None:
        self._store = store
        self._known: dict[tuple[str, str, LengthClass], Fresh[Usual]] = {}

    def max_tokens(self, profile: Profile, route: Route) -> int:
        """The room that the next answer gets."""
        key = (profile.name, profile.version, route.length_class)
        usual = self._known.setdefault(key, Fresh(lambda: self._store.usual_answer(*key), USUAL_S)).value()
        return predicted(usual.readings, usual.tokens, profile)
