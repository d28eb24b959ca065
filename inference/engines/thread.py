"""An engine on a thread and an event loop of its own, for callers that are threads themselves.

Celery's threads share one engine, so that its batching sees every waiting request; a loop per call would break it,
because an engine's futures belong to the loop that it was opened on.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from docmill.errors import DeadlineExceeded, EngineUnavailable
from inference.engine import Completion, Engine, Health, Request

T = TypeVar("T")
#: An engine answers or fails within its request's deadline; this much longer, and its loop itself hangs.
GRACE_S = 5.0


class EngineThread:
    """One engine, opened by `open_engine` on this thread's loop. Every method may be called from any thread."""

    def __init__(self, open_engine: Callable[[], Awaitable[Engine]]) -> None:
        self._open = open_engine
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="engine", daemon=True)
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise EngineUnavailable("the engine is not started; call start() first")
        return self._engine

    def start(self, timeout_s: float = 300.0) -> Engine:
        """Open the engine and return it."""
        self._thread.start()
        self._engine = self.wait(self.begin(self._opened), timeout_s)
        return self._engine

    def submit(self, request: Request) -> Completion:
        """One request, waited for."""
        return self.call(lambda engine: engine.submit(request), request.deadline_s + GRACE_S)

    def health(self, timeout_s: float = 10.0) -> Health:
        return self.call(lambda engine: engine.health(), timeout_s)

    def call(self, work: Callable[[Engine], Coroutine[Any, Any, T]], timeout_s: float) -> T:
        """Run `work(engine)` on the engine's loop and wait for it; after `timeout_s` it is cancelled."""
        engine = self.engine
        return self.wait(self.begin(lambda: work(engine)), timeout_s)

    def begin(self, work: Callable[[], Coroutine[Any, Any, T]]) -> concurrent.futures.Future[T]:
        """Start `work()` on the loop; cancelling the future stops what it does."""
        return asyncio.run_coroutine_threadsafe(work(), self._loop)

    def close(self, timeout_s: float = 60.0) -> None:
        """Close the engine and end the thread. A second call does nothing."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            try:
                if self._engine is not None:
                    self.wait(self.begin(self._engine.close), timeout_s)
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(timeout_s)
        self._loop.close()

    def wait(self, future: concurrent.futures.Future[T], timeout_s: float) -> T:
        """What was begun, or its error; concurrent.futures.CancelledError if somebody cancelled it."""
        try:
            return future.result(timeout_s)
        except concurrent.futures.TimeoutError as error:
            if not future.cancel() and future.done():
                raise  # the work itself timed out, and said so
            raise DeadlineExceeded(f"no answer from the engine's loop within {timeout_s:g} s; cancelled") from error

    async def _opened(self) -> Engine:
        return await self._open()
