"""Errors as answers: every DocmillError becomes a problem document with the right status."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from docmill.errors import (
    BadCorrection,
    Conflict,
    DocmillError,
    InputError,
    NotFound,
    RequestError,
    SystemFault,
    TooLarge,
)
from docmill.log import logger, say
from workers.api.models import Problem

log = logger("api")

#: The first class that matches decides.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFound, 404),
    (Conflict, 409),
    (BadCorrection, 422),
    (TooLarge, 413),
    (InputError, 422),
    (RequestError, 400),
    (SystemFault, 503),
    (DocmillError, 500),
)


class Unauthorised(RequestError):
    """No key, or one that is not valid."""

    code = "unauthorised"


def problem(status: int, code: str, detail: str) -> JSONResponse:
    """A problem document (RFC 9457)."""
    body = Problem(title=code.replace("_", " "), status=status, detail=detail, code=code)
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return JSONResponse(body.model_dump(), status, headers, media_type="application/problem+json")


def answer_errors(api: FastAPI) -> None:
    """Install the handlers."""

    @api.exception_handler(DocmillError)
    async def ours(request: Request, error: DocmillError) -> JSONResponse:
        status = 401 if isinstance(error, Unauthorised) else next(s for kind, s in STATUS if isinstance(error, kind))
        return problem(status, error.code, str(error))

    @api.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        say(log, "unforeseen", level=logging.ERROR, path=request.url.path, why=repr(error))
        return problem(500, "internal_error", "an error that nobody foresaw; the log of the API has it")
