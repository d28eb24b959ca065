"""Pages of plain text through the product against what PyMuPDF takes to give their text, and a long file's memory.

`python -m bench.throughput [--pages N] [FILE]`. The pages are made here (prose in two fonts, a running head, a page
number), or a file is given. CPU seconds, so that a busy machine changes little; both sides in turns, the best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil
import pymupdf

from bench.report import Figure, finish, show
from preprocess import process
from preprocess.prepare import PrepareConfig, prepare

ROUNDS: Final = 3
_LINES: Final = 44
_PROSE: Final = (
    "The Group recognised interest income of 1,204,331.20 thousand in the period, which is 3.4% more than in the year "
    "before, and the allowance for expected credit losses was raised to 88,417.05 as the outlook grew weaker."
)


def text_pages(pages: int) -> bytes:
    """A document of plain text: no rules, no images, no figures in columns."""
    document = pymupdf.open()
    for number in range(1, pages + 1):
        page = document.new_page(width=595, height=842)
        writer = pymupdf.TextWriter(page.rect)
        writer.append((72, 40), "Annual report of Example Holdings plc", fontsize=9)
        for line in range(_LINES):
            start = (line * 37 + number * 11) % 100
            writer.append((72, 80 + 16 * line), (_PROSE * 2)[start : start + 88], fontsize=10)
        writer.append((290, 820), str(number), fontsize=9)
        writer.write_text(page)
    return bytes(document.tobytes(deflate=True, garbage=3))


def cpu_of(action: Callable[[], object], meter: Callable[[], float]) -> float:
    before = meter()
    action()
    return meter() - before


def raw(data: bytes, how: str) -> None:
    """PyMuPDF's own text of every page."""
    with pymupdf.open(stream=data, filetype="pdf") as document:
        for page in document:
            page.get_text(how)


def child_cpu() -> float:
    pid = process.child_pid()
    if pid is None:
        return 0.0
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def child_peak_mib() -> float:
    pid = process.child_pid()
    text = Path(f"/proc/{pid}/status").read_text() if pid is not None else "VmHWM: 0 kB"
    return int(text.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> int:
    options = _options()
    data = options.file.read_bytes() if options.file else text_pages(options.pages)
    with pymupdf.open(stream=data, filetype="pdf") as document:
        pages = document.page_count
    config = PrepareConfig(options.tokenizer, wall_seconds=600, cpu_seconds=600)
    process.start_child(config)
    best = {name: float("inf") for name in ("docmill", "text", "rawdict")}
    for _ in range(ROUNDS):
        best["docmill"] = min(best["docmill"], cpu_of(lambda: prepare(data, "doc", config), child_cpu))
        for how in ("text", "rawdict"):
            best[how] = min(best[how], cpu_of(lambda how=how: raw(data, how), time.process_time))  # type: ignore[misc]  # mypy sees no default
    peak = child_peak_mib()
    process.stop_child()
    rows = [(name, 1000 * seconds / pages, pages / seconds) for name, seconds in best.items()]
    show(f"{pages} pages of text", ["reader", "CPU ms/page", "pages/s"], rows)
    return finish("throughput", _figures(best, peak, pages))


def _figures(best: dict[str, float], peak: float, pages: int) -> list[Figure]:
    return [
        Figure("pages", pages),
        Figure("pages_per_second", pages / best["docmill"]),
        Figure("of_raw_text", best["text"] / best["docmill"]),
        Figure("of_raw_character_boxes", best["rawdict"] / best["docmill"], ">= 0.8"),
        Figure("child_peak_mib", peak, "<= 1024"),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", help="a PDF to read instead of the pages made here")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--tokenizer", type=Path, default=Path(".models/smollm2"))
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
