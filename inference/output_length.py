"""How long an answer will probably be, so that one that goes wrong is stopped soon and room is kept for the rest.

The answers of a profile to documents of one length class are alike. What most of them needed and a fifth more is given;
an answer that needs still more is asked for once again with twice the room (`inference/reading.py`).
"""

from __future__ import annotations

import math
from typing import Final

from inference.profile import Profile

#: The room beyond what 95 of 100 answers needed.
HEADROOM: Final = 1.2
#: The 95th percentile of fewer answers is chance; until then an answer has all the room of its profile.
ENOUGH: Final = 20


def predicted(readings: int, p95_tokens: int, profile: Profile) -> int:
    """The tokens to give to the next answer, within the profile's limits."""
    if readings < ENOUGH:
        return profile.max_output_tokens
    wanted = math.ceil(p95_tokens * HEADROOM)
    return min(profile.max_output_tokens, max(profile.min_output_tokens, wanted))
