"""The documents of a zip file as lines of a batch, a piece at a time; each is kept as a file of its own."""

from __future__ import annotations

import hashlib
from itertools import islice

from sqlalchemy import RowMapping

from docmill.errors import CorruptZip, ZipBomb
from ingest.sniff import is_pdf
from ingest.zips import LeftOut, Unpacked, ZipLimits, unpack
from storage.batches import Line
from storage.files import NewFile, file_key
from workers.batch_line import LONGEST_ID, Fault, line_of
from workers.services import Services

#: Documents that one transaction takes.
MEMBERS = 500
#: What an archive of PDFs unpacks to at the outside, beside its own size; a small one may say little.
_RATIO = 20
_LEAST_BYTES = 1024**3


def members(batch: RowMapping, file: RowMapping, start: int, use: Services) -> list[Line]:
    """The next documents of a zip file. Raises Fault where it is none, or is made to do harm."""
    limits = ZipLimits(
        max_files=use.settings.batch_max_lines,
        max_file_bytes=use.settings.max_bytes,
        max_total_bytes=max(_LEAST_BYTES, _RATIO * file["bytes"]),
    )
    try:
        with use.blobs.open(file["blob_key"]) as source:
            taken = islice(unpack(source, limits, start=start), MEMBERS)
            return [_line(batch, file, place, one, use) for place, one in enumerate(taken, start=start)]
    except ZipBomb as error:
        raise Fault("too_many_tasks", f"{file['filename']!r}: {error}") from error
    except CorruptZip as error:
        raise Fault("invalid_request", f"{file['filename']!r}: {error}") from error


def _line(batch: RowMapping, file: RowMapping, place: int, one: Unpacked | LeftOut, use: Services) -> Line:
    profile, custom_id = batch["options"]["profile"], _custom_id(batch, file, place, one.name)
    if isinstance(one, LeftOut):
        status = 413 if one.code == "too_large" else 422
        return line_of(
            batch, custom_id, profile, status_code=status, code=one.code, message=f"{one.name}: {one.reason}"
        )
    if not is_pdf(one.data):
        message = f"{one.name} is not a PDF."
        return line_of(batch, custom_id, profile, status_code=422, code="not_a_pdf", message=message)
    return line_of(batch, custom_id, profile, file_id=_keep(batch, file, place, one, use))


def _custom_id(batch: RowMapping, file: RowMapping, place: int, name: str) -> str:
    """The document's name in the archive; one that is too long is cut and told apart by its place."""
    room = LONGEST_ID - 64
    custom_id = name if len(name) <= room else f"{name[:room]}…{place}"
    return f"{file['file_id']}/{custom_id}" if batch["options"].get("file_ids") else custom_id


def _keep(batch: RowMapping, file: RowMapping, place: int, one: Unpacked, use: Services) -> str:
    """Keep it as a file; the id follows from where it comes from, so a repetition writes the same again."""
    origin = f"{batch['batch_id']}\0{file['file_id']}\0{place}"
    file_id = "file-" + hashlib.sha256(origin.encode()).hexdigest()[:24]
    key = file_key(batch["tenant"], file_id)
    use.blobs.put(key, one.data)
    sha256 = hashlib.sha256(one.data).hexdigest()
    use.files.add(NewFile(file_id, batch["tenant"], one.name, "user_data", "pdf", len(one.data), sha256, key))
    return file_id
