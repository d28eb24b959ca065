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

#: A program that lived this long had started well: its end is not one of a loop.
HEALTHY_S = 30.0
#: Pauses before an early death is followed by the next start: none, then 1, 2, 4 ... s, at most this.
LONGEST_PAUSE_S = 30.0
#: A program that ended by itself so often in a row, each time early, is not started again.
GIVES_UP_AFTER = 10
#: Bytes of a log that stand in the reason.
LAST_WORDS = 300
#: The file beside the logs that says which, and why.
GIVEN_UP = "given-up"
#: From outside: somebody killed it, or the kernel for want of memory. It is started again for ever.
KILLED = frozenset({-signal.SIGKILL, -signal.SIGTERM})


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
    loop: Loop
    starts_again: float | None = None


@dataclass(frozen=True, slots=True)
class Loop:
    """How often a program has died early in a row, and how often of these by itself."""

    deaths: int = 0
    of_itself: int = 0

    def after(self, *, lived_s: float, status: int) -> Loop:
        """The count after one more death."""
        if lived_s >= HEALTHY_S:
            return Loop()
        return Loop(self.deaths + 1, self.of_itself + (status not in KILLED))

    @property
    def pause_s(self) -> float:
        """How long to wait before the next start."""
        return min(2.0 ** (self.deaths - 2), LONGEST_PAUSE_S) if self.deaths > 1 else 0.0

    @property
    def is_hopeless(self) -> bool:
        """Whether the next start would end as the last ones did."""
        return self.of_itself >= GIVES_UP_AFTER


class Supervisor:
    """Keeps programs running until told to stop; ends leftovers of each before starting it again."""

    def __init__(self, stack: str, logs: Path) -> None:
        self._stack = stack
        self._logs = logs
        self._running: dict[str, Running] = {}
        #: Programs that are not started again, and why.
        self.given_up: dict[str, str] = {}
        (logs / GIVEN_UP).unlink(missing_ok=True)

    def start(self, program: Program, loop: Loop = Loop()) -> None:
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
        self._running[program.name] = Running(program, process, time.monotonic(), loop)
        say(log, "started", program=program.name, pid=process.pid)

    def revive(self) -> None:
        """Start again what has ended: at once, with growing pauses if it ends early, and never if that is hopeless."""
        for running in list(self._running.values()):
            status, now = running.process.poll(), time.monotonic()
            if status is None:
                continue
            if running.starts_again is None:
                self._note_end(running, status, now)
            elif now >= running.starts_again and not running.loop.is_hopeless:
                self.start(running.program, running.loop)

    def _note_end(self, running: Running, status: int, now: float) -> None:
        name, lived_s = running.program.name, now - running.started
        running.loop = running.loop.after(lived_s=lived_s, status=status)
        running.starts_again = now + running.loop.pause_s
        say(log, "ended", level=logging.WARNING, program=name, status=status, pause_s=running.loop.pause_s)
        if running.loop.is_hopeless:
            self._give_up(name, status)

    def _give_up(self, name: str, status: int) -> None:
        self.given_up[name] = (
            f"{name} ended {GIVES_UP_AFTER} times in a row within {HEALTHY_S:g} s of its start, at last with status"
            f" {status} ({self._last_words(name)}): mend that, then `docmill down` and `docmill up`"
        )
        (self._logs / GIVEN_UP).write_text("\n".join(self.given_up.values()))
        say(log, "given_up", level=logging.ERROR, program=name, why=self.given_up[name])

    def _last_words(self, name: str) -> str:
        with (self._logs / f"{name}.log").open("rb") as log_file:
            log_file.seek(max(0, log_file.seek(0, os.SEEK_END) - LAST_WORDS))
            words = log_file.read().decode(errors="replace").split()
        return " ".join(words) or "it said nothing"

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
