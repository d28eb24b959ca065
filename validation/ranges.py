"""Ranges as they are printed: 5%-8%, 3至5亿元, 1,000 to 2,000, between 5 and 8."""

from __future__ import annotations

import re
from dataclasses import replace

from validation.numbers import Number, parse_number, unhedged
from validation.text import half

_TO = re.compile(r"\s?(?:-|~|至|到|\bto\b|\band\b)\s?", re.IGNORECASE)


def parse_range(text: str) -> tuple[Number, Number] | None:
    """The ends of a range (5%-8%, 3至5亿元, 1,000 to 2,000); the first has the scale and unit of the second."""
    plain = unhedged(half(text).strip().removeprefix("between "))
    for dash in _TO.finditer(plain):
        low, high = parse_number(plain[: dash.start()]), parse_number(plain[dash.end() :])
        if low and high:
            bare = low.scale is None and low.unit in (None, high.unit)
            scaled = replace(low, value=low.value * (high.scale or 1), scale=high.scale) if bare else low
            return replace(scaled, unit=scaled.unit or high.unit), high
    return None
