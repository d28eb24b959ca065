"""What probes tell Prometheus: percentiles of the last hour by class, and how all of them ended."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

from docmill.types import Heat, LengthClass
from workers.probes import ENDS
from workers.services import Services

#: A counter that appears with its first event has not grown in the eyes of Prometheus: all are there from the start.
_NOUGHT = {(heat.value, length.value, *end): 0 for heat in Heat for length in LengthClass for end in ENDS}


def probe_metrics(use: Services) -> Iterator[Metric]:
    """Nothing where no probes are sent."""
    if not use.settings.probe_every_s:
        return
    took = GaugeMetricFamily(
        "docmill_probe_seconds",
        "From end to end, of the probes of the last hour.",
        labels=["heat", "length", "quantile"],
    )
    for heat, length, *values in use.probes.percentiles():
        for quantile, seconds in zip(("0.5", "0.95", "0.99"), values, strict=True):
            took.add_metric([heat, length, quantile], seconds)
    ended = CounterMetricFamily("docmill_probes", "Probes that ended.", labels=["heat", "length", "outcome", "in_time"])
    counted = {(one.heat, one.length, one.outcome, one.in_time): one.probes for one in use.probes.counts()}
    for (heat, length, outcome, in_time), probes in (_NOUGHT | counted).items():
        ended.add_metric([heat, length, outcome, str(in_time).lower()], probes)
    oldest = GaugeMetricFamily(
        "docmill_probe_oldest_seconds",
        "For how long the oldest probe that somebody would wait for is under way.",
        value=use.probes.oldest_s(),
    )
    yield from (took, ended, oldest)
