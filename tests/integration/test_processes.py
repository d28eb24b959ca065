"""What carries a program's marks is ended with it, however far from its parent it has run."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from workers import processes
from workers.processes import (
    GIVEN_UP,
    HEALTHY_S,
    LONGEST_PAUSE_S,
    PROGRAM_MARK,
    STACK_MARK,
    Loop,
    Program,
    Supervisor,
    alive,
    end_marked,
    marked,
)

GRANDCHILD = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
time.sleep(60)
"""


def test_a_child_in_another_session_is_found_by_its_marks(tmp_path: Path) -> None:
    stack = str(tmp_path)
    leader = subprocess.Popen([sys.executable, "-c", GRANDCHILD], env={STACK_MARK: stack, PROGRAM_MARK: "gpu"})
    try:
        deadline = time.monotonic() + 10
        while len(list(marked(stack, "gpu"))) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        family = [process.pid for process in marked(stack, "gpu")]
        leader.kill()
        leader.wait()
        assert alive(family), "the grandchild outlives its parent, as vLLM's engine core does"
        assert list(marked(stack, "parse")) == []
        end_marked(stack, "gpu")
        assert not alive(family)
    finally:
        end_marked(stack)
        leader.wait()


def test_other_stacks_are_left_alone(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], env={STACK_MARK: "other"})
    try:
        assert end_marked(str(tmp_path)) == 0
        assert alive([other.pid])
    finally:
        other.kill()
        other.wait()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_program_that_ends_at_once_is_given_up_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "LONGEST_PAUSE_S", 0.0)
    monkeypatch.setattr(processes, "GIVES_UP_AFTER", 2)
    supervisor = Supervisor(str(tmp_path), tmp_path)
    supervisor.start(Program("typo", ("worker", "no-such-kind")))

    def given_up() -> bool:
        supervisor.revive()
        return "typo" in supervisor.given_up

    until(given_up)
    assert "no worker 'no-such-kind'" in supervisor.given_up["typo"], "the reason has the program's last words"
    assert (tmp_path / GIVEN_UP).read_text() == supervisor.given_up["typo"]
    pid = supervisor.pids()["typo"]
    supervisor.revive()
    assert supervisor.pids()["typo"] == pid
    supervisor.stop()


def test_a_program_that_is_killed_is_started_for_ever_with_growing_pauses() -> None:
    loop = Loop()
    pauses = []
    for _ in range(20):
        loop = loop.after(lived_s=1.0, status=-signal.SIGKILL)
        pauses.append(loop.pause_s)
    assert not loop.is_hopeless
    assert pauses[:4] == [0.0, 1.0, 2.0, 4.0]
    assert max(pauses) == LONGEST_PAUSE_S
    assert loop.after(lived_s=HEALTHY_S, status=1) == Loop(), "one that had started well may start at once"
