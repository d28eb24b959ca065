"""The one seam to a language model: submit a request, get a completion.

An implementation SHALL raise only `EngineUnavailable`, `EngineDead`, `DeadlineExceeded` and `PromptTooLong` of
`docmill.errors`, translated in one place; SHALL stop decoding when the awaiting task is cancelled; MAY be called from
many tasks of one event loop at once. `tests/conformance/test_engines.py` holds every implementation to this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt with its constraint.

    `priority`: 0 first. `deadline_s`: seconds from submission. `grammar` (Lark, guidance backend) or `json_schema`
    constrains decoding, at most one of the two. `cache_salt` keeps prefix caches of tenants apart.
    """

    request_id: str
    system: str
    user: str
    max_tokens: int
    priority: int = 2
    deadline_s: float = 120.0
    temperature: float = 0.0
    seed: int = 0
    grammar: str | None = None
    json_schema: dict[str, Any] | None = None
    cache_salt: str | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """What came back; times in milliseconds, as the engine itself measured them where it does."""

    text: str
    finish_reason: str
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    queue_ms: float
    prefill_ms: float
    decode_ms: float


@dataclass(frozen=True, slots=True)
class Health:
    """`ready` is true only after warm-up; `detail` says what is wrong in words; what is `dead` never comes back."""

    ready: bool
    detail: str = ""
    dead: bool = False


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an attempt records of the engine that ran it. `context_tokens` bounds prompt plus output."""

    build: str
    model: str
    precision: str
    context_tokens: int


class Engine(Protocol):
    """A language model behind any transport."""

    @property
    def info(self) -> EngineInfo: ...

    async def submit(self, request: Request) -> Completion:
        """Decode to the end. Raises the errors named in this module's docstring."""
        ...

    async def cancel(self, request_id: str) -> None:
        """Stop a request; unknown ids are ignored."""
        ...

    async def health(self) -> Health:
        """Whether the engine can take work now."""
        ...

    async def metrics(self) -> dict[str, float]:
        """Gauges: `running`, `waiting` (requests), `kv_cache_usage` (0 to 1), `prefix_cache_hit_rate` (0 to 1).

        And a counter, `preemptions`: requests thrown out for want of cache since the engine was started.
        """
        ...

    async def close(self) -> None:
        """Release the model and its processes."""
        ...
