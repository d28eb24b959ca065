"""Prometheus gauges of dispatch and ladder, read when they are scraped: whoever moves them may be another process."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from prometheus_client import Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from inference.degrade import names
from workers.engine_report import Report, reports
from workers.ladder import state_of
from workers.probe_metrics import probe_metrics
from workers.services import Services

#: Fields of a report that are gauges.
_OF_ENGINES = {
    "kv_cache_usage": "Share of an engine's cache in use.",
    "running": "Requests that an engine reads.",
    "waiting": "Requests that wait in an engine.",
    "requests_per_second": "Jobs read a second, last minute.",
}


class ControlGauges(Collector):
    """The ladder's steps, what engines last told, the backlog, and holds."""

    def __init__(self, use: Services) -> None:
        self._use = use

    def collect(self) -> Iterator[Metric]:
        yield from self._ladder()
        yield from self._engines()
        yield from self._waiting()
        yield from probe_metrics(self._use)

    def _ladder(self) -> Iterator[Metric]:
        ladder, state = self._use.ladder, state_of(self._use.control.ladder())
        yield GaugeMetricFamily("docmill_ladder_steps", "Steps of the degradation ladder in force.", value=state.taken)
        taken = names(ladder, state)
        step = GaugeMetricFamily("docmill_ladder_step", "Whether a step of the ladder is in force.", labels=["step"])
        for rung in ladder:
            step.add_metric([rung.name], float(rung.name in taken))
        yield step

    def _engines(self) -> Iterator[Metric]:
        told = self._told()
        for name, text in _OF_ENGINES.items():
            gauge = GaugeMetricFamily(f"docmill_engine_{name}", text, labels=["lane", "worker"])
            for report in told:
                gauge.add_metric([report.lane, report.worker], float(getattr(report, name)))
            yield gauge
        yield from _prompts(told)

    def _told(self) -> list[Report]:
        try:
            return reports(self._use.redis)
        except RedisError:
            return []  # a scrape without engines is better than none

    def _waiting(self) -> Iterator[Metric]:
        gauge = GaugeMetricFamily("docmill_backlog_jobs", "Cold jobs that wait to be released.", labels=["lane"])
        for lane, due in self._use.backlog.value().items():
            gauge.add_metric([lane], float(sum(jobs for _, jobs in due)))
        yield gauge
        held = self._use.control.held()
        yield GaugeMetricFamily("docmill_holds", "Tenants, lanes and batches that are held.", value=len(held))


def _prompts(told: Sequence[Report]) -> Iterator[Metric]:
    """How much of their prompts the profiles share, as far as the prefix caches of a lane's engines held it."""
    seen = CounterMetricFamily("docmill_prompt_tokens", "Tokens of prompts.", labels=["lane", "profile", "worker"])
    held = CounterMetricFamily(
        "docmill_cached_prompt_tokens", "Of these, held by the prefix cache.", labels=["lane", "profile", "worker"]
    )
    sums: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for report in told:
        for profile, (tokens, cached) in report.prompts.items():
            seen.add_metric([report.lane, profile, report.worker], tokens)
            held.add_metric([report.lane, profile, report.worker], cached)
            sums[report.lane, profile][0] += tokens
            sums[report.lane, profile][1] += cached
    rate = GaugeMetricFamily(
        "docmill_prefix_cache_hit_rate",
        "Share of prompt tokens held by the prefix cache.",
        labels=["lane", "profile"],
    )
    for (lane, profile), (tokens, cached) in sums.items():
        rate.add_metric([lane, profile], cached / tokens if tokens else 0.0)
    yield from (seen, held, rate)
