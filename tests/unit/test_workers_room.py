"""Who works beside whom in one process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from workers.room import Room


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Worker(threading.Thread):
    """Enters, perhaps to be alone, and stays until told to go."""

    def __init__(self, room: Room, *, alone: bool = False) -> None:
        super().__init__(daemon=True)
        self.room, self.alone = room, alone
        self.entered, self.working, self.go = threading.Event(), threading.Event(), threading.Event()
        self.start()

    def run(self) -> None:
        with self.room.entered() as place:
            self.entered.set()
            if self.alone:
                place.be_alone()
            self.working.set()
            self.go.wait(20)
        self.working.clear()


def leave(*workers: Worker) -> None:
    for worker in workers:
        worker.go.set()
        worker.join(20)


def test_one_that_must_be_alone_waits_for_the_others_and_holds_up_the_next() -> None:
    room = Room()
    first, second = Worker(room), Worker(room)
    assert first.working.wait(20)
    assert second.working.wait(20)
    lonely = Worker(room, alone=True)
    assert lonely.entered.wait(20)
    until(lambda: not room.is_open)
    late = Worker(room)
    leave(first)
    assert not lonely.working.wait(0.05)
    leave(second)
    assert lonely.working.wait(20)
    assert not late.entered.is_set()
    leave(lonely)
    assert late.working.wait(20)
    leave(late)


def test_two_that_must_be_alone_take_turns() -> None:
    room = Room()
    first, second = Worker(room), Worker(room, alone=True)
    assert first.working.wait(20)
    assert second.entered.wait(20)
    until(lambda: not room.is_open)
    leave(first)
    assert second.working.wait(20)
    third = Worker(room, alone=True)
    assert not third.working.wait(0.05)
    leave(second)
    assert third.working.wait(20)
    leave(third)


def test_two_of_many_that_must_be_alone_do_not_wait_for_each_other() -> None:
    room = Room()
    both = [Worker(room, alone=True), Worker(room, alone=True)]
    for worker in both:
        worker.go.set()
        worker.join(20)
    assert not any(worker.is_alive() for worker in both)


def test_nobody_enters_a_closed_room() -> None:
    room = Room()
    room.close()
    late = Worker(room)
    assert not late.entered.wait(0.05)
