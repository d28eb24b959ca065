"""The two libraries that everything is compared with, each in a process of its own with a product child's limits.

`python -m bench.peers NAME` answers paths on stdin with JSON lines on stdout: the text of each page (or its numbers,
and those within what the library takes for a table), or an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from bench.report import RESULTS

MEMORY_BYTES: Final = 2 * 1024**3
SECONDS: Final = 60.0
UNKNOWN: Final = "\ufffd"
#: To be raised when a peer is asked for something else: what was kept of it is then asked again.
_VERSION: Final = 2
_NUMBER: Final = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_FIGURE: Final = re.compile(r"[-(（$¥€£ ]*[0-9]")
_FEWEST_FIGURES: Final = 4
_HALF_WIDTH: Final = {0xFF0C: ",", 0xFF0E: "."} | {0xFF10 + digit: str(digit) for digit in range(10)}

Answer = dict[str, Any]
Box = Sequence[float]


def _pymupdf(path: Path) -> Iterator[Any]:
    yield from _each_pymupdf(path, _pymupdf_text)


def _pymupdf_text(page: Any) -> str:
    """The words of a page; one that is printed again on the spot (fake bold) once."""
    return " ".join({(round(word[0]), round(word[1]), word[4]): word[4] for word in page.get_text("words")}.values())


def _pymupdf_numbers(path: Path) -> Iterator[Any]:
    yield from _each_pymupdf(path, _pymupdf_page)


def _each_pymupdf(path: Path, read: Callable[[Any], Any]) -> Iterator[Any]:
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    with pymupdf.open(stream=path.read_bytes(), filetype="pdf") as document:
        for number in range(document.page_count):
            yield _guarded(partial(lambda number: read(document[number]), number))


def _pymupdf_page(page: Any) -> Answer:
    words = [(word[:4], word[4]) for word in page.get_text("words")]
    found = page.find_tables()
    return _numbers_page(words, [table.bbox for table in found.tables if is_table(table.extract())] if found else [])


def _pdfplumber(path: Path) -> Iterator[Any]:
    yield from _each_pdfplumber(path, lambda page: "".join(map(_plumbed, page.dedupe_chars().chars)))


def _pdfplumber_numbers(path: Path) -> Iterator[Any]:
    yield from _each_pdfplumber(path, _pdfplumber_page)


def _each_pdfplumber(path: Path, read: Callable[[Any], Any]) -> Iterator[Any]:
    import pdfplumber

    with pdfplumber.open(path) as document:
        for page in document.pages:
            yield _guarded(partial(read, page))
            page.close()


def _pdfplumber_page(page: Any) -> Answer:
    words = [((word["x0"], word["top"], word["x1"], word["bottom"]), word["text"]) for word in page.extract_words()]
    return _numbers_page(words, [table.bbox for table in page.find_tables() if is_table(table.extract())])


def is_table(rows: Sequence[Sequence[str | None]]) -> bool:
    """Whether what a library calls a table is one: two columns, and some cells that start with a figure."""
    figures = sum(bool(_FIGURE.match(cell)) for row in rows for cell in row if cell)
    return len(rows) > 1 and len(rows[0]) > 1 and figures >= _FEWEST_FIGURES


def _numbers_page(words: Sequence[tuple[Box, str]], tables: Sequence[Box]) -> Answer:
    tabled = [word for word in words if any(_holds(table, word[0]) for table in tables)]
    return {
        "numbers": [number for _, text in words for number in numbers(text)],
        "tabled": [number for _, text in tabled for number in numbers(text)],
        "tables": len(tables),
    }


def _holds(table: Box, word: Box) -> bool:
    x, y = (word[0] + word[2]) / 2, (word[1] + word[3]) / 2
    return table[0] <= x <= table[2] and table[1] <= y <= table[3]


def numbers(text: str) -> list[str]:
    """The numbers of a text in half-width form: digits with the points and commas between them."""
    return _NUMBER.findall(text.translate(_HALF_WIDTH))


def _plumbed(char: dict[str, Any]) -> str:
    """A character; pdfplumber writes the code of one that it does not know."""
    return UNKNOWN if char["text"].startswith("(cid:") else str(char["text"])


def _guarded(read: Callable[[], Any]) -> Any:
    """What a page gives; a damaged one gives nothing."""
    try:
        return read()
    except _errors():
        return ""


def _errors() -> tuple[type[BaseException], ...]:
    import pymupdf
    from pdfminer.psexceptions import PSException
    from pdfplumber.utils.exceptions import PdfminerException

    usual = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, OSError)
    return (*usual, RecursionError, PSException, PdfminerException, pymupdf.mupdf.FzErrorBase)


READERS: Final[dict[str, Callable[[Path], Iterator[Any]]]] = {
    "pymupdf": _pymupdf,
    "pdfplumber": _pdfplumber,
    "pymupdf-numbers": _pymupdf_numbers,
    "pdfplumber-numbers": _pdfplumber_numbers,
}


class Peer:
    """One library's process; what it answered before is taken from a file under `bench/results/`."""

    def __init__(self, name: str, seconds: float = SECONDS) -> None:
        self.name, self._seconds = name, seconds
        self._cache = RESULTS / "peers" / f"{name}-{_VERSION}"
        self._cache.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, path: Path) -> Answer:
        """`{"pages": [text, ...], "seconds": cpu}` or `{"error": why}`."""
        kept = self._cache / f"{hashlib.sha256(path.read_bytes()).hexdigest()}.json"
        if not kept.exists():
            kept.write_text(json.dumps(self._ask(path)))
        answer: Answer = json.loads(kept.read_text())
        return answer

    def _ask(self, path: Path) -> Answer:
        process = self._running()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{path}\n".encode("utf-8", "surrogateescape"))
        process.stdin.flush()
        line = _line(process.stdout.fileno(), self._seconds)
        if line is None:
            process.kill()
            return {"error": f"over {self._seconds:g} s"}
        if not line:
            return {"error": f"died with {process.wait()}"}
        answer: Answer = json.loads(line)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.peers", self.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def _line(source: int, seconds: float) -> bytes | None:
    """The next line; empty at the end of the stream, None when it does not come in time."""
    deadline, parts = time.monotonic() + seconds, b""
    while not parts.endswith(b"\n"):
        if not select.select([source], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return None
        part = os.read(source, 1 << 20)
        if not part:
            return b""
        parts += part
    return parts


def _serve(name: str) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_answer(name, Path(os.fsdecode(line[:-1])))) + "\n")
        answers.flush()


def _answer(name: str, path: Path) -> Answer:
    start = time.process_time()
    pages: list[Any] = []
    error = ""
    with contextlib.suppress(MemoryError):
        try:
            pages.extend(READERS[name](path))
        except _errors() as raised:
            error = f"{type(raised).__name__}: {raised}"
    answer: Answer = {"pages": pages, "seconds": time.process_time() - start}
    return answer if pages or not error else {"error": error}


if __name__ == "__main__":
    _serve(sys.argv[1])
