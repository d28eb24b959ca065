"""Quality of service: which lanes are open to a tenant, and whose request an engine takes first.

A guaranteed tenant may own lanes (`tenants` of a lane): nobody else's work enters those, and its own goes there first.
All others are burstable: they share what is not owned, where a guaranteed tenant's request passes one of the same kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from inference.lanes import Lane
from inference.profile import Profile


def is_open(owners: tuple[str, ...], tenant: str) -> bool:
    """Whether a tenant's work may enter a lane with these owners; one without owners is everybody's."""
    return not owners or tenant in owners


def owns_lane(tenant: str, lanes: Mapping[str, Lane]) -> bool:
    """Whether a tenant is guaranteed by a lane of its own."""
    return any(tenant in lane.tenants for lane in lanes.values())


def open_lanes(tenant: str, lanes: Mapping[str, Lane]) -> dict[str, Lane]:
    """The lanes that a tenant's work may enter, in their order; the default lane is among them, and stays the first."""
    return {name: lane for name, lane in lanes.items() if is_open(lane.tenants, tenant)}


def own_first(profile: Profile, tenant: str, lanes: Mapping[str, Lane]) -> Profile:
    """The profile with the tenant's own lanes before all that it names: what is paid for is used first."""
    own = [name for name, lane in lanes.items() if tenant in lane.tenants]
    return replace(profile, lanes=tuple(dict.fromkeys((*own, *profile.lanes)))) if own else profile


def engine_priority(priority: int, *, guaranteed: bool) -> int:
    """vLLM's priority, lower first: a job's own decides, and between equals the guaranteed tenant goes first."""
    return 2 * priority + (0 if guaranteed else 1)
