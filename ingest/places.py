"""Which tenant and profile an object of a bucket belongs to, by its key; and which keys are none of ours to read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ingest.folder import key_of

#: What we write beside an original; a listing and an event pass over it.
RECEIPT: Final = ".docmill.json"
_PLACE: Final = "<tenant>/<profile>/…/<file>"


@dataclass(frozen=True, slots=True)
class Listed:
    """An object as a listing shows it; `key` is relative to the inbox."""

    key: str
    etag: str
    size: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object belongs. `reason` says why it cannot be read; tenant and profile are then those it claims."""

    tenant: str
    profile: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Layout:
    """How keys are read. `prefixes` map the start of a key to `tenant/profile`, the longest first; others hold both
    in their first two parts. `passed_over`: starts of keys that hold no input, as those to which originals are moved.
    """

    prefixes: Mapping[str, str]
    passed_over: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for prefix, place in self.prefixes.items():
            if len([part for part in place.split("/") if part]) != 2:
                raise ValueError(f"the place of {prefix!r} is {place!r}: write it as TENANT/PROFILE")

    def ours(self, key: str) -> bool:
        """Whether the key is that of an input: no folder's mark, no receipt, nothing that was moved away."""
        return not key.endswith(("/", RECEIPT)) and not key.startswith(self.passed_over)

    def place_of(self, key: str) -> Place:
        """The tenant and profile of an input."""
        start = max((prefix for prefix in self.prefixes if key.startswith(prefix)), key=len, default=None)
        if start is not None:
            tenant, profile = self.prefixes[start].split("/")
            return Place(tenant, profile)
        parts = [key_of(part) for part in key.split("/")]
        if len(parts) < 3:
            return Place("", "", f"the key has {len(parts)} parts: the bucket holds {_PLACE}, or map its prefix")
        tenant, profile = parts[0], parts[1]
        if "" in (tenant, profile) or {tenant, profile} & {".", ".."}:
            return Place("", "", f"the key has no tenant or no profile: the bucket holds {_PLACE}")
        return Place(tenant, profile)
