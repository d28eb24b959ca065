"""Starting, watching and ending the processes of one machine.

A worker that is killed may leave children: vLLM's engine core outlives its parent and keeps its memory. Every process
that we start, and so every descendant, carries two marks in its environment; what carries the marks of a program that
ended is ended before the program starts again.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from docmill.log import logger, say
from workers.settings import child_environment

log = logger("processes")

STACK_MARK = "DOCMILL_STACK"
PROGRAM_MARK = "DOCMILL_PROGRAM"

#: A program that ends at once must not be started in a tight loop.
RESTART_PAUSE_S = 1.0


@dataclass(frozen=True, slots=True)
class Program:
    """A process to keep running: `docmill ARGUMENTS`; `grace_s` bounds its warm shutdown."""

    name: str
    arguments: tuple[str, ...]
    grace_s: float = 10.0
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Running:
    """A started program."""

    program: Program
    process: subprocess.Popen[bytes]
    started: float


class Supervisor:
    """Keeps programs running until told to stop; ends leftovers of each before starting it again."""

    def __init__(self, stack: str, logs: Path) -> None:
        self._stack = stack
        self._logs = logs
        self._running: dict[str, Running] = {}
        self.restarts: dict[str, int] = {}

    def start(self, program: Program) -> None:
        """Start one program in a process group of its own, its output in a log file of its own."""
        end_marked(self._stack, program.name)
        self._logs.mkdir(parents=True, exist_ok=True)
        # SPT_NOENV: Celery and vLLM set process titles with setproctitle, which else writes over the marks.
        marks = {STACK_MARK: self._stack, PROGRAM_MARK: program.name, "SPT_NOENV": "1"}
        with (self._logs / f"{program.name}.log").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "workers.cli", *program.arguments],
                env=child_environment(**program.environment, **marks),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._running[program.name] = Running(program, process, time.monotonic())
        say(log, "started", program=program.name, pid=process.pid)

    def revive(self) -> None:
        """Start again what has ended."""
        for name, running in list(self._running.items()):
            status = running.process.poll()
            if status is not None and time.monotonic() - running.started > RESTART_PAUSE_S:
                say(log, "ended", level=logging.WARNING, program=name, status=status)
                self.restarts[name] = self.restarts.get(name, 0) + 1
                self.start(running.program)

    def pids(self) -> dict[str, int]:
        """The leader of each program."""
        return {name: running.process.pid for name, running in self._running.items()}

    def stop(self) -> None:
        """Warm shutdown of all, then the end of whatever is left of them."""
        for running in self._running.values():
            if running.process.poll() is None:
                running.process.send_signal(signal.SIGTERM)
        for running in self._running.values():
            _wait(running)
        end_marked(self._stack)
        self._running.clear()


def _wait(running: Running) -> None:
    try:
        running.process.wait(timeout=running.program.grace_s)
    except subprocess.TimeoutExpired:
        say(log, "overdue", level=logging.WARNING, program=running.program.name)


def marked(stack: str, program: str | None = None) -> Iterator[psutil.Process]:
    """Live processes that carry the marks."""
    for process in psutil.process_iter():
        try:
            environment = process.environ()
        except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
            continue
        if environment.get(STACK_MARK) == stack and program in (None, environment.get(PROGRAM_MARK)):
            yield process


def end_marked(stack: str, program: str | None = None) -> int:
    """SIGKILL to every process with the marks but this one; their number."""
    leftovers = [process for process in marked(stack, program) if process.pid != os.getpid()]
    for process in leftovers:
        say(log, "leftover_ended", level=logging.WARNING, program=program, pid=process.pid)
        _kill(process)
    psutil.wait_procs(leftovers, timeout=10)
    return len(leftovers)


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        say(log, "already_gone", level=logging.DEBUG, pid=process.pid)


def alive(pids: Iterable[int]) -> Sequence[int]:
    """Which of the pids are running (a zombie is not)."""
    return [pid for pid in pids if psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE]
