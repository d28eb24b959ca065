"""The two libraries that everything is compared with, each in a process of its own with a product child's limits.

`python -m bench.peers NAME` answers paths on stdin with JSON lines on stdout: the text of each page, or an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from bench.report import RESULTS

MEMORY_BYTES: Final = 2 * 1024**3
SECONDS: Final = 60.0
UNKNOWN: Final = "\ufffd"

Answer = dict[str, Any]


def _pymupdf(path: Path) -> Iterator[str]:
    import pymupdf

    pymupdf.TOOLS.mupdf_display_errors(False)
    pymupdf.TOOLS.mupdf_display_warnings(False)
    with pymupdf.open(stream=path.read_bytes(), filetype="pdf") as document:
        for number in range(document.page_count):
            yield from _page(lambda number=number: str(document[number].get_text()))  # type: ignore[misc]  # mypy sees no default


def _pdfplumber(path: Path) -> Iterator[str]:
    import pdfplumber

    with pdfplumber.open(path) as document:
        for page in document.pages:
            yield from _page(lambda page=page: "".join(map(_plumbed, page.chars)))  # type: ignore[misc]  # mypy sees no default
            page.close()


def _plumbed(char: dict[str, Any]) -> str:
    """A character; pdfplumber writes the code of one that it does not know."""
    return UNKNOWN if char["text"].startswith("(cid:") else str(char["text"])


def _page(read: Callable[[], str]) -> Iterator[str]:
    try:
        yield read()
    except _errors():
        yield ""


def _errors() -> tuple[type[BaseException], ...]:
    import pymupdf
    from pdfminer.psexceptions import PSException
    from pdfplumber.utils.exceptions import PdfminerException

    usual = (RuntimeError, ValueError, LookupError, TypeError, AttributeError, AssertionError, ArithmeticError, OSError)
    return (*usual, RecursionError, PSException, PdfminerException, pymupdf.mupdf.FzErrorBase)


READERS: Final[dict[str, Callable[[Path], Iterator[str]]]] = {"pymupdf": _pymupdf, "pdfplumber": _pdfplumber}


class Peer:
    """One library's process; what it answered before is taken from a file under `bench/results/`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._cache = RESULTS / "peers" / name
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
        line = _line(process.stdout.fileno(), SECONDS)
        if line is None:
            process.kill()
            return {"error": f"over {SECONDS:g} s"}
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
    pages: list[str] = []
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
