"""Bytes by key, on whatever the URL names: `file:///…`, `s3://bucket/prefix`, `memory:///` (obstore)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import url2pathname

import obstore
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from docmill.errors import NotFound


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
        """Write; an S3 or disk error propagates as obstore's own."""
        obstore.put(self.store, key, data)

    def get(self, key: str) -> bytes:
        """Read. Raises NotFound."""
        try:
            return bytes(obstore.get(self.store, key).bytes())
        except FileNotFoundError as error:
            raise NotFound(f"there is no blob {key}: was the store emptied or its URL changed?") from error

    def exists(self, key: str) -> bool:
        """Whether the key is there."""
        try:
            obstore.head(self.store, key)
        except FileNotFoundError:
            return False
        return True


def original_key(tenant: str, sha256: str) -> str:
    """Where a document's bytes are kept."""
    return f"originals/{tenant}/{sha256[:2]}/{sha256}.pdf"


def prepared_key(document_id: str) -> str:
    """Where a parsed document is kept."""
    return f"prepared/{document_id}.json.z"
