"""Odd, broken and hostile files through the product's own door and parser: each must end in a typed outcome in time.

`python -m bench.robust FOLDER [--sample N] [--only TEXT]`. Two processes call `accept` and `prepare` as workers do; the
characters that were read are compared with the better of PyMuPDF and pdfplumber.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import psutil

from bench.peers import Peer
from bench.report import Figure, finish, show
from docmill.errors import DocmillError
from docmill.types import PreparedDocument, Source
from ingest.accept import IngestConfig, accept
from preprocess import process
from preprocess.prepare import PrepareConfig, prepare
from preprocess.running import START_SECONDS

#: Seconds over the wall limit within which a document must be given up: the kill of its process group.
GRACE: Final = 5.0
#: The parents' memory is looked at after so many files each.
EVERY: Final = 25
_KINDS: Final = "LNPS"
#: Signs that a reader puts in or takes away: a hyphen at a line's end that is mended, the mark of a raised note.
_MENDED: Final = "-\u00ad\u2010^\ufffd"
#: Files that are refused for a reason which no reading cures: their text does not count.
_REFUSED: Final = frozenset({"corrupt_pdf", "not_a_pdf", "encrypted", "empty_file", "too_large", "too_many_pages"})
_MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one file ended. `code` is done, partial, or the error's; memory in bytes."""

    path: str
    code: str
    message: str
    seconds: float
    pages: int
    characters: int
    child_peak: int
    parent: int
    parent_rss: int


def visible(texts: Iterable[str]) -> int:
    """Characters that carry meaning: letters, digits, punctuation, signs; no spaces, no unknown glyphs."""
    return sum(unicodedata.category(char)[0] in _KINDS and char not in _MENDED for text in texts for char in text)


def texts_of(prepared: PreparedDocument) -> Iterator[str]:
    """All text of a document, whatever its kind; what nobody sees is kept too, apart."""
    for page in prepared.pages:
        for block in (*page.blocks, *page.hidden):
            yield block.printed.text
            yield from (cell.text for cell in (block.table.cells if block.table else ()))


def read(path: Path, config: PrepareConfig) -> Outcome:
    """One file as a worker takes it."""
    start = time.monotonic()
    code, message, pages, characters = "done", "", 0, 0
    _forget_peak()
    try:
        data = path.read_bytes()
        document = accept(data, name=path.name, tenant="bench", source=Source.CLI, config=IngestConfig())
        prepared = prepare(data, document.document_id, config)
        pages, characters = len(prepared.pages), visible(texts_of(prepared))
        code, message = ("partial", "; ".join(prepared.warnings)) if prepared.warnings else ("done", "")
    except DocmillError as error:
        code, message = error.code, str(error)
    rss = psutil.Process().memory_info().rss
    took = time.monotonic() - start
    return Outcome(str(path), code, message, took, pages, characters, _peak(), os.getpid(), rss)


def _forget_peak() -> None:
    pid = process.child_pid()
    if pid is not None:
        Path(f"/proc/{pid}/clear_refs").write_text("5")


def _peak() -> int:
    """The most resident memory that the child has had since it was last forgotten; 0 if it is gone."""
    pid = process.child_pid()
    if pid is None or not Path(f"/proc/{pid}").exists():
        return 0
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def read_all(files: Sequence[Path], config: PrepareConfig, workers: int) -> tuple[list[Outcome], int]:
    """The outcomes, and how many of our own processes died."""
    spawn = multiprocessing.get_context("spawn")
    outcomes: list[Outcome] = []
    with ProcessPoolExecutor(
        workers, spawn, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_DFL)
    ) as pool:
        try:
            for outcome in pool.map(read, files, [config] * len(files)):
                outcomes.append(outcome)
                print(f"\r{len(outcomes)}/{len(files)} {outcome.code:16}", end="", file=sys.stderr, flush=True)
        except BrokenProcessPool:
            return outcomes, 1
    print(file=sys.stderr)
    return outcomes, 0


@dataclass(frozen=True, slots=True)
class Compared:
    """Characters of a file that opens: ours, PyMuPDF's, pdfplumber's."""

    path: str
    ours: int
    pymupdf: int
    pdfplumber: int
    code: str

    @property
    def best(self) -> int:
        return max(self.pymupdf, self.pdfplumber)


def compare(outcomes: Sequence[Outcome]) -> list[Compared]:
    """Every file that we or a peer read anything of."""
    peers = [Peer("pymupdf"), Peer("pdfplumber")]
    rows = []
    for outcome in outcomes:
        counts = [visible(peer.read(Path(outcome.path)).get("pages", ())) for peer in peers]
        rows.append(Compared(outcome.path, outcome.characters, counts[0], counts[1], outcome.code))
    for peer in peers:
        peer.close()
    return [row for row in rows if row.ours or row.best]


