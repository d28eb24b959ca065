"""Bytes → Document: the limit, the look inside, the name by content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from docmill.errors import EmptyFile, NotAPdf, TooLarge
from docmill.types import Document, Source
from ingest.sniff import is_pdf, looks_like

_MIB = 1024 * 1024

#: Hex digits of a hash kept in an id: 96 bits, no chance collision below some 10^14 documents.
_ID_DIGITS = 24


@dataclass(frozen=True, slots=True)
class IngestConfig:
    """`max_bytes`: the largest file that is accepted."""

    max_bytes: int = 200 * _MIB

    def __post_init__(self) -> None:
        if self.max_bytes < 1:
            raise ValueError(f"max_bytes is {self.max_bytes}: a limit below 1 byte accepts no file")


def accept(data: bytes, *, name: str, tenant: str, source: Source, config: IngestConfig) -> Document:
    """The Document for these bytes, or EmptyFile, TooLarge or NotAPdf. The same bytes give the same id."""
    _refuse_empty(data, name)
    _refuse_too_large(data, name, config)
    _refuse_other_content(data, name)
    sha256 = hashlib.sha256(data).hexdigest()
    return Document(
        document_id=document_id_of(tenant, sha256),
        tenant=tenant,
        sha256=sha256,
        size_bytes=len(data),
        name=name,
        source=source,
    )


def document_id_of(tenant: str, sha256: str) -> str:
    """The id of a content for a tenant: the same bytes through any door are the same document."""
    return f"doc_{_digest(tenant, sha256)}"


def job_id_of(document_id: str, profile: str, profile_version: str) -> str:
    """The id of the one job that reads a document by a version of a profile: a second submission finds the first."""
    return f"job_{_digest(document_id, profile, profile_version)}"


def _digest(*parts: str) -> str:
    # NUL cannot stand in any part that a database holds, so no two lists of parts join to the same bytes.
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:_ID_DIGITS]


def _refuse_empty(data: bytes, name: str) -> None:
    if not data:
        raise EmptyFile(f"{name!r} is empty (0 bytes): upload it again, the transfer may have been cut off")


def _refuse_too_large(data: bytes, name: str, config: IngestConfig) -> None:
    if len(data) > config.max_bytes:
        raise TooLarge(
            f"{name!r} has {len(data):,} bytes, the limit is {config.max_bytes:,}: split it or have the limit raised"
        )


def _refuse_other_content(data: bytes, name: str) -> None:
    if not is_pdf(data):
        raise NotAPdf(f"{name!r} is not a PDF, it is {looks_like(data)}: save or print it as PDF and send that")
