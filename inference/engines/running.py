"""What every engine does around a request: stop it at its deadline, and stop it when it is cancelled by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from docmill.errors import DeadlineExceeded
from inference.engine import Request

T = TypeVar("T")


class Running:
    """The requests that are being decoded. `cancel` makes the awaiting caller see asyncio.CancelledError."""

    def __init__(self) -> None:
        self._tasks: dict[str, set[asyncio.Task[Any]]] = {}

    async def run(self, request: Request, decoding: Coroutine[Any, Any, T]) -> T:
        """Await the decoding as a task of its own, within the request's deadline."""
        task = asyncio.ensure_future(decoding)
        tasks = self._tasks.setdefault(request.request_id, set())
        tasks.add(task)
        try:
            async with asyncio.timeout(request.deadline_s):
                return await task
        except TimeoutError as error:
            raise DeadlineExceeded(
                f"request {request.request_id} had no answer within {request.deadline_s:g} s and was stopped;"
                " give it a longer deadline or a less busy lane"
            ) from error
        finally:
            tasks.discard(task)
            if not tasks:
                self._tasks.pop(request.request_id, None)

    def cancel(self, request_id: str) -> None:
        for task in tuple(self._tasks.get(request_id, ())):
            task.cancel()

    def __len__(self) -> int:
        return sum(map(len, self._tasks.values()))
