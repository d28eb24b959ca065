"""The calling process's parser child: kept between documents, replaced when it must be, never shared over a fork.

A page that ends the child is left out of the next try, so that one bad page costs that page only.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING, Final

import msgspec

from docmill import errors
from docmill.errors import InputError
from docmill.types import PreparedDocument
from preprocess import frames
from preprocess.blame import next_try
from preprocess.running import Child, Gone, OnPage, Overrun, Task

if TYPE_CHECKING:
    from preprocess.prepare import PrepareConfig

_BY_CODE: Final = {
    kind.code: kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, InputError)
}

_child: Child | None = None
_lock = threading.Lock()


def start_child(config: PrepareConfig) -> None:
    """Have a child ready before the first document needs it: its start takes seconds."""
    with _lock:
        _ready_child(config)


def ask_child(data: bytes, document_id: str, config: PrepareConfig, on_page: OnPage | None = None) -> PreparedDocument:
    """Parse in the child of this process; one document at a time."""
    with _lock:
        answer: tuple[bytes, bytes] | Task = Task(document_id, config)
        while isinstance(answer, Task):
            answer = _try(data, answer, config, on_page)
    kind, payload = answer
    if kind == frames.ERROR:
        code, message = msgspec.msgpack.decode(payload, type=tuple[str, str])
        raise _BY_CODE[code](message)
    return msgspec.msgpack.decode(payload, type=PreparedDocument)


def _try(data: bytes, task: Task, limits: PrepareConfig, on_page: OnPage | None) -> tuple[bytes, bytes] | Task:
    """The child's answer, or what to ask the next child after this one ended."""
    global _child
    child = _ready_child(limits)
    start = time.monotonic()
    try:
        return child.ask(data, task, on_page)
    except (Overrun, Gone) as stop:
        _child = None
        took = time.monotonic() - start
        return next_try(task, limits, child, stop, took)


def _ready_child(config: PrepareConfig) -> Child:
    """The running child, or a new one if there is none, if it served its number, or if its limit is another."""
    global _child
    child = _child
    if child is not None and not child.can_serve(config):
        _child = None
        child.retire()
    if _child is None:
        _child = Child(config.memory_bytes)
    return _child


def child_pid() -> int | None:
    """The running child's process id, for those who watch its memory."""
    child = _child
    return None if child is None else child.pid


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
