"""What S3 tells of new objects, out of every envelope that it comes in: plain, MinIO's, SNS, SQS, EventBridge.

An event is a hint that a key is worth a look, no more: events are lost, doubled and overtaken by each other.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote_plus

from docmill.errors import RequestError

#: SNS in SQS in a list of records is three; more is not an envelope but an attack.
_DEEPEST: Final = 6
_CREATED: Final = ("ObjectCreated", "s3:ObjectCreated", "Object Created", "ObjectRestore:Completed")


@dataclass(frozen=True, slots=True)
class Told:
    """An object that was put. `etag` where the event has it."""

    bucket: str
    key: str
    etag: str | None


def created(message: Any) -> Iterator[Told]:
    """The objects that a message says were put; other kinds of events are passed over.

    Raises RequestError for what is no message of S3's.
    """
    yield from _opened(message, 0)


def _opened(message: Any, depth: int) -> Iterator[Told]:
    if depth > _DEEPEST:
        raise RequestError(f"the message has more than {_DEEPEST} envelopes: send what S3, SNS or SQS sends")
    match _json(message) if isinstance(message, str) else message:
        case {"s3": Mapping() as told, **record}:
            yield from _record(str(record.get("eventName", "")), told, encoded=True)
        case {"detail-type": str(kind), "detail": Mapping() as told}:
            yield from _record(kind, told, encoded=False)
        case envelope:
            for one in _inside(envelope):
                yield from _opened(one, depth + 1)


def _inside(envelope: Any) -> Sequence[Any]:
    """The messages of an envelope. A topic that asks to be confirmed has none: whoever made it confirms it."""
    match envelope:
        case list():
            return envelope
        case {"Records": list() as inner} | {"Messages": list() as inner}:
            return inner
        case {"Message": inner} | {"Body": inner} | {"body": inner} | {"Sns": inner}:
            return [] if _asks_to_be_confirmed(envelope) else [inner]
        case {"Event": "s3:TestEvent"}:
            return []
    raise RequestError("this is no event of a bucket: send what S3, SNS or SQS sends, as JSON")


def _asks_to_be_confirmed(envelope: Mapping[str, Any]) -> bool:
    return envelope.get("Type") in ("SubscriptionConfirmation", "UnsubscribeConfirmation")


def _record(kind: str, told: Mapping[str, Any], *, encoded: bool) -> Iterator[Told]:
    if not kind.startswith(_CREATED):
        return
    match told:
        case {"bucket": {"name": str(bucket)}, "object": {"key": str(key), **more}}:
            etag = more.get("eTag") or more.get("etag")
            yield Told(bucket, unquote_plus(key) if encoded else key, str(etag).strip('"') if etag else None)
        case _:
            raise RequestError("an event names no bucket or no key: send it as S3 does")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise RequestError(f"an envelope holds no JSON ({error}): send what S3, SNS or SQS sends") from error
