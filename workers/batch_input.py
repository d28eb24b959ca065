"""The input of a batch, a piece at a time: lines of JSON, or documents by themselves or in zip files.

A piece is what one transaction takes. Where the next one begins is kept with it, so a worker that dies goes on from
there, and memory does not grow with the file.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from sqlalchemy import RowMapping

from docmill.errors import NotFound
from ingest.folder import key_of
from ingest.sniff import is_pdf
from storage.batches import Chunk, Line, error_of
from storage.files import NewFile, file_key
from workers.batch_line import LONGEST_ID, Asked, Fault, known_profile, read_line
from workers.services import Services

#: Input that one transaction takes.
PIECE_BYTES = 512 * 1024
#: Longest line that is read; a request is a few hundred bytes.
LONGEST_LINE = 8 * 1024 * 1024
#: Documents of a zip file that one transaction takes.
MEMBERS = 500
#: Largest directory of a zip file: Python holds it in memory.
LARGEST_DIRECTORY = 64 * 1024 * 1024
#: Faults that one piece tells.
_MOST_FAULTS = 100
_BOM = b"\xef\xbb\xbf"
#: A position in a list of files: the file in the upper half, the member in the lower.
_HALF = 32


def next_chunk(batch: RowMapping, use: Services) -> Chunk:
    """The next piece of this batch's input."""
    try:
        first = _file(batch, batch["input_file_id"], use)
        if first["kind"] == "other":
            return _lines(batch, first, use)
        return _documents(batch, use)
    except (Fault, NotFound) as fault:
        return _stopped(batch, fault)


def _stopped(batch: RowMapping, fault: Fault | NotFound) -> Chunk:
    """A fault after which nothing more can be read."""
    error = error_of(fault.code, str(fault), param=getattr(fault, "param", None))
    return Chunk((), (error,), batch["position"], batch["lines_read"], over=True)


def _file(batch: RowMapping, file_id: str, use: Services) -> RowMapping:
    return use.files.of_batch(file_id, tenant=batch["tenant"])


def asked_of(batch: RowMapping, use: Services) -> Asked:
    """What the batch says for all its lines."""
    return Asked(batch["endpoint"], use.profiles.keys(), batch["options"], batch["model"])


# ---------------------------------------------------------------- lines of JSON


@dataclass(slots=True)
class _Reading:
    """What a piece has given so far."""

    lines: list[Line]
    errors: list[dict[str, Any]]
    number: int
    asked: Asked

    def take(self, text: bytes) -> None:
        self.number += 1
        if not text.strip():
            return
        try:
            line = read_line(text, self.number, self.asked)
        except Fault as fault:
            self.errors.append(error_of(fault.code, str(fault), line=self.number, param=fault.param))
            return
        self.lines.append(line)
        if self.asked.endpoint.endswith("completions"):
            self.asked = replace(self.asked, model=line.profile)


def _lines(batch: RowMapping, file: RowMapping, use: Services) -> Chunk:
    """Whole lines from where the last piece ended."""
    position = batch["position"]
    data, over = _piece(file, position, use)
    reading = _Reading([], [], batch["lines_read"], asked_of(batch, use))
    kept = data.removeprefix(_BOM) if position == 0 else data
    for text in (kept.removesuffix(b"\n") if over else kept[: kept.rfind(b"\n")]).split(b"\n"):
        reading.take(text)
    taken = len(data) if over else data.rfind(b"\n") + 1
    return _within_limit(
        Chunk(
            reading.lines,
            reading.errors[:_MOST_FAULTS],
            position + taken,
            reading.number,
            over=over,
            model=reading.asked.model,
        ),
        use,
    )


def _piece(file: RowMapping, position: int, use: Services) -> tuple[bytes, bool]:
    """Bytes that hold at least one line, and whether they are the last. Raises Fault for a line without end."""
    left = file["bytes"] - position
    length = min(PIECE_BYTES, left)
    data = use.blobs.range(file["blob_key"], position, length) if length else b""
    while b"\n" not in data and len(data) < left:
        if len(data) >= LONGEST_LINE:
            raise Fault("invalid_json_line", f"A line is longer than {LONGEST_LINE:,} bytes.")
        more = min(PIECE_BYTES, left - len(data))
        data += use.blobs.range(file["blob_key"], position + len(data), more)
    return data, len(data) >= left


def _within_limit(chunk: Chunk, use: Services) -> Chunk:
    """Blank lines are not counted by OpenAI; here they are, which makes the limit one of the file."""
    most = use.settings.batch_max_lines
    if chunk.lines_read <= most:
        return chunk
    error = error_of("too_many_tasks", f"The file has more than {most:,} requests: split it into several batches.")
    return replace(chunk, errors=[error], over=True, lines=())


# ---------------------------------------------------------------- documents


