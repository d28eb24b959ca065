"""Length-prefixed frames between a process and its parser child: one byte of kind, eight of length, the payload.

A document goes in as CONFIG and DATA; out come one PAGE (a packed `Turn`) as each page is begun, then
RESULT or ERROR.
"""

from __future__ import annotations

import struct
from typing import IO, Final, NamedTuple

READY: Final = b"."
CONFIG: Final = b"C"
DATA: Final = b"D"
PAGE: Final = b"P"
RESULT: Final = b"R"
ERROR: Final = b"E"

#: The exit code of a child that could not allocate.
OUT_OF_MEMORY_EXIT: Final = 77


class Turn(NamedTuple):
    """Which page of how many is read now (0 before the first and after the last), and the CPU seconds used so far."""

    page: int
    of: int
    cpu_seconds: float


_HEAD: Final = struct.Struct("<cQ")
HEAD_BYTES: Final = _HEAD.size


def send(stream: IO[bytes], kind: bytes, payload: bytes = b"") -> None:
    stream.write(_HEAD.pack(kind, len(payload)))
    stream.write(payload)
    stream.flush()


def head(data: bytes) -> tuple[bytes, int]:
    """(kind, length of the payload) of a frame's first bytes."""
    kind, length = _HEAD.unpack(data)
    return kind, length


def receive(stream: IO[bytes]) -> tuple[bytes, bytes] | None:
    """The next frame, or None at the end of the stream."""
    start = stream.read(HEAD_BYTES)
    if len(start) < HEAD_BYTES:
        return None
    kind, length = head(start)
    return kind, stream.read(length)
