"""A worker of the product with meters in it: CPU time of each task by what it was spent on.

`python -m bench.pipeline_worker parse|gpu|validate`, started by `bench.pipeline`. It takes the product's own tasks, and
two more: `bench.noop` does nothing, `bench.dump` writes the meters to a file and sets them to nought.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, Final

import storage.finish
import storage.near_duplicates
from storage.blobs import Blobs
from storage.control import ControlStore
from storage.jobs import JobStore
from workers import pipeline, tasks
from workers.celery_app import app
from workers.run import worker
from workers.services import services

#: What a step's own code is: what no other meter claims.
PURE: Final = "pure code"
_STORE: Final = (
    "claim",
    "finish_parse",
    "finish_infer",
    "finish_validate",
    "repeated_reading",
    "extraction",
    "reserve",
)

_local = threading.local()
_lock = threading.Lock()
_spent: defaultdict[str, float] = defaultdict(float)


def metered(category: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, its own CPU time added to the category; what it calls that is metered too counts there."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        stack = _local.__dict__.setdefault("stack", [])
        stack.append(0.0)
        began = time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            took, inner = time.thread_time() - began, stack.pop()
            with _lock:
                _spent[category] += took - inner
            if stack:
                stack[-1] += took

    return run


def install() -> None:
    """Put meters around what the steps call, and add the bench's own tasks."""
    for name in (*_STORE, "mark_published"):
        setattr(JobStore, name, metered(f"SQL {name}", getattr(JobStore, name)))
    for name in ("ladder", "mark"):
        setattr(ControlStore, name, metered("SQL other", getattr(ControlStore, name)))
    for name in ("get", "put", "exists"):
        setattr(Blobs, name, metered("blobs", getattr(Blobs, name)))
    for module in (pipeline, storage.finish, storage.near_duplicates):
        for name in ("pack", "unpack"):
            if hasattr(module, name):
                setattr(module, name, metered("codec", getattr(module, name)))
    app.send_task = metered("publish", app.send_task)
    tasks.run = metered(PURE, pipeline.run)  # type: ignore[attr-defined]  # the name that the tasks call
    app.task(name="bench.noop")(noop)
    app.task(name="bench.dump")(dump)


def noop() -> None:
    """What Celery itself costs."""


def dump(path: str) -> None:
    """Write what was spent since the last dump."""
    with _lock:
        spent = dict(_spent)
        _spent.clear()
    engine = services().engine
    if engine is not None:
        spent["engine thread"] = engine.call(_thread_time, 10)
    half = Path(f"{path}.half")
    half.write_text(json.dumps(spent))
    half.replace(path)


async def _thread_time(engine: object) -> float:
    return time.thread_time()


if __name__ == "__main__":
    install()
    worker(sys.argv[1])
