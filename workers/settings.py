"""The one place that reads the environment: `DOCMILL_…` variables and `.env`.

Each part of the system is a URL; where one is empty, `docmill up` starts the embedded part and passes its URL on.
"""

from __future__ import annotations

import os
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """Every setting, its default and its meaning; `.env.example` lists them and a test compares."""

    model_config = SettingsConfigDict(env_prefix="DOCMILL_", env_file=".env", extra="ignore", frozen=True)

    home: Path = Field(default=Path(".docmill"), description="Folder of the embedded stack: data, logs, sockets.")
    broker_url: str = Field(default="", description="redis://… ; empty: an embedded Valkey.")
    database_url: str = Field(default="", description="postgresql+psycopg://… ; empty: an embedded PostgreSQL.")
    blob_url: str = Field(default="", description="file:///… or s3://bucket/prefix ; empty: a folder under home.")
    inbox: Annotated[str, BeforeValidator(str)] = Field(
        default="inbox",
        description="Folder that is watched, or s3://bucket/prefix: <inbox>/<tenant>/<profile>/NAME.pdf.",
    )
    bucket_places: dict[str, str] = Field(
        default={}, description='Starts of keys in the bucket by tenant and profile: {"scans/": "acme/risk-report"}.'
    )
    bucket_list_every_s: float = Field(
        default=60.0, description="Pause between two listings of the bucket; events need not wait for one."
    )
    bucket_receipts: bool = Field(
        default=False, description="Write KEY.docmill.json beside each object of the bucket that was taken."
    )
    bucket_moves: dict[str, str] = Field(
        default={}, description='Where originals are moved by their end: {"done": "done/", "refused": "refused/"}.'
    )
    bucket_tags: bool = Field(default=False, description="Tag originals in the bucket by their end: docmill=done.")
    profiles: Path | None = Field(default=None, description="Folder of profile YAML files; empty: the built-in ones.")
    lanes: Path | None = Field(default=None, description="Lane YAML file; empty: the built-in laptop lane.")
    policy: Path | None = Field(
        default=None, description="YAML file of what follows a verdict; empty: the built-in workers/policy.yaml."
    )
    ladder: Path | None = Field(
        default=None, description="YAML file of the degradation ladder; empty: the built-in inference/ladder.yaml."
    )
    lane: str = Field(default="", description="The lane that this GPU worker serves; empty: the first of the file.")
    model: Path = Field(default=Path(".models/smollm2"), description="Model folder of the built-in laptop lane.")
    tokenizer: Path | None = Field(
        default=None, description="Folder with the tokenizer.json of the model; empty: `model`."
    )

    api_host: str = Field(default="127.0.0.1", description="Address that the API listens on.")
    api_port: int = Field(default=8765, description="Port of the API.")
    metrics_port: int = Field(default=0, description="Port of a worker's Prometheus metrics; 0: none.")
    require_api_key: bool = Field(default=False, description="Refuse calls without a key; else they act for `tenant`.")
    tenant: str = Field(default="default", description="Tenant of the command line and of calls without a key.")
    quota_requests_per_minute: int = Field(
        default=0, ge=0, description="Calls and files a minute of a tenant that has no quota of its own; 0: no limit."
    )
    quota_tokens_per_day: int = Field(
        default=0, ge=0, description="Tokens a day (UTC) of a tenant that has no quota of its own; 0: no limit."
    )
    quota_usd_per_day: float = Field(
        default=0.0, ge=0, description="US dollars a day of a tenant that has no quota of its own; 0: no limit."
    )
    quota_usd_per_month: float = Field(
        default=0.0, ge=0, description="US dollars a month of a tenant that has no quota of its own; 0: no limit."
    )
    upload_max_bytes: int = Field(
        default=512 * 1024 * 1024, description="Largest body of an API call that carries files, in bytes."
    )
    upload_s: float = Field(
        default=600.0, description="Longest time that the body of an API call may take, in seconds."
    )
    upload_idle_s: float = Field(
        default=30.0, description="Longest pause in the body of an API call, in seconds; then the call is ended."
    )
    call_cap_usd: Decimal = Field(
        default=Decimal("0.003"), gt=0, description="US dollars that one call of a model may cost; docs/costs.md."
    )
    call_caps_usd: dict[str, Decimal] = Field(
        default={}, description='The cap of a call by tenant or profile, where it is another: {"acme": "0.001"}.'
    )
    call_targets_usd: dict[str, Decimal] = Field(
        default={"short": Decimal("0.0015"), "medium": Decimal("0.0022"), "long": Decimal("0.0028")},
        description="What a call should cost by length class, before a cheaper lane is taken for it.",
    )
    vip_tenants: tuple[str, ...] = Field(default=(), description="Tenants whose work is always hot (a JSON list).")

    guaranteed_tenants: tuple[str, ...] = Field(
        default=(),
        description="Tenants whose requests pass those of the same urgency on a shared engine (a JSON list).",
    )
    tenant_weights: dict[str, float] = Field(
        default={}, description='Shares of warm and cold work by tenant, 1 where none is given: {"acme": 2}.'
    )
    tenant_rates: dict[str, float] = Field(
        default={}, description='Warm and cold jobs a second that a tenant may have read: {"acme": 5}.'
    )

    probe_every_s: float = Field(
        default=0.0, ge=0, description="Send a known document at least this often (docs/probes.md); 0: no probes."
    )
    probe_share: float = Field(default=0.01, ge=0, le=1, description="Probes, as a share of the documents that come.")
    probe_in_time_s: dict[str, float] = Field(
        default={"hot": 2.0, "warm": 400.0, "cold": 86400.0},
        description="Seconds from end to end within which a probe is in time, by its heat.",
    )

    max_bytes: int = Field(default=200 * 1024 * 1024, description="Largest file that is accepted, in bytes.")
    max_pages: int = Field(default=2000, description="Longest document that is accepted, in pages.")
    parse_wall_s: float = Field(default=120.0, description="Wall-clock limit of one parse, in seconds.")
    parse_memory_bytes: int = Field(
        default=4 * 1024**3, description="Address-space limit of the parser's child process."
    )
    ocr: bool = Field(default=True, description="Read pages without a text layer by OCR.")
    batch_max_lines: int = Field(default=100_000, description="Most requests of one batch.")
    file_max_bytes: int = Field(default=512 * 1024 * 1024, description="Largest file of the files API, in bytes.")
    batch_file_max_bytes: int = Field(
        default=200 * 1024 * 1024, description="Largest JSONL file of a batch's requests, in bytes."
    )
    webhook_hosts: tuple[str, ...] = Field(
        default=(),
        description="Hosts and networks inside that webhooks may call all the same, also by http (a JSON list).",
    )
    settle_s: float = Field(
        default=2.0, description="A file in the inbox is taken once it has not changed for this long."
    )

    parse_concurrency: int = Field(default=1, description="Parser processes of a parse worker.")
    validate_concurrency: int = Field(default=1, description="Processes of a validate worker.")
    lease_s: float = Field(default=30.0, description="A claim not renewed for this long is taken back.")
    republish_after_s: float = Field(default=60.0, description="A message not claimed for this long is presumed lost.")
    stalled_s: float = Field(
        default=60.0,
        description="A worker with a free slot that fetches nothing for so long while messages wait ends itself.",
    )
    tick_s: float = Field(default=1.0, description="Interval of dispatch, sweep and inbox scan.")
    max_lost: int = Field(default=3, description="Lost attempts after which a job is poison.")
    reserve: float = Field(default=0.25, description="Share of a lane's slots that warm and cold work may not take.")
    drain_s: float = Field(
        default=20.0, description="A GPU worker told to end reads on for this long, and hands back what is not read."
    )
    infer_deadline_s: float = Field(default=300.0, description="Longest time of one model call.")
    omp_threads_bind: str = Field(default="nobind", description="VLLM_CPU_OMP_THREADS_BIND of the laptop lane.")
    kv_cache_gib: int = Field(default=2, description="VLLM_CPU_KVCACHE_SPACE of the laptop lane, in GiB.")
    log_level: str = Field(default="INFO", description="Level of docmill's own log lines.")

    @property
    def inbox_folder(self) -> Path | None:
        """The inbox, if it is a folder."""
        return None if self.inbox.startswith("s3://") else Path(self.inbox)


@lru_cache(maxsize=1)
def settings() -> Settings:
    """The settings of this process, read once."""
    return Settings()


def child_environment(**extra: str) -> dict[str, str]:
    """This process's environment with additions, for the processes that we start."""
    return {**os.environ, **extra}


def export(variables: dict[str, str]) -> None:
    """Set variables that a library reads from the environment (vLLM's), unless an operator has set them."""
    for name, value in variables.items():
        os.environ.setdefault(name, value)
