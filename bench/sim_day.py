"""A day's documents for the simulator: who sends what when, drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

HOUR_S = 3600.0
#: Begin and end of the two peaks, in hours of the day.
PEAKS = ((9.5, 11.5), (14.0, 15.0))


@dataclass(frozen=True, slots=True)
class Day:
    """The load. `scale` makes the day, its peaks and its windows shorter; rates stay, so the hardware stays too."""

    documents: int = 500_000
    backfill: int = 1_000_000
    #: Assumption: three fifths of a day's documents come in the three hours of the peaks.
    peak_share: float = 0.6
    #: 70 short to 30 long.
    short_share: float = 0.7
    #: Assumption: log-normal lengths in tokens; short ones around 450 (100 to 2,048), long ones around 4,000.
    short_median: float = 450.0
    long_median: float = 4000.0
    longest: float = 16_000.0
    #: Assumption: what a profile's JSON takes; the built-in profiles allow at most 320 tokens.
    output_median: float = 90.0
    output_most: float = 320.0
    #: Assumption: shares of the day's documents that somebody waits for, and of VIPs; the rest has four hours.
    waited_share: float = 0.6
    vip_share: float = 0.05
    window_s: float = 4 * HOUR_S
    #: Assumption: the backfill is handed in at once, at eight in the morning, and may take a day.
    backfill_at: float = 8.0
    backfill_window_s: float = 24 * HOUR_S
    tenants: tuple[str, ...] = ("a", "b", "c", "d", "e")
    scale: float = 96.0
    #: Factor on the documents that come within the peaks (a surge for the ladder).
    surge: float = 1.0
    seed: int = 1

    @property
    def seconds(self) -> float:
        return 24 * HOUR_S / self.scale

    def at(self, hour: float) -> float:
        """The second of the simulated day at which an hour of the real one begins."""
        return hour * HOUR_S / self.scale

    def is_peak(self, second: float) -> bool:
        return any(self.at(begin) <= second < self.at(end) for begin, end in PEAKS)


@dataclass(frozen=True, slots=True)
class Doc:
    """One document that arrives, parsed, to be read."""

    number: int
    at: float
    tenant: str
    vip: bool
    window_s: float
    tokens: int
    output: int


class _Sender(NamedTuple):
    """Who sends a document, and when it is wanted."""

    tenant: str
    vip: bool
    window_s: float


def arrivals(day: Day) -> Iterator[Doc]:
    """The day's documents by arrival: the backfill at once, the rest at random moments (Poisson)."""
    draw = random.Random(day.seed)
    moments = [(moment, False) for moment in _moments(day, draw)]
    moments += [(day.at(day.backfill_at), True)] * int(day.backfill / day.scale)
    for number, (moment, is_backfill) in enumerate(sorted(moments)):
        if is_backfill:
            sender = _Sender("backfill", False, day.backfill_window_s / day.scale)
        else:
            vip = draw.random() < day.vip_share
            window = 0.0 if draw.random() < day.waited_share else day.window_s / day.scale
            sender = _Sender(draw.choice(day.tenants), vip, window)
        yield _doc(number, moment, sender, day, draw)


def _moments(day: Day, draw: random.Random) -> Iterator[float]:
    in_peaks = int(day.documents / day.scale * day.peak_share * day.surge)
    hours = [end - begin for begin, end in PEAKS]
    for (begin, end), length in zip(PEAKS, hours, strict=True):
        for _ in range(round(in_peaks * length / sum(hours))):
            yield draw.uniform(day.at(begin), day.at(end))
    left = int(day.documents / day.scale * (1 - day.peak_share))
    while left:
        moment = draw.uniform(0, day.seconds)
        if not day.is_peak(moment):
            left -= 1
            yield moment


def _doc(number: int, at: float, sender: _Sender, day: Day, draw: random.Random) -> Doc:
    if draw.random() < day.short_share:
        tokens = min(2048.0, max(100.0, draw.lognormvariate(0, 0.7) * day.short_median))
    else:
        tokens = min(day.longest, max(2049.0, draw.lognormvariate(0, 0.5) * day.long_median))
    output = min(day.output_most, draw.lognormvariate(0, 0.35) * day.output_median)
    return Doc(number, at, sender.tenant, sender.vip, sender.window_s, int(tokens), max(8, int(output)))
