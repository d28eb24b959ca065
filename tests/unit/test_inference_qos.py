"""Lanes that tenants own, and whose request an engine takes first."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Heat, LengthClass
from inference.lanes import BrokenLanes, Lane, load_lanes
from inference.profile import load_profiles
from inference.qos import engine_priority, open_lanes, own_first, owns_lane
from inference.route import Need, better_lane, route

PROFILES = load_profiles()
SOMEBODY_WAITS = Need(age_s=0, window_s=0)


def lane(name: str, *tenants: str, quality: int = 0) -> Lane:
    return Lane(name, "model", "stub", "none", 4096, tenants=tenants, quality=quality)


LANES: Mapping[str, Lane] = {
    one.name: one for one in (lane("shared"), lane("slice", "bank", quality=9), lane("other", "fund", quality=8))
}


def lane_of(tenant: str, profile: str = "risk-report", *, tokens: int = 300) -> str:
    chosen = own_first(PROFILES[profile], tenant, LANES)
    return route(tokens, 4096, SOMEBODY_WAITS, False, chosen, open_lanes(tenant, LANES)).lane


@given(
    st.sampled_from(["bank", "fund", "shop", "docmill-probe"]), st.sampled_from(list(PROFILES)), st.integers(0, 9000)
)
def test_nobodys_work_enters_a_lane_that_another_owns(tenant: str, profile: str, tokens: int) -> None:
    owners = LANES[lane_of(tenant, profile, tokens=tokens)].tenants
    assert not owners or tenant in owners


def test_a_guaranteed_tenants_own_lane_comes_first() -> None:
    assert [lane_of(tenant) for tenant in ("bank", "fund", "shop")] == ["slice", "other", "shared"]
    assert owns_lane("bank", LANES) and not owns_lane("shop", LANES)


def test_a_second_reading_does_not_go_to_a_lane_that_another_owns() -> None:
    read_on = [
        better_lane("shared", Heat.HOT, LengthClass.SHORT, PROFILES["risk-report"], open_lanes(tenant, LANES)).name
        for tenant in ("bank", "fund", "shop")
    ]
    assert read_on == ["slice", "other", "shared"]


def test_between_jobs_of_one_urgency_the_guaranteed_tenants_goes_first_and_never_before_a_more_urgent_one() -> None:
    order = [engine_priority(priority, guaranteed=who) for priority in range(4) for who in (True, False)]
    assert order == sorted(order) and len(set(order)) == len(order)


def test_a_mig_slice_is_a_device_of_a_lane(tmp_path: Path) -> None:
    (tmp_path / "lanes.yaml").write_text("""
- {name: shared, model: m, engine: stub, precision: none, context_tokens: 4096, devices: [0]}
- {name: slice, model: m, engine: stub, precision: none, context_tokens: 4096, devices: [MIG-7f3c], tenants: [bank]}
""")
    slice_ = load_lanes(tmp_path / "lanes.yaml")["slice"]
    assert (slice_.devices, slice_.tenants) == (("MIG-7f3c",), ("bank",))


def test_the_default_lane_is_everybodys(tmp_path: Path) -> None:
    (tmp_path / "lanes.yaml").write_text(
        "- {name: mine, model: m, engine: stub, precision: none, context_tokens: 4096, tenants: [bank]}"
    )
    with pytest.raises(BrokenLanes, match="mine is the first"):
        load_lanes(tmp_path / "lanes.yaml")
