"""Errors as answers: every DocmillError becomes a problem document with the right status."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import DataError, DBAPIError
from starlette.exceptions import HTTPException

from docmill.errors import (
    BadCorrection,
    Conflict,
    DocmillError,
    InputError,
    NotFound,
    QuotaExceeded,
    RateLimited,
    RequestError,
    SystemFault,
    TooLarge,
)
from docmill.log import logger, say
from storage.api_keys import without_keys
from storage.database import told
from workers.api.models import OpenAIError, Problem

log = logger("api")


class Unauthorised(RequestError):
    """No key, or one that is not valid."""

    code = "unauthorised"


class Forbidden(RequestError):
    """A key that was not made for this."""

    code = "forbidden"


#: The first class that matches decides.
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (Unauthorised, 401),
    (Forbidden, 403),
    (QuotaExceeded, 429),
    (NotFound, 404),
    (Conflict, 409),
    (BadCorrection, 422),
    (TooLarge, 413),
    (InputError, 422),
    (RequestError, 400),
    (SystemFault, 503),
    (DocmillError, 500),
)


#: A part that is away is back soon, as a rule.
RETRY_AFTER_S = 2

#: Our word where that of HTTP is another.
CODES = {404: "not_found", 413: "too_large"}

#: The `type` of an error in OpenAI's shape by status; other 4xx are `invalid_request_error`.
OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def problem(
    status: int, code: str, detail: str, *, headers: dict[str, str] | None = None, param: str | None = None
) -> JSONResponse:
    """A problem document (RFC 9457) that has an `error` in OpenAI's shape beside."""
    kind = OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    body = Problem(
        title=code.replace("_", " "),
        status=status,
        detail=detail,
        code=code,
        error=OpenAIError(message=detail, type=kind, code=code, param=param),
    )
    return JSONResponse(body.model_dump(), status, headers, media_type="application/problem+json")


def answer_to(error: DocmillError) -> JSONResponse:
    """What an error of ours is answered with."""
    status = next(status for kind, status in STATUS if isinstance(error, kind))
    return problem(status, error.code, str(error), headers=_headers(error), param=getattr(error, "param", None))


def _headers(error: DocmillError) -> dict[str, str] | None:
    match error:
        case Unauthorised():
            return {"WWW-Authenticate": "Bearer"}
        case QuotaExceeded():
            # The `openai` client tries again by itself; for a quota that is used up until tomorrow it should not.
            again = "true" if isinstance(error, RateLimited) else "false"
            return {"Retry-After": str(math.ceil(error.retry_after_s)), "x-should-retry": again}
        case SystemFault():
            return {"Retry-After": str(RETRY_AFTER_S)}
    return None


def answer_errors(api: FastAPI) -> None:
    """Install the handlers."""

    @api.exception_handler(DocmillError)
    async def ours(request: Request, error: DocmillError) -> JSONResponse:
        return answer_to(error)

    @api.exception_handler(HTTPException)
    async def of_http(request: Request, error: HTTPException) -> JSONResponse:
        code = CODES.get(error.status_code) or HTTPStatus(error.status_code).phrase.lower().replace(" ", "_")
        return problem(error.status_code, code, str(error.detail), headers=dict(error.headers or {}))

    @api.exception_handler(RequestValidationError)
    async def misfit(request: Request, error: RequestValidationError) -> JSONResponse:
        wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        return problem(422, "bad_request", wrong)

    @api.exception_handler(DataError)
    async def unstorable(request: Request, error: DataError) -> JSONResponse:
        return problem(400, "bad_request", "a value holds what no database stores, such as NUL, or is out of range")

    @api.exception_handler(DBAPIError)
    async def of_the_database(request: Request, error: DBAPIError) -> JSONResponse:
        unavailable = told(error)
        return answer_to(unavailable) if isinstance(unavailable, DocmillError) else await unforeseen(request, error)

    @api.exception_handler(Exception)
    async def unforeseen(request: Request, error: Exception) -> JSONResponse:
        say(log, "unforeseen", level=logging.ERROR, path=without_keys(request.url.path), why=without_keys(repr(error)))
        return problem(500, "internal_error", "an error that nobody foresaw; the log of the API has it")


def describe_problems(api: FastAPI) -> None:
    """The description names the media type that problems have: FastAPI writes `application/json` for every model."""
    describe = api.openapi

    def described() -> dict[str, Any]:
        spec = describe()
        answers = (
            answer.get("content", {})
            for path in spec["paths"].values()
            for operation in path.values()
            for answer in operation["responses"].values()
        )
        for content in answers:
            if content.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("/Problem"):
                content["application/problem+json"] = content.pop("application/json")
        return spec

    api.openapi = described  # type: ignore[method-assign]  # FastAPI's own way to change it
