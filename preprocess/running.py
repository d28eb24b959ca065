"""One running parser process, seen from the process that started it: ask it, watch it, end it with all it started.

subprocess, not multiprocessing: a Celery prefork worker is a daemonic process, which may have no such children.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from select import select
from typing import IO, TYPE_CHECKING, Final

import msgspec

from docmill.errors import ParserCrashed
from docmill.types import MissingPage
from preprocess import frames
from preprocess.frames import Turn

if TYPE_CHECKING:
    from preprocess.prepare import PrepareConfig

#: The parsers' import takes about two seconds, more on a busy machine.
START_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.1
_CHUNK: Final = 1 << 20
#: All that a process which reads strangers' files may know of ours: no passwords. Each thread reserves address space.
_ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "LANG": "C.UTF-8"}
#: A child that dies near its memory limit died of it: a failed allocation in C++ ends in abort.
_NEAR_LIMIT: Final = 0.9
#: A child that has grown to this share of its limit is replaced before the next document, which needs room too.
_GROWN: Final = 0.7
_MEMORY_SIGNALS: Final = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

OnPage = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Task:
    """A document to read, within what is left of its limits, without the pages that ended a child before."""

    document_id: str
    config: PrepareConfig
    left_out: tuple[MissingPage, ...] = ()


class Overrun(Exception):
    """The answer did not come in time."""


class Gone(Exception):
    """The child ended instead of answering."""


class Child:
    """One running parser process."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self.served = 0
        self.peak_bytes = 0
        self.size_bytes = 0
        self.turn = Turn(0, 0, 0.0)
        self._stderr: IO[bytes] = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "preprocess.child", str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env=_ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(sys.path)},
            cwd=Path(__file__).resolve().parent.parent,
            start_new_session=True,
        )
        try:
            self._await(time.monotonic() + START_SECONDS)
        except (Overrun, Gone) as error:
            raise ParserCrashed(
                f"the parser process did not start in {START_SECONDS:g} s within memory_bytes={memory_bytes} "
                f"({self.end()}); give it more, or free the machine"
            ) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, data: bytes, task: Task, on_page: OnPage | None = None) -> tuple[bytes, bytes]:
        """The child's answer to one document: a frame."""
        self.served += 1
        self.turn = Turn(0, 0, 0.0)
        stdin = self._process.stdin
        if stdin is None:
            raise Gone
        asked = (task.document_id, task.config, task.left_out)
        try:
            frames.send(stdin, frames.CONFIG, msgspec.msgpack.encode(asked, enc_hook=str))
            frames.send(stdin, frames.DATA, data)
        except OSError as error:
            raise Gone from error
        return self._answer(time.monotonic() + task.config.wall_seconds, on_page)

    def _answer(self, deadline: float, on_page: OnPage | None) -> tuple[bytes, bytes]:
        """The first frame that is no news of a page."""
        while (frame := self._await(deadline))[0] == frames.PAGE:
            self.turn = msgspec.msgpack.decode(frame[1], type=Turn)
            if on_page is not None and self.turn.page:
                on_page(self.turn.page, self.turn.of)
        return frame

    def _await(self, deadline: float) -> tuple[bytes, bytes]:
        kind, length = frames.head(self._read(frames.HEAD_BYTES, deadline))
        return kind, self._read(length, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        stdout = self._process.stdout
        parts: list[bytes] = []
        while count and stdout is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Overrun
            self._measure()
            if not select([stdout], [], [], min(left, _LOOK_SECONDS))[0]:
                continue
            part = os.read(stdout.fileno(), min(count, _CHUNK))
            if not part:
                raise Gone
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _measure(self) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[0])
            self.size_bytes = pages * _PAGE_BYTES
            self.peak_bytes = max(self.peak_bytes, self.size_bytes)

    def end(self) -> str:
        """Kill the process and all that it started; says how it ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=0.5 if self._process.poll() is None else 0)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()
        self.close_files()
        return self._last_words()

    def can_serve(self, config: PrepareConfig) -> bool:
        """Whether the process lives, has documents left to serve, the right memory limit, and room below it."""
        fits = self.served < config.child_documents and self.memory_bytes == config.memory_bytes
        return fits and self.size_bytes < _GROWN * self.memory_bytes and self._process.poll() is None

    @property
    def out_of_memory(self) -> bool:
        """Whether the process, which has ended, died of its memory limit."""
        near = self.peak_bytes >= _NEAR_LIMIT * self.memory_bytes
        return self.returncode == frames.OUT_OF_MEMORY_EXIT or (near and -self.returncode in _MEMORY_SIGNALS)

    @property
    def returncode(self) -> int:
        return self._process.returncode or 0

    def _last_words(self) -> str:
        code = self.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        with contextlib.suppress(OSError, ValueError):
            self._stderr.seek(0)
            lines = self._stderr.read()[-4000:].decode(errors="replace").strip().splitlines()
            self._stderr.close()
            return f"{how}; {lines[-1]}" if lines else how
        return how

    def retire(self) -> None:
        """Let the process end by itself: it stops at the end of its stdin."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()
        self.end()

    def abandon(self) -> None:
        """After a fork: the process is the parent's; close our copies of its pipes and never wait for it."""
        self.close_files()
        self._stderr.close()
        self._process.returncode = 0

    def close_files(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
