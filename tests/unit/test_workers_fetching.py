"""When a consumer is taken for one that no longer fetches."""

from __future__ import annotations

from typing import Any

from workers.fetching import LOOK_EVERY_S, Watchdog


def stalls_after(seconds: float, **changes: Any) -> bool:
    """Looks at a consumer that does not change for so long."""
    seen: dict[str, Any] = {"fetched": 7, "has_room": True, "waiting": 3, **changes}
    watchdog, now, stalled = Watchdog(limit_s=60), 1000.0, False
    for _ in range(int(seconds / LOOK_EVERY_S) + 2):
        stalled = watchdog.stalls(now=now, **seen)
        now += LOOK_EVERY_S
    return stalled


def test_one_that_takes_nothing_though_it_could_has_stalled() -> None:
    assert stalls_after(62)
    assert not stalls_after(50)


def test_one_whose_slots_are_full_or_whose_queues_are_empty_has_not() -> None:
    assert not stalls_after(3600, has_room=False)
    assert not stalls_after(3600, waiting=0)


def test_one_that_was_idle_for_long_has_its_time_once_messages_come() -> None:
    watchdog = Watchdog(limit_s=60)
    times = [1000.0 + LOOK_EVERY_S * number for number in range(100)]
    assert not any(watchdog.stalls(fetched=7, has_room=True, waiting=0, now=now) for now in times)
    assert not watchdog.stalls(fetched=7, has_room=True, waiting=1, now=times[-1] + LOOK_EVERY_S)


def test_one_that_fetches_has_not_stalled() -> None:
    watchdog = Watchdog(limit_s=60)
    times = [1000.0 + LOOK_EVERY_S * number for number in range(100)]
    assert not any(watchdog.stalls(fetched=int(now // 50), has_room=True, waiting=9, now=now) for now in times)


def test_a_process_that_was_frozen_itself_counts_anew() -> None:
    watchdog = Watchdog(limit_s=60)
    for now in (1000.0, 1002.0):
        assert not watchdog.stalls(fetched=7, has_room=True, waiting=9, now=now)
    assert not watchdog.stalls(fetched=7, has_room=True, waiting=9, now=5000.0)
