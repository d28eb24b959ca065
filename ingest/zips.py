"""Archives of PDFs, unpacked one file at a time into memory, never onto the disk, whatever their directory claims.

What is checked before: the number of entries and the size of their directory, which are all that opening reads. What is
checked while bytes come out, because an archive may lie: the size of each file, of all together, and the ratio.
"""

from __future__ import annotations

import stat
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from docmill.errors import CorruptZip, ZipBomb
from ingest.folder import key_of

_MIB: Final = 1024 * 1024
_PIECE: Final = 256 * 1024
#: A small file may be packed by any ratio: a page of blanks is not a bomb.
_RATIO_COUNTS_FROM: Final = _MIB
#: What the directory may hold for each entry: 46 bytes, the name, extra fields.
_DIRECTORY_BYTES_EACH: Final = 1024
_STORED_OR_DEFLATED: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ARCHIVES: Final = (
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"Rar!",
    b"BZh",
    b"\xfd7zXZ",
    b"\x28\xb5\x2f\xfd",
)
_ENCRYPTED: Final = 0x1
_UTF8: Final = 0x800

_END: Final = struct.Struct("<4s4H2LH")
_END64: Final = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64_BYTES: Final = 20
_LONGEST_COMMENT: Final = 65_535


@dataclass(frozen=True, slots=True)
class ZipLimits:
    """What an archive may be at most. Deflate packs a PDF by 20 at the outside; a bomb needs hundreds."""

    max_files: int = 10_000
    max_file_bytes: int = 200 * _MIB
    max_total_bytes: int = 2048 * _MIB
    max_ratio: int = 200


@dataclass(frozen=True, slots=True)
class Unpacked:
    """One file of the archive. `name` is its path in it, fit for any database and screen; it is a label, no more."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class LeftOut:
    """An entry that is not taken, and why."""

    name: str
    code: str
    reason: str


def unpack(file: BinaryIO, limits: ZipLimits | None = None, *, start: int = 0) -> Iterator[Unpacked | LeftOut]:
    """Every entry but folders, in the archive's order, one at a time, from `start` on; no two have the same name.

    Raises CorruptZip, and ZipBomb: before the first entry for what the directory says, later for what comes out.
    """
    limits = limits or ZipLimits()
    _check_directory(file, limits)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > limits.max_files:
                raise _too_many(len(entries), limits)
            total = sum(entry.file_size for entry in entries[:start])
            for entry, name in islice(zip(entries, _names(entries), strict=True), start, None):
                one = _take(archive, entry, name, limits, limits.max_total_bytes - total)
                total += len(one.data) if isinstance(one, Unpacked) else 0
                yield one
    except (zipfile.BadZipFile, NotImplementedError, EOFError, UnicodeDecodeError, ValueError, OSError) as error:
        raise CorruptZip(f"the archive cannot be read ({error}): pack it again") from error


def _names(entries: list[zipfile.ZipInfo]) -> Iterator[str]:
    """A name that comes again gets a number."""
    seen: Counter[str] = Counter()
    for entry in entries:
        name = key_of(_name_of(entry))
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name}#{seen[name]}"


def _take(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, limits: ZipLimits, left: int
) -> Unpacked | LeftOut:
    refusal = _refusal(entry, limits)
    if refusal is not None:
        return LeftOut(name, *refusal)
    try:
        data = _read(archive, entry, limits, left)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        return LeftOut(name, "corrupt_zip", f"the entry cannot be unpacked ({error}): pack it again")
    if data is None:
        return LeftOut(name, "too_large", f"the file has more than {limits.max_file_bytes:,} bytes: split it")
    if data.startswith(_ARCHIVES):
        return LeftOut(name, "nested", "an archive in an archive is not opened: put its files into the outer one")
    return Unpacked(name, data)


def _refusal(entry: zipfile.ZipInfo, limits: ZipLimits) -> tuple[str, str] | None:
    """What the directory says against an entry."""
    path = PurePosixPath(_name_of(entry).replace("\\", "/"))
    if not path.name or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        return "bad_name", "the name leads out of the archive: pack the files below one folder"
    if path.parts[0] == "__MACOSX" or path.name in (".DS_Store", "Thumbs.db"):
        return "system_file", "a file that an operating system added: nothing is lost"
    if stat.S_ISLNK(entry.external_attr >> 16):
        return "link", "a link is not followed: pack the file itself"
    if entry.flag_bits & _ENCRYPTED:
        return "encrypted", "the entry needs a password: pack it without"
    if entry.compress_type not in _STORED_OR_DEFLATED:
        return "unsupported", "the entry is packed in a rare way: use `deflate`, as every tool does by default"
    if entry.file_size > limits.max_file_bytes:
        return "too_large", f"the file has {entry.file_size:,} bytes, the limit is {limits.max_file_bytes:,}: split it"
    return None


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limits: ZipLimits, left: int) -> bytes | None:
    """The bytes of an entry, or None if they are too many for one file. Raises ZipBomb."""
    pieces: list[bytes] = []
    size = 0
    with archive.open(entry) as stream:
        while piece := stream.read(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size > left:
                raise ZipBomb(f"the archive unpacks to more than {limits.max_total_bytes:,} bytes: split it")
            if size > max(_RATIO_COUNTS_FROM, entry.compress_size * limits.max_ratio):
                raise ZipBomb(f"{key_of(entry.filename)} unpacks to more than {limits.max_ratio} times its size")
            if size > limits.max_file_bytes:
                return None
    return b"".join(pieces)


def _name_of(entry: zipfile.ZipInfo) -> str:
    """The name as it was meant: without the UTF-8 mark, zipfile reads cp437, and Chinese Windows writes GBK."""
    if entry.flag_bits & _UTF8:
        return entry.filename or "unnamed"
    packed = entry.filename.encode("cp437", "replace")
    for encoding in ("utf-8", "gb18030"):
        try:
            return packed.decode(encoding) or "unnamed"
        except UnicodeDecodeError:
            continue
    return entry.filename


def _check_directory(file: BinaryIO, limits: ZipLimits) -> None:
    """Refuse a directory that is too large before zipfile reads it whole. Raises CorruptZip, ZipBomb."""
    size = file.seek(0, 2)
    tail_from = max(0, size - _END.size - _LONGEST_COMMENT - _LOCATOR64_BYTES - _END64.size)
    file.seek(tail_from)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise CorruptZip("the file is not a zip archive, or its end is missing: send it whole")
    _, _, _, _, count, directory_bytes, _, _ = _END.unpack_from(tail, at)
    at64 = at - _LOCATOR64_BYTES - _END64.size
    if at64 >= 0 and tail.startswith(b"PK\x06\x06", at64):
        *_, count, directory_bytes, _ = _END64.unpack_from(tail, at64)
    if count > limits.max_files or directory_bytes > limits.max_files * _DIRECTORY_BYTES_EACH:
        raise _too_many(count, limits)
    file.seek(0)


def _too_many(count: int, limits: ZipLimits) -> ZipBomb:
    return ZipBomb(f"the archive has {count:,} entries, the limit is {limits.max_files:,}: split it")
