"""What carries a program's marks is ended with it, however far from its parent it has run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from workers.processes import PROGRAM_MARK, STACK_MARK, alive, end_marked, marked

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
