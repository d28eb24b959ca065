"""Cases about files and duplicates: odd names, other content, half-written files, templates."""

from __future__ import annotations

import io
import os
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.case_reading import Seen, bare, complaints
from docmill.errors import DocmillError
from docmill.likeness import jaccard
from docmill.types import Source
from ingest.accept import IngestConfig, accept
from ingest.folder import path_of, scan
from ingest.folder import read as read_ready
from preprocess.dedup import likeness

Read = Callable[[Path], Seen]
_SETTLE_SECONDS = 5.0
_LARGEST = 1 << 28


def not_pdfs(folder: Path, expect: Mapping[str, Any], read: Read) -> Iterator[str]:
    """Files of other content are refused as such; PDFs with something before or after them are read."""
    for name in expect["rejected"]:
        error = read(folder / name).error
        if error != "not_a_pdf":
            yield f"{name}: {error or 'was read'}, expected not_a_pdf"
    for name, text in expect["ok"].items():
        seen = read(folder / name)
        if bare(text) not in seen.plain:
            yield f"{name}: {text} is not in the text ({seen.error})"


def still_written(paths: list[Path], expect: Mapping[str, Any], read: Read) -> Iterator[str]:
    """The half file is not taken by the inbox before it has settled, and refused if it is; the whole one is read."""
    partial, whole = paths
    if read(partial).error not in ("corrupt_pdf", "truncated"):
        yield f"the half file gives {read(partial).error or 'a document'}, expected {expect['partial_expect']}"
    with tempfile.TemporaryDirectory() as home:
        yield from _taken_once(Path(home), partial.read_bytes(), whole.read_bytes())
    wanted = {key: value for key, value in expect.items() if key not in ("steps", "partial_expect")}
    yield from complaints(read(whole), wanted)


def _taken_once(inbox: Path, half: bytes, whole: bytes) -> Iterator[str]:
    file = _place(inbox) / "growing.pdf"
    file.write_bytes(half)
    first = scan(inbox, {}, now=0.0, settle_s=_SETTLE_SECONDS)
    file.write_bytes(whole)
    seen = {entry.key: entry for entry in first.observed}
    second = scan(inbox, seen, now=_SETTLE_SECONDS + 1, settle_s=_SETTLE_SECONDS)
    seen = {entry.key: entry for entry in second.observed}
    third = scan(inbox, seen, now=2 * _SETTLE_SECONDS + 2, settle_s=_SETTLE_SECONDS)
    if first.ready or second.ready or len(third.ready) != 1:
        counts = [len(found.ready) for found in (first, second, third)]
        yield f"the growing file is taken {counts} times in three scans, expected [0, 0, 1]"


def _place(inbox: Path) -> Path:
    folder = inbox / "tenant" / "profile"
    folder.mkdir(parents=True)
    return folder


def names(paths: list[Path], expect: Mapping[str, Any]) -> Iterator[str]:
    """Every file of the archive comes in through the inbox, under a name that a database holds and that leads back.

    What an inbox must leave alone (a hidden file) is accepted through the API's door instead.
    """
    with tempfile.TemporaryDirectory() as home:
        folder = _place(Path(home))
        written = _unpacked(paths[0], folder)
        seen = {entry.key: entry for entry in scan(Path(home), {}, now=0.0, settle_s=1.0).observed}
        ready = {path_of(file.key): file for file in scan(Path(home), seen, now=2.0, settle_s=1.0).ready}
        taken = 0
        for name, data in written.items():
            file = ready.get(f"tenant/profile/{name}")
            found = read_ready(file, _LARGEST) if file else data
            taken += found == data and _accepted(data, file.name if file else name)
        if taken != expect["documents"]:
            yield f"{taken} of {expect['documents']} files are accepted"


def _unpacked(archive: Path, folder: Path) -> dict[str, bytes]:
    written = {}
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as opened:
        for member in opened.getmembers():
            content = opened.extractfile(member) if member.isfile() else None
            if content is not None:
                name = member.name.rpartition("/")[2]
                written[name] = content.read()
                Path(os.fsdecode(os.fsencode(folder) + b"/" + os.fsencode(name))).write_bytes(written[name])
    return written


def _accepted(data: bytes, name: str) -> bool:
    try:
        document = accept(data, name=name, tenant="t", source=Source.BUCKET, config=IngestConfig())
    except DocmillError:
        return False
    return bool(document.document_id)


def duplicates(paths: list[Path], expect: Mapping[str, Any], read: Read) -> Iterator[str]:
    """Alike documents are duplicates only if their facts are the same; else they share a template."""
    one, other = (read(path).document for path in paths)
    if one is None or other is None:
        yield "a document is not read"
        return
    first, second = (likeness(document.pages, document.signature) for document in (one, other))
    alike = jaccard(first.shingles, second.shingles)
    same = first.fingerprint == second.fingerprint
    relation = "duplicate" if same else "same_template" if alike >= 0.5 else "different"
    if relation != expect["relation"]:
        yield f"the two are taken for {relation} (likeness {alike:.2f}), expected {expect['relation']}"
