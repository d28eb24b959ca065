"""What every engine does around a request: stop it at its deadline or when it is cancelled, refuse half an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from docmill.errors import DeadlineExceeded, EngineUnavailable
from inference.engine import Completion, Request

T = TypeVar("T")

#: vLLM's word for an answer that it broke off, as it does when it shuts down.
_BROKEN_OFF = "abort"


def whole(completion: Completion, request: Request) -> Completion:
    """The completion, unless the engine broke it off: half an answer is the engine's fault, not the model's."""
    if completion.finish_reason == _BROKEN_OFF:
        raise EngineUnavailable(
            f"request {request.request_id}: the engine broke it off after {completion.output_tokens} tokens;"
            " it may be shutting down: try again"
        )
    return completion


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
