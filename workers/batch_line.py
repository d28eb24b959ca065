"""One line of a batch's input → a request for a document with a profile, or what is wrong with it. Pure.

What makes the whole file unusable is a fault of the batch (`Fault`); what concerns one request alone is written on its
line and comes back in the error file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import RowMapping

from storage.batches import Line

CHAT, DOCUMENTS = "/v1/chat/completions", "/v1/documents"
ENDPOINTS = (CHAT, DOCUMENTS)
PRIORITIES = ("high", "normal")
#: Longest custom_id and ordering_key that are kept.
LONGEST_ID = 512


@dataclass(frozen=True, slots=True)
class Asked:
    """What a batch says for all its lines. `model`: the one of the lines before."""

    endpoint: str
    profiles: Collection[str]
    options: Mapping[str, Any]
    model: str | None = None


class Fault(Exception):
    """A fault for which the whole batch fails; `code` and `param` as OpenAI's errors have them."""

    def __init__(self, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.code, self.param = code, param


class Refusal(Exception):
    """A fault of one request, as an HTTP answer would say it."""

    def __init__(self, message: str, *, code: str = "invalid_request", status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def read_line(text: bytes, number: int, asked: Asked) -> Line:
    """The request of a line. Raises Fault."""
    wire = _json(text)
    custom_id = _id_of(wire)
    _same_endpoint(wire, asked.endpoint)
    body = wire.get("body")
    if not isinstance(body, dict):
        raise Fault("invalid_request", "The line has no `body` that is an object.", "body")
    if body.get("stream"):
        raise Fault("invalid_request", "`stream` is not possible in a batch: leave it out.", "body.stream")
    line = Line(number, custom_id, _profile(body, asked), **_extension(wire, asked.options))
    try:
        return replace(line, file_id=_file_of(body, asked.endpoint), deadline=_in_future(line.deadline))
    except Refusal as refusal:
        return replace(line, status_code=refusal.status, code=refusal.code, message=str(refusal))


def _json(text: bytes) -> dict[str, Any]:
    try:
        wire = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Fault("invalid_json_line", f"This line is not parseable as valid JSON: {error}") from error
    if not isinstance(wire, dict):
        raise Fault("invalid_json_line", "This line is not a JSON object.")
    return wire


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def text_of(value: Any, param: str) -> str:
    """A short text that a database can hold. Raises Fault."""
    if not isinstance(value, str) or not value or len(value) > LONGEST_ID:
        raise Fault("invalid_request", f"`{param}` must be a text of 1 to {LONGEST_ID} characters.", param)
    if "\0" in value or any(0xD800 <= ord(character) <= 0xDFFF for character in value):
        raise Fault("invalid_request", f"`{param}` holds a character that is no text (NUL or half a pair).", param)
    return value


def _id_of(wire: Mapping[str, Any]) -> str:
    if "custom_id" not in wire:
        raise Fault(
            "invalid_request", "The line has no `custom_id`: results are matched to requests by it.", "custom_id"
        )
    return text_of(wire["custom_id"], "custom_id")


def _same_endpoint(wire: Mapping[str, Any], endpoint: str) -> None:
    if wire.get("method") != "POST":
        raise Fault("invalid_request", '`method` must be "POST".', "method")
    if wire.get("url") != endpoint:
        raise Fault("url_mismatch", f"The url {wire.get('url')!r} is not the batch's endpoint {endpoint!r}.", "url")


def _profile(body: Mapping[str, Any], asked: Asked) -> str:
    """A chat completion's `model` names the profile, and there is one a file; our own endpoint takes any a line."""
    if asked.endpoint == DOCUMENTS:
        return known_profile(body.get("profile", asked.options.get("profile")), asked.profiles, "body.profile")
    name = known_profile(body.get("model"), asked.profiles, "body.model")
    if asked.model not in (None, name):
        raise Fault(
            "model_mismatch", f"The model {name!r} is not that of the lines before, {asked.model!r}.", "body.model"
        )
    return name


def known_profile(name: Any, profiles: Collection[str], param: str) -> str:
    """The name of a profile that there is. Raises Fault."""
    if not isinstance(name, str) or name not in profiles:
        there = ", ".join(sorted(profiles))
        raise Fault("model_not_found", f"There is no profile {name!r}; available: {there}.", param)
    return name


# ---------------------------------------------------------------- the document


def _file_of(body: Mapping[str, Any], endpoint: str) -> str:
    if endpoint == DOCUMENTS:
        return _file_id(body.get("file_id"), "body.file_id")
    parts = [part for message in _list(body.get("messages")) for part in _list(_content(message))]
    given = [part for part in parts if isinstance(part, dict) and part.get("type") == "file"]
    if len(given) != 1:
        raise Refusal(
            f'The messages hold {len(given)} documents; each request reads one: {{"type": "file", "file": '
            '{"file_id": …}}.'
        )
    file = given[0].get("file")
    return _file_id(file.get("file_id") if isinstance(file, dict) else None, "file.file_id")


def _content(message: Any) -> Any:
    return message.get("content") if isinstance(message, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _file_id(value: Any, name: str) -> str:
    try:
        return text_of(value, name)
    except Fault:
        raise Refusal(f"`{name}` must be the id of an uploaded file (POST /v1/files).") from None


# ---------------------------------------------------------------- our extension


def _extension(wire: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """`docmill` of the line over `docmill` of the batch."""
    own = wire.get("docmill") or {}
    if not isinstance(own, dict):
        raise Fault("invalid_request", "`docmill` must be an object.", "docmill")
    key = own.get("ordering_key", options.get("ordering_key"))
    priority = own.get("priority", options.get("priority"))
    if priority not in (None, *PRIORITIES):
        raise Fault("invalid_request", f"`priority` is one of {', '.join(PRIORITIES)}.", "docmill.priority")
    return {
        "priority": priority,
        "deadline": moment(own.get("deadline")),
        "ordering_key": None if key is None else text_of(key, "docmill.ordering_key"),
    }


def moment(value: Any) -> datetime | None:
    """Unix seconds or ISO 8601 as a time with a zone. Raises Fault."""
    if value is None:
        return None
    try:
        if isinstance(value, int) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        at = datetime.fromisoformat(value)
    except (ValueError, TypeError, OverflowError, OSError):
        raise Fault("invalid_request", "`deadline` is Unix seconds or ISO 8601.", "docmill.deadline") from None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _in_future(deadline: datetime | None) -> datetime | None:
    if deadline is not None and deadline <= datetime.now(UTC):
        raise Refusal(f"The deadline {deadline.isoformat()} is over.", code="deadline_passed")
    return deadline


def line_of(batch: RowMapping, custom_id: str, profile: str, **values: Any) -> Line:
    """The line of a document that was sent as a file, with what the batch says for all of them."""
    options = batch["options"]
    need = {"priority": options.get("priority"), "ordering_key": options.get("ordering_key")}
    return Line(0, custom_id, profile, **need, **values)
