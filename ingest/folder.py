"""A local inbox, `inbox/<tenant>/<profile>/NAME.pdf`: which files have stopped changing.

A scan compares the folder with what the last scan saw. What was seen goes in and comes out as values, so that the
caller can keep it in a database; nothing here remembers anything. A file is named by its key, its path below the
inbox in a form that any database and any screen can hold.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_DEPTH = 3
_PLACE = "<tenant>/<profile>/<file>"

#: Names that programs give to files which they still write, and to our own receipts.
_TEMPORARY = (".part", ".partial", ".tmp", ".crdownload", ".filepart", ".swp", "~", ".receipt.json")

#: Marks that reverse the reading direction: harmless in a database, misleading on a screen.
_BIDI_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class Seen:
    """A file as the last scans saw it: `first_seen` is when this very `etag` (size and mtime) was first met."""

    key: str
    etag: str
    first_seen: float


@dataclass(frozen=True, slots=True)
class InboxFile:
    """A file that has stopped changing. `name` is the last part of its key."""

    key: str
    tenant: str
    profile: str
    name: str
    etag: str
    size: int
    path: Path


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Something in the inbox that will not be taken, and why."""

    key: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """`observed` is the state for the next scan: what is gone from the folder is gone from it."""

    ready: tuple[InboxFile, ...]
    observed: tuple[Seen, ...]
    misplaced: tuple[Misplaced, ...]


def scan(inbox: Path, seen: Mapping[str, Seen], now: float, settle_s: float) -> Scan:
    """One look at the inbox. A file is ready when its size and mtime are those of `settle_s` seconds ago or more.

    A file stays ready in every later scan until it is changed or removed: the caller knows by key and etag which
    ones it has taken. `now` may be any clock that goes forward, the same one for all scans.
    """
    found = sorted(_entries(inbox, ()), key=lambda entry: entry.key)
    files = [entry for entry in found if isinstance(entry, InboxFile)]
    return Scan(
        ready=tuple(file for file in files if _settled(file, seen.get(file.key), now, settle_s)),
        observed=tuple(_observe(file, seen.get(file.key), now) for file in files),
        misplaced=tuple(entry for entry in found if isinstance(entry, Misplaced)),
    )


def read(file: InboxFile, max_bytes: int) -> bytes | None:
    """The bytes of a ready file, or None if it has changed since the scan (the next scan sees it anew).

    At most `max_bytes` + 1 bytes are read: enough for `accept` to say that it is too large.
    """
    try:
        # A link that was put in place of the file after the scan is not followed.
        descriptor = os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as stream:
            data = stream.read(max_bytes + 1)
            unchanged = _etag(os.fstat(stream.fileno())) == file.etag
    except OSError:
        return None
    return data if unchanged else None


def key_of(relative: str) -> str:
    """A path below the inbox as a key: UTF-8, without control characters, different for different paths.

    A byte that is not UTF-8 becomes `\\xNN`, a control character or direction mark `\\u{...}`, a backslash two.
    """
    return "".join(_escape(character) for character in relative)


def path_of(key: str) -> str:
    """The inverse of `key_of`, as Python names files (undecodable bytes as surrogates)."""
    return re.sub(r"\\(?:x([0-9a-f]{2})|u\{([0-9a-f]+)\}|\\)", _unescape, key)


def _escape(character: str) -> str:
    code = ord(character)
    if character == "\\":
        return "\\\\"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    if unicodedata.category(character) in ("Cc", "Cs") or character in _BIDI_OVERRIDES:
        return f"\\u{{{code:x}}}"
    return character


def _unescape(escaped: re.Match[str]) -> str:
    byte, code = escaped.groups()
    if byte is not None:
        return chr(0xDC00 + int(byte, 16))
    return chr(int(code, 16)) if code is not None else "\\"


def _settled(file: InboxFile, before: Seen | None, now: float, settle_s: float) -> bool:
    return before is not None and before.etag == file.etag and now - before.first_seen >= settle_s


def _observe(file: InboxFile, before: Seen | None, now: float) -> Seen:
    if before is not None and before.etag == file.etag:
        return before
    return Seen(file.key, file.etag, now)


def _entries(folder: Path, above: tuple[str, ...]) -> Iterator[InboxFile | Misplaced]:
    try:
        children = list(os.scandir(folder))
    except FileNotFoundError:
        return  # removed since its parent was listed
    except OSError as error:
        yield Misplaced(_key(above), f"the folder cannot be read: {error.strerror}; give the process access")
        return
    for child in children:
        if not _ignored(child.name):
            yield from _entry(child, (*above, child.name))


def _ignored(name: str) -> bool:
    return name.startswith((".", "~")) or name.lower().endswith(_TEMPORARY)


def _entry(child: os.DirEntry[str], parts: tuple[str, ...]) -> Iterator[InboxFile | Misplaced]:
    try:
        status = child.stat(follow_symlinks=False)
    except FileNotFoundError:
        return  # moved away since the folder was listed
    if stat.S_ISDIR(status.st_mode) and len(parts) < _DEPTH:
        yield from _entries(Path(child.path), parts)
        return
    reason = _misfit(status, len(parts))
    yield Misplaced(_key(parts), reason) if reason else _file(child, parts, status)


def _misfit(status: os.stat_result, depth: int) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return "a link is not followed: put the file itself here"
    if stat.S_ISDIR(status.st_mode):
        return f"the folder is too deep, its files are not read: the inbox holds {_PLACE}"
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file (a pipe, socket or device)"
    if depth < _DEPTH:
        return f"the file is {depth} deep and belongs {_DEPTH} deep: the inbox holds {_PLACE}"
    return None


def _file(child: os.DirEntry[str], parts: tuple[str, ...], status: os.stat_result) -> InboxFile:
    tenant, profile, name = (key_of(part) for part in parts)
    return InboxFile(_key(parts), tenant, profile, name, _etag(status), status.st_size, Path(child.path))


def _key(parts: tuple[str, ...]) -> str:
    return key_of("/".join(parts))


def _etag(status: os.stat_result) -> str:
    return f"{status.st_size}-{status.st_mtime_ns}"
