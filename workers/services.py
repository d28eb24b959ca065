"""What the steps of the pipeline need, built once a process from the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from redis import Redis
from sqlalchemy import Engine as Database

from docmill.types import Route
from inference.degrade import LADDER, Ladder, load_ladder
from inference.engines.thread import EngineThread
from inference.lanes import Lane, default_lane, load_lanes
from inference.meter import Meter
from inference.profile import BUILT_IN, Profile, get, load_profiles
from inference.qos import open_lanes, own_first, owns_lane
from inference.route import Need, route
from ingest.accept import IngestConfig
from ingest.places import Layout
from preprocess.prepare import PrepareConfig
from storage.batch_lines import LineStore
from storage.batches import BatchStore
from storage.blobs import Blobs
from storage.control import ControlStore
from storage.database import connect
from storage.estimates import EstimateStore
from storage.files import FileStore
from storage.jobs import JobStore
from storage.parts import PartStore
from storage.ports import Stage
from storage.probes import ProbeStore
from storage.tenants import Quota
from storage.webhooks import WebhookStore
from validation.rules import Ruleset, load_rulesets
from workers.charging import cap_of
from workers.decoding import Decoding
from workers.engine_report import Watch
from workers.ladder import Fresh, Glance
from workers.lease import Leases
from workers.parts import UsualAnswers
from workers.policy import VERDICTS, VerdictPolicy, load_policy
from workers.publish import Publisher
from workers.quotas import Quotas
from workers.room import Room
from workers.settings import Settings, settings

if TYPE_CHECKING:
    from ingest.bucket import Bucket

#: The lane that runs where no lane file is given.
LAPTOP_LANE = "cpu"
#: How old the count of the backlog may be.
BACKLOG_S = 10.0
#: Of a tick's process the count takes no more than one part in this.
BACKLOG_REST = 50.0


@dataclass
class Services:
    """Everything that a step may use. Parts are made when first used, so a door needs no model."""

    settings: Settings
    engine: EngineThread | None = None
    #: Tokens of a profile's prompt beside the document.
    overheads: dict[str, int] = field(default_factory=dict)

    @cached_property
    def database(self) -> Database:
        return connect(self.settings.database_url)

    @cached_property
    def store(self) -> JobStore:
        return JobStore(self.database)

    @cached_property
    def blobs(self) -> Blobs:
        return Blobs.at(self.settings.blob_url)

    @cached_property
    def files(self) -> FileStore:
        return FileStore(self.database)

    @cached_property
    def batches(self) -> BatchStore:
        return BatchStore(self.database)

    @cached_property
    def lines(self) -> LineStore:
        return LineStore(self.database)

    @cached_property
    def estimates(self) -> EstimateStore:
        return EstimateStore(self.database)

    @cached_property
    def webhooks(self) -> WebhookStore:
        return WebhookStore(self.database)

    @cached_property
    def profiles(self) -> Mapping[str, Profile]:
        return load_profiles(self.settings.profiles or BUILT_IN)

    @cached_property
    def rulesets(self) -> Mapping[str, Ruleset]:
        return load_rulesets()

    @cached_property
    def policy(self) -> VerdictPolicy:
        return load_policy(self.settings.policy or VERDICTS)

    @cached_property
    def lanes(self) -> Mapping[str, Lane]:
        """The lanes of the settings' file; without one, the laptop's lane alone."""
        if self.settings.lanes is not None:
            return load_lanes(self.settings.lanes)
        laptop = load_lanes()[LAPTOP_LANE]
        return {LAPTOP_LANE: replace(laptop, model=str(self.settings.model))}

    @cached_property
    def leases(self) -> Leases:
        return Leases(self.store, self.settings.lease_s)

    @cached_property
    def room(self) -> Room:
        return Room()

    @cached_property
    def decoding(self) -> Decoding:
        return Decoding(self.leases)

    @cached_property
    def publisher(self) -> Publisher:
        return Publisher(self.store)

    @cached_property
    def control(self) -> ControlStore:
        return ControlStore(self.database)

    @cached_property
    def probes(self) -> ProbeStore:
        return ProbeStore(self.database)

    @cached_property
    def ladder(self) -> Ladder:
        return load_ladder(self.settings.ladder or LADDER)

    @cached_property
    def redis(self) -> Redis:
        """The broker's server, for what may be lost: reports, buckets, marks."""
        return Redis.from_url(self.settings.broker_url, socket_timeout=3, socket_connect_timeout=3)

    @cached_property
    def quotas(self) -> Quotas:
        given = self.settings
        usual = Quota(
            given.quota_requests_per_minute,
            given.quota_tokens_per_day,
            Decimal(str(given.quota_usd_per_day)),
            Decimal(str(given.quota_usd_per_month)),
        )
        return Quotas(self.database, given.broker_url, usual)

    @cached_property
    def bucket(self) -> Bucket:
        """The bucket that is the inbox; to be asked for only where it is one."""
        from ingest.bucket import Bucket  # boto3 is large, and a folder needs none of it

        return Bucket(self.settings.inbox)

    @cached_property
    def layout(self) -> Layout:
        """How keys of the bucket are read."""
        return Layout(self.settings.bucket_places, tuple(self.settings.bucket_moves.values()))

    @cached_property
    def glance(self) -> Glance:
        return Glance(self.control, self.ladder)

    @cached_property
    def backlog(self) -> Fresh[dict[str, list[tuple[float, int]]]]:
        """What waits by lane and deadline: to count a million jobs takes a while, and deadlines are hours away."""
        return Fresh(self.control.backlog, BACKLOG_S, rest=BACKLOG_REST)

    @cached_property
    def meter(self) -> Meter:
        """Of this process's engine."""
        return Meter()

    @cached_property
    def parts(self) -> PartStore:
        return PartStore(self.database)

    @cached_property
    def usual_answers(self) -> UsualAnswers:
        return UsualAnswers(self.parts)

    @cached_property
    def watch(self) -> Watch:
        return Watch()

    @property
    def worker(self) -> str:
        """Who claims: host and process."""
        return f"{os.uname().nodename}:{os.getpid()}"

    @property
    def ingest(self) -> IngestConfig:
        return IngestConfig(max_bytes=self.settings.max_bytes)

    @property
    def prepare(self) -> PrepareConfig:
        return PrepareConfig(
            tokenizer=self.tokenizer,
            max_pages=self.settings.max_pages,
            wall_seconds=self.settings.parse_wall_s,
            memory_bytes=self.settings.parse_memory_bytes,
            ocr=self.settings.ocr,
        )

    @property
    def tokenizer(self) -> Path:
        """The tokenizer by which documents are measured."""
        return self.settings.tokenizer or self.settings.model

    def lane(self, name: str) -> Lane:
        """The lane of this name; a job that was routed to a lane which is gone goes to the default."""
        return self.lanes.get(name) or default_lane(self.lanes)

    def route(
        self, tokens: int, profile_name: str, *, age_s: float, window_s: float, vip: bool, tenant: str = ""
    ) -> Route:
        """Where and how soon a document of this length is read, by the lanes that there are."""
        need = Need(age_s=age_s, window_s=window_s)
        longest = max(lane.context_tokens for lane in self.lanes.values())
        profile = get(self.profiles, profile_name)
        profile = replace(profile, lanes=self.glance.lanes(profile.lanes, self.lanes))
        profile, lanes = own_first(profile, tenant, self.lanes), open_lanes(tenant, self.lanes)
        tokens = min(tokens, profile.document_tokens or tokens)  # what is over a profile's budget is left out
        return route(tokens, longest, need, vip, profile, lanes, cap=cap_of(tenant, profile_name, self.settings))

    def guaranteed(self, tenant: str) -> bool:
        """Whether the tenant's requests pass those of others on a shared engine."""
        return tenant in self.settings.guaranteed_tenants or owns_lane(tenant, self.lanes)

    def vip(self, tenant: str) -> bool:
        return tenant in self.settings.vip_tenants

    def send(self, job_id: str, stage: Stage, route: Route | None, *, hot: bool, marked: bool = False) -> None:
        """Give a job's next message to the broker now; it may be marked as published already."""
        self.publisher.publish(job_id, stage, route, hot=hot, marked=marked)


_made: dict[int, Services] = {}


def services() -> Services:
    """The services of this process; a forked child makes its own (connections must not cross a fork)."""
    if os.getpid() not in _made:
        _made[os.getpid()] = Services(settings())
    return _made[os.getpid()]