def _documents(batch: RowMapping, use: Services) -> Chunk:
    """One line for each PDF, and for each document of a zip file."""
    file_ids = [batch["input_file_id"], *batch["options"].get("file_ids", ())]
    profile = known_profile(batch["options"].get("profile"), use.profiles.keys(), "docmill.profile")
    index, member = batch["position"] >> _HALF, batch["position"] & ((1 << _HALF) - 1)
    file = _file(batch, file_ids[index], use)
    found = _members(batch, file, member, use) if file["kind"] == "zip" else [_whole(batch, file, profile)]
    more = file["kind"] == "zip" and len(found) == MEMBERS
    position = batch["position"] + len(found) if more else (index + 1) << _HALF
    lines = [replace(line, line_no=batch["lines_read"] + number) for number, line in enumerate(found, start=1)]
    over = not more and index + 1 == len(file_ids)
    read = batch["lines_read"] + len(lines)
    return _within_limit(Chunk(lines, (), position, read, over=over, model=profile), use)


def _whole(batch: RowMapping, file: RowMapping, profile: str) -> Line:
    return _line(batch, file["file_id"], profile, file_id=file["file_id"])


def _line(batch: RowMapping, custom_id: str, profile: str, **values: Any) -> Line:
    options = batch["options"]
    need = {"priority": options.get("priority"), "ordering_key": options.get("ordering_key")}
    return Line(0, custom_id, profile, **need, **values)


def _members(batch: RowMapping, file: RowMapping, start: int, use: Services) -> list[Line]:
    """The next documents of a zip file, each kept as a file of its own. Raises Fault where it is none."""
    try:
        with use.blobs.open(file["blob_key"]) as source:
            _refuse_large_directory(source)
            with zipfile.ZipFile(source) as archive:
                names = _names(archive, use.settings.batch_max_lines)
                return [
                    _member(batch, file, archive, info, custom_id, use=use)
                    for info, custom_id in islice(names, start, start + MEMBERS)
                ]
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError) as error:
        raise Fault("invalid_request", f"{file['filename']!r} cannot be read as a zip file: {error}") from error


def _refuse_large_directory(source: Any) -> None:
    """Before Python reads it whole."""
    end = zipfile._EndRecData(source)  # type: ignore[attr-defined]  # the only reader of both kinds of end record
    if end and end[zipfile._ECD_SIZE] > LARGEST_DIRECTORY:  # type: ignore[attr-defined]  # as above
        raise Fault("too_many_tasks", f"The zip's directory is over {LARGEST_DIRECTORY:,} bytes: split the file.")


def _names(archive: zipfile.ZipFile, most: int) -> Iterator[tuple[zipfile.ZipInfo, str]]:
    """What is a file in the archive, each with a name of its own."""
    infos = [info for info in archive.infolist() if not info.is_dir()]
    if len(infos) > most:
        raise Fault("too_many_tasks", f"The zip file has {len(infos):,} documents, the limit is {most:,}: split it.")
    seen: dict[str, int] = {}
    for info in infos:
        name = key_of(info.filename)[: LONGEST_ID - 10] or "unnamed"
        seen[name] = seen.get(name, 0) + 1
        yield info, name if seen[name] == 1 else f"{name}#{seen[name]}"


def _member(
    batch: RowMapping,
    file: RowMapping,
    archive: zipfile.ZipFile,
    info: zipfile.ZipInfo,
    custom_id: str,
    *,
    use: Services,
) -> Line:
    profile = batch["options"]["profile"]
    if batch["options"].get("file_ids"):
        custom_id = f"{file['file_id']}/{custom_id}"
    refused = _why_not(info, use)
    data = b"" if refused else _read(archive, info)
    if refused is None and not is_pdf(data):
        refused = (422, "not_a_pdf", f"{info.filename!r} is not a PDF.")
    if refused is not None:
        status, code, message = refused
        return _line(batch, custom_id, profile, status_code=status, code=code, message=key_of(message))
    return _line(batch, custom_id, profile, file_id=_keep(batch, file, info, data, use))


def _why_not(info: zipfile.ZipInfo, use: Services) -> tuple[int, str, str] | None:
    """Why a document stays in its archive; `file_size` is as much as will be given out, whatever it holds."""
    if info.flag_bits & 1:
        return 422, "encrypted", f"{info.filename!r} is encrypted: send it without a password."
    if info.file_size > use.settings.max_bytes:
        return (
            413,
            "too_large",
            f"{info.filename!r} has {info.file_size:,} bytes, the limit is {use.settings.max_bytes:,}.",
        )
    return None


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """The document, or nothing if it is damaged: then it is no PDF."""
    try:
        return archive.read(info)
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, RuntimeError):
        return b""


def _keep(batch: RowMapping, file: RowMapping, info: zipfile.ZipInfo, data: bytes, use: Services) -> str:
    """Keep it as a file; the id follows from where it comes from, so a repetition writes the same again."""
    place = f"{batch['batch_id']}\0{file['file_id']}\0{info.header_offset}"
    file_id = "file-" + hashlib.sha256(place.encode()).hexdigest()[:24]
    key = file_key(batch["tenant"], file_id)
    use.blobs.put(key, data)
    sha256 = hashlib.sha256(data).hexdigest()
    name = key_of(info.filename)
    use.files.add(NewFile(file_id, batch["tenant"], name, "user_data", "pdf", len(data), sha256, key))
    return file_id
