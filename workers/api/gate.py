"""The gate before every route: who calls is known, and what they send is bounded, before a byte of it is kept."""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from dataclasses import dataclass

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from docmill.errors import DocmillError
from workers.api.callers import SAFE, Caller, admit, record_refusal
from workers.api.problems import answer_to, problem
from workers.services import Services

#: Ids of callers that we take over; any other is replaced.
REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
#: A body that carries no file.
PLAIN_MAX_BYTES = 16 * 1024 * 1024
#: What the envelope of a form may take besides the file.
FORM_BYTES = 64 * 1024
FORM = "multipart/form-data"
#: Refusals that come before the body is over.
UNHEARD = (401, 403, 408, 413, 429)


@dataclass(frozen=True, slots=True)
class Gate:
    """ASGI middleware. Paths below `/v1` need a caller; every answer has an `x-request-id`."""

    app: ASGIApp
    use: Services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        request.state.request_id = _request_id(request)
        answered = Answered(send, request.state.request_id, sends_more=request.method not in SAFE)
        if _has_nul(request):
            await problem(400, "bad_request", "a NUL character has no place here")(scope, receive, answered)
            return
        try:
            caller = await self._admitted(request)
        except DocmillError as refusal:
            await answer_to(refusal)(scope, receive, answered)
            return
        body = Body(receive, self._most(request), self.use.settings.upload_s, self.use.settings.upload_idle_s)
        try:
            await self.app(scope, body, answered)
        finally:
            if caller is not None and answered.status >= 400:
                await run_in_threadpool(record_refusal, request, caller, answered.status, self.use)

    async def _admitted(self, request: Request) -> Caller | None:
        if not request.url.path.startswith("/v1"):
            return None
        return await run_in_threadpool(admit, request, self.use)

    def _most(self, request: Request) -> int:
        """The largest body of this call."""
        if not request.headers.get("content-type", "").startswith(FORM):
            return PLAIN_MAX_BYTES
        document = request.url.path == "/v1/documents"
        return (self.use.settings.max_bytes if document else self.use.settings.upload_max_bytes) + FORM_BYTES


class Body:
    """The body of a request as it arrives: at most `most` bytes in `all_s` seconds, `idle_s` between two pieces."""

    def __init__(self, receive: Receive, most: int, all_s: float, idle_s: float) -> None:
        self._receive, self._most, self._idle_s = receive, most, idle_s
        self._until = time.monotonic() + all_s
        self._bytes, self._whole = 0, False

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        message = await self._within_time()
        self._bytes += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._bytes > self._most:
            raise HTTPException(413, f"the body has more than {self._most:,} bytes: split it or have the limit raised")
        return message

    async def _within_time(self) -> Message:
        wait_s = min(self._idle_s, self._until - time.monotonic())
        try:
            return await asyncio.wait_for(self._receive(), max(wait_s, 0.0))
        except TimeoutError as late:
            raise HTTPException(408, f"no more of the body came within {wait_s:.0f} s: send it faster") from late


class Answered:
    """Sends the answer with its `x-request-id`, and remembers the status: 500 until there is one.

    The connection of a refused call is closed: what is still on its way is not to be listened to.
    """

    def __init__(self, send: Send, request_id: str, *, sends_more: bool) -> None:
        self._send, self._request_id, self._sends_more = send, request_id, sends_more
        self.status = 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = self._request_id
            if self._sends_more and self.status in UNHEARD:
                headers["connection"] = "close"
        await self._send(message)


def _request_id(request: Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else f"req_{secrets.token_hex(12)}"


def _has_nul(request: Request) -> bool:
    """PostgreSQL stores no NUL, so no name or id has one: such a call means harm or is broken."""
    return "\0" in request.url.path or b"%00" in request.scope["query_string"]
