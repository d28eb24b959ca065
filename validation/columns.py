"""The period that the head of a column speaks of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from validation.dates import scan_dates
from validation.periods import scan_periods
from validation.text import half

_YEAR = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})(?![0-9])")
#: Without one of these a head names no period.
_HINT = re.compile("[0-9]{2}|[期年月]|year|period|quarter|half", re.IGNORECASE)
_CURRENT = re.compile(
    r"本[期年月]|本报告期|期末|年末|\bcurrent (?:year|period|quarter)\b|\bthis (?:year|quarter)\b", re.IGNORECASE
)
_PRIOR = re.compile(
    r"上[期年月]|上年同期|去年|期初|年初|\b(?:prior|previous|last) (?:year|period|quarter)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Heading:
    """Days, quarters and halves (as first days with length) and years that a head names."""

    days: frozenset[date] = frozenset()
    spans: frozenset[tuple[date, date]] = frozenset()
    years: frozenset[int] = frozenset()

    def meets(self, wanted: Heading) -> bool:
        """Whether a column with this head is one of the period that is wanted; the finest that both name decides."""
        if wanted.days and self.days:
            return bool(self.days & wanted.days)
        if wanted.spans and self.spans:
            return bool(self.spans & wanted.spans)
        return bool(self.years & wanted.years)


def heading_of(text: str, anchor: Callable[[], date | None] | None = None) -> Heading | None:
    """What a head says of its period; 本期 and "prior year" are seen from the document's date. None for no period."""
    plain = half(text)
    if not _HINT.search(plain):
        return None
    dates = list(scan_dates(plain))
    days = frozenset(day for dated in dates for day in dated.readings[:1])
    months = {dated.period for dated in dates if dated.period}
    spans = frozenset((one.first, one.last) for one in months | {found for *_, found in scan_periods(plain)})
    whole = frozenset(span for span in spans if (span[1] - span[0]).days < 360)
    years = {int(year) for year in _YEAR.findall(plain)} | {day.year for day in days} | {span[0].year for span in spans}
    shift = 0 if _CURRENT.search(plain) else -1 if _PRIOR.search(plain) else None
    own = anchor() if anchor and not years and shift is not None else None
    if own is not None and shift is not None:
        years = {own.year + shift}
    return Heading(days, whole, frozenset(years)) if years else None
