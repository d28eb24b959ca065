"""The input of a batch, a piece at a time: lines of JSON, or documents by themselves or in zip files.

A piece is what one transaction takes. Where the next one begins is kept with it, so a worker that dies goes on from
there, and memory does not grow with the file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import RowMapping

from docmill.errors import NotFound
from storage.batches import Chunk, Line, error_of
from workers.batch_line import Asked, Fault, known_profile, line_of, read_line
from workers.batch_zip import MEMBERS, members
from workers.services import Services

#: Input that one transaction takes.
PIECE_BYTES = 512 * 1024
#: Longest line that is read; a request is a few hundred bytes.
LONGEST_LINE = 8 * 1024 * 1024
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
    found = members(batch, file, member, use) if file["kind"] == "zip" else [_whole(batch, file, profile)]
    more = file["kind"] == "zip" and len(found) == MEMBERS
    position = batch["position"] + len(found) if more else (index + 1) << _HALF
    lines = [replace(line, line_no=batch["lines_read"] + number) for number, line in enumerate(found, start=1)]
    over = not more and index + 1 == len(file_ids)
    read = batch["lines_read"] + len(lines)
    return _within_limit(Chunk(lines, (), position, read, over=over, model=profile), use)


def _whole(batch: RowMapping, file: RowMapping, profile: str) -> Line:
    return line_of(batch, file["file_id"], profile, file_id=file["file_id"])
