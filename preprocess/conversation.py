"""Whether text reads like a conversation: most of its lines are turns of a few speakers who come again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: Fewer turns may be a form ("Name: …, Date: …").
FEWEST_TURNS: Final = 4
#: The share of lines that are turns; a long turn has lines of its own.
SHARE: Final = 0.5
#: Speakers come again: a form names each of its fields once.
TURNS_A_SPEAKER: Final = 2

_DAY: Final = r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}日?"
_CLOCK: Final = rf"\[?(?:{_DAY}[ T]?)?\d{{1,2}}[:：]\d{{2}}(?:[:：]\d{{2}})?(?:\s?[AaPp][Mm])?\]?"
_SPEAKER: Final = r"(?P<speaker>[^\W\d_][^:：\n]{0,30}?)"
_TURN: Final = re.compile(rf"\s*(?:{_CLOCK}\s*[-–—]?\s*)?{_SPEAKER}\s*(?:{_CLOCK})?\s*[:：]\s*\S")


def is_conversation(texts: Sequence[str]) -> bool:
    """Whether the lines of these texts are turns of a conversation."""
    lines = [line for text in texts for line in text.splitlines() if line.strip()]
    speakers = [found["speaker"].strip().casefold() for line in lines if (found := _TURN.match(line))]
    return (
        len(speakers) >= FEWEST_TURNS
        and len(speakers) >= SHARE * len(lines)
        and len(speakers) >= TURNS_A_SPEAKER * len(set(speakers)) >= 2 * TURNS_A_SPEAKER
    )