def main() -> int:
    options = _options()
    files = sorted(path for path in options.folder.rglob("*") if path.is_file() and options.only in str(path))
    files = files[:: max(1, len(files) // options.sample)] if options.sample else files
    config = PrepareConfig(options.tokenizer, wall_seconds=options.wall, memory_bytes=options.memory)
    start = time.monotonic()
    outcomes, died = read_all(files, config, options.workers)
    seconds = time.monotonic() - start
    _report_outcomes(outcomes)
    rows = compare(outcomes) if options.peers else []
    _report_characters(rows)
    figures = _figures(files, outcomes, rows, died, config)
    details = {"outcomes": [asdict(one) for one in outcomes], "characters": [asdict(row) for row in rows]}
    return finish("robust", [*figures, Figure("seconds", seconds)], details)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sample", type=int, default=0, help="read about so many files only")
    parser.add_argument("--only", default="", help="files with this in their path only")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--peers", action=argparse.BooleanOptionalAction, default=True, help="compare the characters")
    parser.add_argument("--wall", type=float, default=120.0, help="seconds for each document")
    parser.add_argument("--memory", type=int, default=2 * 1024**3, help="bytes of address space for each parser")
    parser.add_argument("--tokenizer", type=Path, default=Path(".models/smollm2"))
    return parser.parse_args()


def _report_outcomes(outcomes: Sequence[Outcome]) -> None:
    counts = Counter(outcome.code for outcome in outcomes)
    show("Outcomes", ["outcome", "files"], sorted(counts.items()))
    slow = sorted(outcomes, key=lambda one: -one.seconds)[:10]
    show("Slowest", ["s", "child MiB", "outcome", "file"], [_line(outcome) for outcome in slow])
    large = sorted(outcomes, key=lambda one: -one.child_peak)[:5]
    show("Largest child", ["s", "child MiB", "outcome", "file"], [_line(outcome) for outcome in large])
    show("Parents", ["pid", "files", "RSS MiB"], _parents(outcomes))


def _report_characters(rows: Sequence[Compared]) -> None:
    less = sorted((row for row in rows if row.ours < row.best), key=lambda row: row.ours - row.best)
    less.sort(key=lambda row: row.code in _REFUSED)
    columns = ["ours", "pymupdf", "pdfplumber", "outcome", "file"]
    cells = [(row.ours, row.pymupdf, row.pdfplumber, row.code, _short(row.path)) for row in less[:40]]
    show(f"Fewer characters than the better library ({len(less)} files)", columns, cells)


def _line(outcome: Outcome) -> tuple[float, int, str, str]:
    return outcome.seconds, outcome.child_peak // _MIB, outcome.code, _short(outcome.path)


def _short(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def _parents(outcomes: Sequence[Outcome]) -> Iterator[tuple[int, int, str]]:
    for parent in sorted({outcome.parent for outcome in outcomes}):
        sizes = _sizes(outcomes, parent)
        marks = [*sizes[::EVERY], sizes[-1]]
        yield parent, len(sizes), " ".join(str(size // _MIB) for size in marks)


def _sizes(outcomes: Sequence[Outcome], parent: int) -> list[int]:
    return [outcome.parent_rss for outcome in outcomes if outcome.parent == parent]


def _figures(
    files: Sequence[Path], outcomes: Sequence[Outcome], rows: Sequence[Compared], died: int, config: PrepareConfig
) -> list[Figure]:
    crashed = sum(outcome.code == "parser_crashed" for outcome in outcomes)
    hung = sum(outcome.seconds > config.wall_seconds + GRACE + START_SECONDS for outcome in outcomes)
    grown = [_growth(_sizes(outcomes, parent)) for parent in {outcome.parent for outcome in outcomes}]
    return [
        Figure("files", len(files)),
        Figure("without_outcome", len(files) - len(outcomes), "== 0"),
        Figure("worker_deaths", died, "== 0"),
        Figure("child_crashes", crashed, "== 0"),
        Figure("hangs", hung, "== 0"),
        Figure("parent_growth_mib", max(grown, default=0), "<= 16"),
        Figure("child_peak_mib", max(outcome.child_peak for outcome in outcomes) // _MIB, "<= 2048"),
        *(_characters(rows) if rows else ()),
    ]


def _characters(rows: Sequence[Compared]) -> list[Figure]:
    opened = [row for row in rows if row.code not in _REFUSED]
    less = sum(row.ours < row.best for row in opened)
    theirs = [max(1, sum(counts)) for counts in zip(*((row.pymupdf, row.pdfplumber) for row in opened), strict=True)]
    ours = sum(row.ours for row in opened)
    return [
        Figure("characters_of_pymupdf", ours / theirs[0], ">= 1"),
        Figure("characters_of_pdfplumber", ours / theirs[1], ">= 1"),
        Figure("characters_of_the_better", ours / max(1, sum(row.best for row in opened))),
        Figure("files_below_the_better", less / max(1, len(opened))),
    ]


def _growth(sizes: Sequence[int]) -> float:
    """MiB by which the last tenth of a parent's run is above the tenth after its first quarter."""
    tenth = max(1, len(sizes) // 10)
    early, late = sizes[len(sizes) // 4 :][:tenth], sizes[-tenth:]
    return (min(late) - min(early)) / _MIB


if __name__ == "__main__":
    raise SystemExit(main())
