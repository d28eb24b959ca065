"""Reports, filings and invoices: speed, tables, and whether every printed digit comes out once, in its cell.

`python -m bench.finance FOLDER [--pages N]`. What is printed on a page is what PyMuPDF's words and pdfplumber's words
agree on: a number is lost if both have it more often than we, doubled if we have it more often than either. What stands
in a table is what a library's own table finder encloses.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pymupdf

from bench.peers import Peer, numbers
from bench.report import Figure, finish, show
from docmill.errors import DocmillError
from preprocess import process
from preprocess.prepare import PrepareConfig, prepare
from preprocess.tables_form import tables_form

PEERS = ("pymupdf-numbers", "pdfplumber-numbers")


@dataclass(frozen=True, slots=True)
class PageScore:
    """The numbers of one page. `lost` and `doubled` list what differs; their digits may be the same, regrouped."""

    page: int
    printed: int
    lost: list[str]
    doubled: list[str]
    digits_printed: int
    digits_lost: int
    digits_doubled: int
    tabled: int
    in_cells: int
    outside: list[str]


@dataclass(frozen=True, slots=True)
class FileScore:
    """A file's pages, and what it took to read them."""

    name: str
    seconds: float
    tables: int
    peer_tables: tuple[int, ...]
    peer_seconds: tuple[float, ...]
    pages: list[PageScore] = field(default_factory=list)
    error: str = ""

    def total(self, name: str) -> int:
        return sum(size if isinstance(size := getattr(page, name), int) else len(size) for page in self.pages)


def score_file(path: Path, config: PrepareConfig, peers: Sequence[Peer], most: int) -> FileScore:
    """Read a file (its first pages) by us and by the peers, and compare page by page."""
    with tempfile.TemporaryDirectory() as folder:
        cut = _cut(path, Path(folder), most)
        answers = [peer.read(cut) for peer in peers]
        before = _cpu_seconds()
        try:
            form = tables_form(prepare(cut.read_bytes(), path.name, config))
        except DocmillError as error:
            return FileScore(path.name, 0.0, 0, (), (), error=f"{error.code}: {error}")
    took = max(0.0, _cpu_seconds() - before)
    tables = sum(len(page["tables"]) for page in form["pages"])
    per_peer = tuple(sum(page["tables"] for page in answer.get("pages", ()) if page) for answer in answers)
    seconds = tuple(float(answer.get("seconds", 0.0)) for answer in answers)
    return FileScore(path.name, took, tables, per_peer, seconds, list(_score_pages(form, answers)))


def _cut(path: Path, folder: Path, most: int) -> Path:
    """The file, or a copy with its first pages."""
    with pymupdf.open(path) as document:
        if document.page_count <= most or document.needs_pass:
            return path
        document.select(range(most))
        copy = folder / path.name
        copy.write_bytes(document.tobytes(garbage=1, no_new_id=True))
    return copy


def _cpu_seconds() -> float:
    pid = process.child_pid()
    if pid is None:
        return 0.0
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def _score_pages(form: dict[str, Any], answers: Sequence[dict[str, Any]]) -> Iterator[PageScore]:
    for index, page in enumerate(form["pages"]):
        read = [answer["pages"][index] for answer in answers if len(answer.get("pages", ())) > index]
        if len(read) == len(answers) and all(read) and page["source"] == "text":
            yield _score_page(page, read)


def _score_page(page: dict[str, Any], peers: Sequence[dict[str, Any]]) -> PageScore:
    cells = Counter(number for table in page["tables"] for cell in table["cells"] for number in numbers(cell["text"]))
    text = Counter(number for block in page["blocks"] for number in numbers(block["text"]))
    ours = cells + text
    printed = [Counter(peer["numbers"]) for peer in peers]
    surely, perhaps = printed[0] & printed[1], printed[0] | printed[1]
    digits = [_digits(count) for count in (ours, *printed)]
    tabled = max((Counter(peer["tabled"]) & surely for peer in peers), key=Counter.total)
    outside = tabled - cells
    return PageScore(
        page=page["page"],
        printed=surely.total(),
        lost=sorted((surely - ours).elements()),
        doubled=sorted((ours - perhaps).elements()),
        digits_printed=(digits[1] & digits[2]).total(),
        digits_lost=((digits[1] & digits[2]) - digits[0]).total(),
        digits_doubled=(digits[0] - (digits[1] | digits[2])).total(),
        tabled=tabled.total(),
        in_cells=(tabled & cells).total(),
        outside=sorted(outside.elements()),
    )


