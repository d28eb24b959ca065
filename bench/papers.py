"""Real documents for a benchmark: PDFs parsed once, in windows of about ten pages, kept under bench/results/."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pymupdf
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from bench.report import RESULTS
from docmill.codec import pack, unpack
from docmill.errors import DocmillError
from docmill.types import PreparedDocument
from preprocess.prepare import PrepareConfig, prepare
from preprocess.version import PARSER

#: Pages of a window; a document of up to a fifth more is taken whole.
PAGES = 10
#: Windows that are taken of a long document: its first pages and, evenly spaced, others.
WINDOWS = 3


@dataclass(frozen=True, slots=True)
class Paper:
    """A prepared document, and the file and first page that it was cut from."""

    name: str
    document: PreparedDocument


def papers(folders: Iterable[Path]) -> Iterator[Paper]:
    """The documents of all PDFs below the folders; a file that cannot be read is said and left out."""
    files = sorted(file for folder in folders for file in ([folder] if folder.is_file() else folder.rglob("*.pdf")))
    for file in files:
        for name, data in _windows(file):
            paper = _prepared(name, data)
            if paper is not None:
                yield paper


def _windows(file: Path) -> Iterator[tuple[str, bytes]]:
    data = file.read_bytes()
    try:
        whole = pymupdf.open(stream=data, filetype="pdf")
    except (pymupdf.FileDataError, pymupdf.EmptyFileError):
        return
    if whole.needs_pass or len(whole) <= PAGES * 1.2:
        yield file.name, data
        return
    last = len(whole) - PAGES
    for start in sorted({last * number // (WINDOWS - 1) for number in range(WINDOWS)}):
        cut = pymupdf.open()
        cut.insert_pdf(whole, from_page=start, to_page=start + PAGES - 1)
        yield f"{file.name} p{start + 1}", cut.tobytes()


def _prepared(name: str, data: bytes) -> Paper | None:
    # The bytes of a cut window differ from run to run (PDF ids): its name and length of text are its identity.
    kept = RESULTS / "papers" / f"{hashlib.sha256(f'{PARSER} {name}'.encode()).hexdigest()[:24]}.bin"
    if kept.exists():
        held = kept.read_bytes()
        return Paper(name, unpack(held, PreparedDocument)) if held else None
    kept.parent.mkdir(parents=True, exist_ok=True)
    try:
        document = prepare(data, f"doc_{kept.stem}", PrepareConfig(_tokenizer(kept.parent)))
    except DocmillError as error:
        print(f"{name}: left out: {error}")
        kept.write_bytes(b"")
        return None
    kept.write_bytes(pack(document))
    return Paper(name, document)


def _tokenizer(folder: Path) -> Path:
    """A token for each word, each digit and each sign: lengths do not matter here."""
    file = folder / "tokenizer.json"
    if not file.exists():
        tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[a-zA-Z]+|\d|[^\sa-zA-Z\d]|\n"), "isolated")
        tokenizer.save(str(file))
    return file
