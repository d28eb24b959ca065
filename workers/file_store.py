"""Keeping an uploaded file: its bytes in the blob store, in one pass that also measures, hashes and looks inside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

from sqlalchemy import RowMapping

from docmill.errors import RequestError
from ingest.folder import key_of
from ingest.sniff import PDF_HEADER_WITHIN, is_pdf
from storage.files import NewFile, file_key, new_id
from workers.services import Services

#: What a caller may upload a file for.
PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")
#: A batch's files go after this time unless the caller says otherwise; all others stay until they are deleted.
BATCH_KEEP_S = 30 * 24 * 3600
LONGEST_NAME = 512
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


class BadParameter(RequestError):
    """A parameter of a call to the OpenAI-shaped routes; `param` names it."""

    code = "invalid_value"

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class Passing:
    """Bytes on their way into the store: how many, their hash, how they begin. Stops what is over the limit."""

    def __init__(self, pieces: Iterable[bytes], limit: int) -> None:
        self._pieces, self._limit = pieces, limit
        self.size, self.sha256, self.md5 = 0, hashlib.sha256(), hashlib.md5(usedforsecurity=False)
        self.head = b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.size += len(piece)
            if self.size > self._limit:
                return
            self.sha256.update(piece)
            self.md5.update(piece)
            self.head = self.head or piece[: PDF_HEADER_WITHIN + 16]
            yield piece

    @property
    def kind(self) -> str:
        """What the content is."""
        if is_pdf(self.head):
            return "pdf"
        return "zip" if self.head.startswith(_ZIP) else "other"


def check_purpose(purpose: str, filename: str) -> None:
    """Raises BadParameter: requests of a batch are JSON lines, and the name says so before anything is read."""
    if purpose not in PURPOSES:
        raise BadParameter("purpose", f"{purpose!r} is not one of {', '.join(PURPOSES)}")
    if purpose == "batch" and not filename.lower().endswith(".jsonl"):
        raise BadParameter(
            "file",
            f"a file for batches is named NAME.jsonl, not {filename!r}; PDF and zip files have purpose user_data",
        )


def keep(
    pieces: Iterable[bytes],
    *,
    tenant: str,
    filename: str,
    purpose: str,
    keep_s: int | None,
    use: Services,
    md5: str | None = None,
    limit: int | None = None,
) -> NewFile:
    """Write the bytes; the caller records the file. Raises BadParameter, and then nothing is kept."""
    check_purpose(purpose, filename)
    most = limit or (use.settings.batch_file_max_bytes if purpose == "batch" else use.settings.file_max_bytes)
    file_id = new_id("file-")
    key = file_key(tenant, file_id)
    passing = Passing(pieces, most)
    use.blobs.put_stream(key, passing)
    try:
        _accept(passing, filename, most, md5)
    except BadParameter:
        use.blobs.delete(key)
        raise
    kept_s = BATCH_KEEP_S if keep_s is None and purpose == "batch" else keep_s
    name = key_of(filename)[:LONGEST_NAME]
    sha256 = passing.sha256.hexdigest()
    return NewFile(file_id, tenant, name, purpose, passing.kind, passing.size, sha256, key, kept_s)


def _accept(passing: Passing, filename: str, most: int, md5: str | None) -> None:
    if passing.size > most:
        raise BadParameter("file", f"{filename!r} is too large: the limit is {most:,} bytes; split it")
    if md5 is not None and md5.lower() != passing.md5.hexdigest():
        raise BadParameter("md5", f"the bytes of {filename!r} have the md5 {passing.md5.hexdigest()}, not {md5!r}")


def keep_and_record(pieces: Iterable[bytes], *, use: Services, **facts: object) -> RowMapping:
    """Keep a file and record it."""
    return use.files.add(keep(pieces, use=use, **facts))  # type: ignore[arg-type]  # the keywords of `keep`
