"""The public bug reports, one case each: `python -m bench.cases FOLDER [NAME...]`, FOLDER with `*.expected.json`.

Prints for each case its score (the share of its expected facts that hold) and what does not hold. Queue scenarios are
proven by the integration tests that are named, and count neither as passed nor as failed.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import psutil

from bench.case_files import duplicates, names, not_pdfs, still_written
from bench.case_models import judged
from bench.case_reading import Seen, complaints
from bench.report import Figure, finish, show
from docmill.errors import DocmillError
from preprocess.process import stop_child
from workers.commands import parse_file

_SURVIVAL: Final = "tests/integration/test_survival.py::"
#: Scenarios need a whole stack, which these tests start.
ELSEWHERE: Final = {
    "46-visibility-timeout-double-run": f"{_SURVIVAL}test_a_message_that_comes_twice_is_carried_out_once",
    "47-worker-killed-midway": f"{_SURVIVAL}test_a_killed_parse_worker_loses_nothing",
    "49-broker-loses-queue": f"{_SURVIVAL}test_a_flushed_redis_loses_no_job",
}


@dataclass(frozen=True, slots=True)
class Result:
    """A case with what is wrong; `share` is the part of its facts that hold."""

    name: str
    kind: str
    state: str
    share: float
    reasons: tuple[str, ...]
    seconds: float = 0.0


def main(arguments: list[str]) -> int:
    folder, only = Path(arguments[0]), arguments[1:]
    cases = [json.loads(path.read_text()) for path in sorted(folder.glob("*.expected.json"))]
    results = [_run(case, folder) for case in cases if not only or any(case["case"].startswith(name) for name in only)]
    rows = [(r.name, r.kind, r.state, r.share, f"{r.seconds:.1f}", "; ".join(r.reasons)) for r in results]
    show("Cases", ("case", "kind", "state", "score", "s", "reason"), rows)
    judged_here = [result for result in results if result.state != "elsewhere"]
    passed = sum(result.state == "passed" for result in judged_here)
    figures = [
        Figure("passed", passed, f">= {len(judged_here)}"),
        Figure("cases", len(judged_here)),
        Figure("elsewhere", len(results) - len(judged_here)),
    ]
    return finish("cases", figures, rows)


def _run(case: Mapping[str, Any], folder: Path) -> Result:
    name, kind = str(case["case"]), str(case["kind"])
    inputs = [folder / path for path in case["input"]]
    if any(path.name.endswith(".scenario.json") for path in inputs):
        test = next((test for key, test in ELSEWHERE.items() if name.startswith(key)), _SURVIVAL)
        return Result(name, kind, "elsewhere", 0.0, (test,))
    started = time.monotonic()
    reasons = tuple(_way(case, inputs)(inputs, case["expect"]))
    share = max(0.0, 1 - len(reasons) / max(1, _facts(case["expect"])))
    state = "failed" if reasons else "passed"
    return Result(name, kind, state, share, reasons, time.monotonic() - started)


def _facts(expect: Mapping[str, Any]) -> int:
    return sum(len(wanted) if isinstance(wanted, list | dict) else 1 for wanted in expect.values())


Way = Callable[[list[Path], Mapping[str, Any]], Iterator[str]]


def _way(case: Mapping[str, Any], inputs: list[Path]) -> Way:
    """How a case is run, by what it gives and what it asks for."""
    expect = case["expect"]
    if any(path.name.endswith(".llm.json") for path in inputs):
        return _by_model
    if "rejected" in expect:
        return lambda paths, wanted: not_pdfs(paths[0], wanted, read)
    if "partial_expect" in expect:
        return lambda paths, wanted: still_written(paths, wanted, read)
    if inputs[0].suffix == ".tar":
        return names
    if "relation" in expect:
        return lambda paths, wanted: duplicates(paths, wanted, read)
    return _by_reading


def _by_reading(paths: list[Path], expect: Mapping[str, Any]) -> Iterator[str]:
    if "max_rss_mb" in expect:
        stop_child()  # its memory is what it once needed: a bound is held by a child that read nothing before
    yield from complaints(read(paths[0]), expect)
    if expect.get("others_finish"):
        with tempfile.TemporaryDirectory() as folder:
            other = Path(folder) / "other.pdf"
            other.write_bytes(_small_pdf())
            if read(other).document is None:
                yield "the next document is not read"


def _by_model(paths: list[Path], expect: Mapping[str, Any]) -> Iterator[str]:
    seen = read(paths[0])
    if seen.document is None:
        yield f"the document is not read: {seen.error}"
        return
    yield from judged(seen.document, json.loads(paths[1].read_text()), expect)


def read(path: Path) -> Seen:
    """One file by the product, as `docmill parse` reads it."""
    started = time.monotonic()
    try:
        document = parse_file(path)
    except DocmillError as error:
        seen = Seen(None, error.code)
    else:
        seen = Seen(document, shown="".join(chunk.text for chunk in document.chunks))
    return replace(seen, seconds=time.monotonic() - started, rss_mb=_peak_mb())


def _peak_mb() -> float:
    """The most memory that a parser child held: of the one that lives, or else of the last that died."""
    peaks = [_high_water(child.pid) for child in psutil.Process().children(recursive=True)]
    dead = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return max(peaks, default=dead)


def _high_water(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)


def _small_pdf() -> bytes:
    import pymupdf

    document = pymupdf.open()
    document.new_page().insert_text((72, 72), "Another document 1.00")
    return bytes(document.tobytes())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
