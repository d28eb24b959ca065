"""The parser's child process: `python -m preprocess.child MEMORY_BYTES`, driven by frames on stdin and stdout.

It limits itself before it loads a parser, answers every document with a result or a typed error, and ends with its
parent: at the end of stdin, or by its own alarm if the parent is gone in the middle of a document.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import resource
import signal
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import msgspec

from docmill.errors import InputError
from docmill.types import MissingPage
from preprocess import frames
from preprocess.frames import Turn
from preprocess.lazy_layout import leave_layout_for_later
from preprocess.overrun import bell

if TYPE_CHECKING:
    from preprocess.prepare import PrepareConfig

_M_ARENA_MAX: Final = -8
_GRACE_SECONDS: Final = 5
#: Share of a document's wall time after which its reader is told to give up the page and finish with what it has.
_BELL_AT: Final = 0.8
#: A page that does not hear the bell is ended with its process at this multiple of its CPU time.
_KILLED_AT: Final = 1.25
_LARGEST_FILE: Final = 64 * 1024**2


def main() -> None:
    requests, answers = _take_pipes()
    _limit_process(int(sys.argv[1]))
    try:
        _serve(requests, answers)
    except MemoryError:
        os._exit(frames.OUT_OF_MEMORY_EXIT)  # nothing more can be relied on, not even a tidy end


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Answer one document after the other until the parent closes the pipe."""
    leave_layout_for_later()
    from preprocess.parse import parse
    from preprocess.prepare import PrepareConfig

    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    frames.send(answers, frames.READY)
    while (asked := frames.receive(requests)) is not None:
        document_id, config, left_out = msgspec.msgpack.decode(
            asked[1], type=tuple[str, PrepareConfig, tuple[MissingPage, ...]], dec_hook=_path
        )
        limits = _Limits(config)
        sent = frames.receive(requests)
        if sent is None:
            return

        def begin(page: int, of: int, limits: _Limits = limits) -> None:
            turn = limits.begin(page, of)
            frames.send(answers, frames.PAGE, msgspec.msgpack.encode(turn))

        try:
            answer = frames.RESULT, msgspec.msgpack.encode(parse(sent[1], document_id, config, left_out, begin))
        except InputError as error:
            answer = frames.ERROR, msgspec.msgpack.encode((error.code, str(error)))
        limits.end()
        frames.send(answers, *answer)
        del sent, answer


def _path(kind: type, value: str) -> Path:
    return Path(value)


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """stdin and stdout for frames only: what a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, answers


def _limit_process(memory_bytes: int) -> None:
    """Bounds for the whole life of the child, set before the parsers load."""
    ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
    for number in (signal.SIGXCPU, signal.SIGALRM, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LARGEST_FILE, _LARGEST_FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Limits:
    """CPU and wall bounds for the next document: a bell for its reader, then the kernel's signal, even in a C loop."""

    def __init__(self, config: PrepareConfig) -> None:
        self._config = config
        self._start = _cpu_seconds()
        self._end = self._start + config.cpu_seconds
        self._stop_at(self._start + config.page_cpu_seconds)
        signal.signal(signal.SIGPROF, self._on_cpu)
        signal.signal(signal.SIGALRM, self._on_wall)
        signal.setitimer(signal.ITIMER_REAL, _BELL_AT * config.wall_seconds)

    def begin(self, page: int, of: int) -> Turn:
        """A page has its own bound within the document's; what follows the last page (0) has the rest."""
        now, bound = _cpu_seconds(), self._config.page_cpu_seconds
        signal.setitimer(signal.ITIMER_PROF, bound if page else 0)
        self._stop_at(now + _KILLED_AT * bound if page else self._end)
        return Turn(page, of, now - self._start)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _stop_at(self, seconds: float) -> None:
        soft = math.ceil(min(seconds, self._end))
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))

    def _on_cpu(self, number: int, frame: object) -> None:
        bell.ring(f"used over {self._config.page_cpu_seconds:g} s of CPU; raise page_cpu_seconds")

    def _on_wall(self, number: int, frame: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, (1 - _BELL_AT) * self._config.wall_seconds + _GRACE_SECONDS)
        bell.ring("no time was left to read all of it; split the file or raise wall_seconds")


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
