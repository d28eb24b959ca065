"""The calling process's side of its parser child: start it, ask it, and kill its whole group when it overruns.

One child for each calling process, kept between documents. subprocess, not multiprocessing: a Celery prefork worker
is a daemonic process and may not have multiprocessing children. A child that was started before a fork belongs to the
parent alone.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from select import select
from typing import IO, TYPE_CHECKING, Final

import msgspec

from docmill import errors
from docmill.errors import InputError, ParserCrashed, ParserLimit
from docmill.types import PreparedDocument
from preprocess import frames

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
_MEMORY_SIGNALS: Final = frozenset({signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS})
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_BY_CODE: Final = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InputError)
}


class _Overrun(Exception):
    """The answer did not come in time."""


class _Gone(Exception):
    """The child ended instead of answering."""


class _Child:
    """One running parser process."""

    def __init__(self, memory_bytes: int) -> None:
        self.memory_bytes = memory_bytes
        self.served = 0
        self.peak_bytes = 0
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
        except (_Overrun, _Gone) as error:
            raise ParserCrashed(
                f"the parser process did not start in {START_SECONDS:g} s within memory_bytes={memory_bytes} "
                f"({self.end()}); give it more, or free the machine"
            ) from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, data: bytes, document_id: str, config: PrepareConfig) -> tuple[bytes, bytes]:
        """The child's answer to one document: a frame."""
        self.served += 1
        stdin = self._process.stdin
        if stdin is None:
            raise _Gone
        try:
            frames.send(stdin, frames.CONFIG, msgspec.msgpack.encode((document_id, config), enc_hook=str))
            frames.send(stdin, frames.DATA, data)
        except OSError as error:
            raise _Gone from error
        return self._await(time.monotonic() + config.wall_seconds)

    def _await(self, deadline: float) -> tuple[bytes, bytes]:
        kind, length = frames.head(self._read(frames.HEAD_BYTES, deadline))
        return kind, self._read(length, deadline)

    def _read(self, count: int, deadline: float) -> bytes:
        stdout = self._process.stdout
        parts: list[bytes] = []
        while count and stdout is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise _Overrun
            self._measure()
            if not select([stdout], [], [], min(left, _LOOK_SECONDS))[0]:
                continue
            part = os.read(stdout.fileno(), min(count, _CHUNK))
            if not part:
                raise _Gone
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _measure(self) -> None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[0])
            self.peak_bytes = max(self.peak_bytes, pages * _PAGE_BYTES)

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
        """Whether the process lives, has documents left to serve, and the right memory limit."""
        fits = self.served < config.child_documents and self.memory_bytes == config.memory_bytes
        return fits and self._process.poll() is None

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


_child: _Child | None = None
_lock = threading.Lock()


def start_child(config: PrepareConfig) -> None:
    """Have a child ready before the first document needs it: its start takes seconds."""
    with _lock:
        _ready_child(config)


def ask_child(data: bytes, document_id: str, config: PrepareConfig) -> PreparedDocument:
    """Parse in the child of this process; one document at a time."""
    global _child
    with _lock:
        child = _ready_child(config)
        try:
            kind, payload = child.ask(data, document_id, config)
        except (_Overrun, _Gone) as stop:
            _child = None
            raise _explain(child, stop, config) from stop
    if kind == frames.ERROR:
        code, message = msgspec.msgpack.decode(payload, type=tuple[str, str])
        raise _BY_CODE[code](message)
    return msgspec.msgpack.decode(payload, type=PreparedDocument)


def _ready_child(config: PrepareConfig) -> _Child:
    """The running child, or a new one if there is none, if it served its number, or if its limit is another."""
    global _child
    child = _child
    if child is not None and not child.can_serve(config):
        _child = None
        child.retire()
    if _child is None:
        _child = _Child(config.memory_bytes)
    return _child


def _explain(child: _Child, stop: Exception, config: PrepareConfig) -> Exception:
    """Why no answer came: a limit that the file ran into, or a crash."""
    if isinstance(stop, _Overrun):
        child.end()
        limit = f"{config.wall_seconds:g} s"
        return ParserLimit(f"parsing took over {limit} and was stopped; split the file or raise wall_seconds")
    words = child.end()
    if child.returncode in (-signal.SIGXCPU, -signal.SIGALRM):
        return ParserLimit(
            f"parsing used over {config.cpu_seconds:g} s of CPU and was stopped; split the file or raise cpu_seconds"
        )
    near = child.peak_bytes >= _NEAR_LIMIT * config.memory_bytes
    if child.returncode == frames.OUT_OF_MEMORY_EXIT or (near and -child.returncode in _MEMORY_SIGNALS):
        return _memory_limit(config)
    return ParserCrashed(f"the parser process ended without an answer ({words}); it is tried again in a new process")


def _memory_limit(config: PrepareConfig) -> ParserLimit:
    return ParserLimit(
        f"parsing needed over {config.memory_bytes // 1024**2} MiB of memory and was stopped; "
        "split the file or raise memory_bytes"
    )


def stop_child() -> None:
    """End this process's child, if it has one; the next document starts another."""
    global _child
    with _lock:
        child, _child = _child, None
    if child is not None:
        child.retire()


def _forget_after_fork() -> None:
    global _child, _lock
    _lock = threading.Lock()
    child, _child = _child, None
    if child is not None:
        child.abandon()


os.register_at_fork(after_in_child=_forget_after_fork)
atexit.register(stop_child)
