"""What a heading looks like: larger, or bold, or numbered like a chapter; short, and no sentence."""

from __future__ import annotations

import re
from typing import Final

_LONGEST: Final = 90
_NUMBERED: Final = re.compile(
    r"^(第\s*[一二三四五六七八九十百零\d]+\s*[章节篇部]|[一二三四五六七八九十]+、|[（(][一二三四五六七八九十]+[)）]"
    r"|(chapter|section|part|item|note|article)\s+[\divx]+\b|\d{1,2}(\.\d{1,2}){1,3}\s+\S)",
    re.IGNORECASE,
)
_SENTENCE_END: Final = "。；;，,：:、"
_NUMERIC: Final = re.compile(r"^[\d\s.,%()（）$¥€£/+-]+$")


def is_heading(text: str, *, rows: int, size: float, bold: bool, body_size: float) -> bool:
    """Whether a block of text is a heading, in a document whose running text has `body_size`."""
    if rows > 2 or len(text) > _LONGEST or not text.strip() or _NUMERIC.match(text) or text[-1] in _SENTENCE_END:
        return False
    if "\n" in text and rows > 1 and size < 1.12 * body_size:
        return False
    if size >= 1.12 * body_size:
        return True
    ends = text.endswith(".") and len(text) > 40
    return not ends and (bold or (rows == 1 and len(text) <= 50 and bool(_NUMBERED.match(text))))
