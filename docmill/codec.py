"""Values to JSON bytes and back, by their types (msgspec)."""

from __future__ import annotations

import json
import zlib
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def encode(value: Any) -> bytes:
    """Any value of `docmill.types` as JSON."""
    return msgspec.json.encode(value)


def decode(data: bytes | str, as_type: type[T]) -> T:
    """The inverse of `encode`; raises msgspec.ValidationError when the data is of another shape."""
    return msgspec.json.decode(data, type=as_type)


def pack(value: Any) -> bytes:
    """JSON, zlib-compressed: for what is stored and never queried."""
    return zlib.compress(encode(value), level=6)


def unpack(data: bytes, as_type: type[T]) -> T:
    """The inverse of `pack`."""
    return decode(zlib.decompress(data), as_type)


def canonical(value: Any) -> str:
    """JSON in one way only, so that equal values have equal texts and hashes; what JSON has not is told by `str`."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


def builtins(value: Any) -> Any:
    """The value as dicts, lists, strings and numbers, for JSONB columns and HTTP answers."""
    return msgspec.to_builtins(value)