def _digits(count: Counter[str]) -> Counter[str]:
    return Counter(digit for number in count.elements() for digit in number if digit.isdigit())


def main() -> int:
    options = _options()
    config = PrepareConfig(options.tokenizer, wall_seconds=600, cpu_seconds=600)
    peers = [Peer(name, seconds=300) for name in PEERS]
    process.start_child(config)
    files = sorted(path for path in options.folder.glob("*.pdf") if options.only in path.name)
    scores = [score_file(path, config, peers, options.pages) for path in files]
    for peer in peers:
        peer.close()
    process.stop_child()
    _report(scores)
    return finish("finance", _figures(scores), [asdict(score) for score in scores])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pages", type=int, default=8, help="the first pages of each file only")
    parser.add_argument("--only", default="", help="files with this in their name only")
    parser.add_argument("--tokenizer", type=Path, default=Path(".models/smollm2"))
    return parser.parse_args()


def _report(scores: Sequence[FileScore]) -> None:
    columns = [
        "file",
        "pages",
        "CPU s",
        "peers",
        "tables",
        "peers'",
        "numbers",
        "lost",
        "doubled",
        "tabled",
        "in cells",
    ]
    show("Files (peers: PyMuPDF, pdfplumber)", columns, [_row(score) for score in scores])
    bad = [(score.name, page) for score in scores for page in score.pages if page.lost or page.doubled]
    rows = [
        (name, page.page, page.digits_lost, page.digits_doubled, _few(page.lost), _few(page.doubled))
        for name, page in bad
    ]
    show("Numbers that differ", ["file", "page", "digits lost", "doubled", "lost", "doubled"], rows[:60])
    loose = [(score.name, page.page, len(page.outside), _few(page.outside)) for score in scores for page in score.pages]
    worst = sorted(loose, key=lambda row: -row[2])
    show("Numbers of a table in no cell", ["file", "page", "count", "numbers"], [row for row in worst[:30] if row[2]])


def _row(score: FileScore) -> tuple[object, ...]:
    totals = [score.total(name) for name in ("printed", "lost", "doubled", "tabled", "in_cells")]
    peers = "/".join(f"{seconds:.1f}" for seconds in score.peer_seconds)
    theirs = "/".join(map(str, score.peer_tables))
    return (score.name[:44], len(score.pages), score.seconds, peers or score.error, score.tables, theirs, *totals)


def _few(texts: Sequence[str]) -> str:
    return " ".join(texts[:6])[:60]


def _figures(scores: Sequence[FileScore]) -> list[Figure]:
    def total(name: str) -> int:
        return sum(score.total(name) for score in scores)

    pages = max(1, sum(len(score.pages) for score in scores))
    seconds = sum(score.seconds for score in scores)
    theirs = [sum(score.peer_seconds[place] for score in scores if score.peer_seconds) for place in (0, 1)]
    return [
        Figure("pages", pages),
        Figure("pages_per_cpu_second", pages / max(0.001, seconds)),
        Figure("cpu_seconds_per_page", seconds / pages),
        Figure("pymupdf_cpu_seconds_per_page", theirs[0] / pages),
        Figure("pdfplumber_cpu_seconds_per_page", theirs[1] / pages),
        Figure("tables", sum(score.tables for score in scores)),
        Figure("digits_kept", 1 - total("digits_lost") / max(1, total("digits_printed")), "== 1"),
        Figure("digits_once", 1 - total("digits_doubled") / max(1, total("digits_printed")), "== 1"),
        Figure("numbers_whole", 1 - total("lost") / max(1, total("printed"))),
        Figure("table_numbers_in_cells", total("in_cells") / max(1, total("tabled")), ">= 0.95"),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
