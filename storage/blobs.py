"""Bytes by key, on whatever the URL names: `file:///…`, `s3://bucket/prefix`, `memory:///` (obstore)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import obstore
from obstore.exceptions import BaseError as ObstoreError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from docmill.errors import BlobsUnavailable, NotFound

#: How much of a long blob is in memory at a time.
_PIECE_BYTES = 1024 * 1024
#: What S3 takes in one part, but for the last.
_PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Blobs:
    """A flat store of immutable bytes. Keys are made of content hashes, so writing twice is harmless."""

    store: ObjectStore

    @classmethod
    def at(cls, url: str, **options: Any) -> Blobs:
        """Open by URL; `options` go to obstore (endpoint, credentials), which also reads AWS_… variables for S3."""
        scheme = urlparse(url).scheme
        if scheme == "memory":
            return cls(MemoryStore())
        if scheme == "file":
            return cls(LocalStore(Path(url2pathname(urlparse(url).path)), mkdir=True))
        return cls(from_url(url, **options))

    def put(self, key: str, data: bytes) -> None:
        """Write. Raises BlobsUnavailable."""
        with _answering(key):
            obstore.put(self.store, key, data)

    def get(self, key: str) -> bytes:
        """Read. Raises NotFound or BlobsUnavailable."""
        with _answering(key):
            return bytes(obstore.get(self.store, key).bytes())

    def put_stream(self, key: str, pieces: Iterable[bytes]) -> None:
        """Write what comes in pieces, with the memory of a few of them; nobody sees the blob before it is whole."""
        # Not `put` of an iterator: that runs it inside obstore, where a piece may not be read from obstore again.
        writer = obstore.open_writer(self.store, key, buffer_size=_PART_BYTES)
        for piece in pieces:
            writer.write(piece)
        # Closed only when all is there: without it what was written is no blob.
        writer.close()

    def stream(self, key: str, *, piece_bytes: int = _PIECE_BYTES) -> Iterator[bytes]:
        """Read in pieces. Raises NotFound at once, not with the first piece."""
        try:
            found = obstore.get(self.store, key)
        except FileNotFoundError as error:
            raise NotFound(f"there is no blob {key}: was the store emptied or its URL changed?") from error
        return (bytes(piece) for piece in found.stream(min_chunk_size=piece_bytes))

    def range(self, key: str, start: int, length: int) -> bytes:
        """A part of a blob; `start` and `length` within its size. Raises NotFound."""
        try:
            return bytes(obstore.get_range(self.store, key, start=start, length=length))
        except FileNotFoundError as error:
            raise NotFound(f"there is no blob {key}: was the store emptied or its URL changed?") from error

    def open(self, key: str) -> BufferedReader:
        """The blob as a file that can seek; it holds one piece at a time. Raises NotFound."""
        try:
            return BufferedReader(
                _Seekable(obstore.open_reader(self.store, key, buffer_size=_PIECE_BYTES)), _PIECE_BYTES
            )
        except FileNotFoundError as error:
            raise NotFound(f"there is no blob {key}: was the store emptied or its URL changed?") from error

    def delete(self, key: str) -> None:
        """Remove; one that is not there is gone already."""
        with suppress(FileNotFoundError):
            obstore.delete(self.store, key)

    def exists(self, key: str) -> bool:
        """Whether the key is there. Raises BlobsUnavailable."""
        try:
            with _answering(key):
                obstore.head(self.store, key)
        except NotFound:
            return False
        return True


class _Seekable(RawIOBase):
    """obstore's reader with the interface of Python's own files, which `zipfile` asks for."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())

    def readinto(self, buffer: Any, /) -> int:
        data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)


@contextmanager
def _answering(key: str) -> Iterator[None]:
    """What a store says that has no such key, or that is full, shut or away, in words of ours."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"there is no blob {key}: was the store emptied or its URL changed?") from error
    except (ObstoreError, OSError) as error:
        why = str(error).partition("\n")[0]
        raise BlobsUnavailable(
            f"the store of bytes did not take or give {key}: {why}; free its disk, mend its rights or its connection"
            " (DOCMILL_BLOB_URL names it): the work waits for it"
        ) from error


def original_key(tenant: str, sha256: str) -> str:
    """Where a document's bytes are kept."""
    return f"originals/{tenant}/{sha256[:2]}/{sha256}.pdf"


def prepared_key(document_id: str) -> str:
    """Where a parsed document is kept."""
    return f"prepared/{document_id}.json.z"
