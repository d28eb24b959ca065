"""A long batch through the API: taken in, begun, cancelled, its files written; how fast, and in how much memory.

`python -m bench.batch [--lines N]`: `docmill up` with the scripted engine and real parts, the `openai` client, a batch
of 1,000 requests and one of N, each request for a document of its own. Memory is the peak of each program while its
batch is there. The documents are put into the store directly: to upload them is not what is measured.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil
from openai import OpenAI
from sqlalchemy import insert

from bench.report import Figure, finish, show
from storage.batch_schema import files
from storage.blobs import Blobs
from storage.database import connect
from tests.stack import STUB_LANE, Stack, forget, new_home, notice
from workers.processes import marked

SMALL: Final = 1_000
#: Results that the batch shall have before it is cancelled.
BEGUN: Final = 20
PROFILE: Final = "transaction-monitoring"
ENDPOINT: Final = "/v1/chat/completions"
PROGRAMS: Final = ("api", "batch", "parse", "gpu", "validate", "beat")
MIB: Final = 1024 * 1024
_TENANT: Final = "bench"
_AT_ONCE: Final = 5_000


@dataclass
class Run:
    """One batch: seconds to each state, what it came to, peaks of memory."""

    lines: int
    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def per_second(self, state: str) -> float:
        return self.lines / self.seconds[state]


def put_documents(stack: Stack, count: int) -> list[str]:
    """Documents that differ in a comment: as many contents, made fast."""
    blobs, engine = Blobs.at(stack.address.blob_url), connect(stack.address.database_url)
    body, made = notice(1), []
    for start in range(0, count, _AT_ONCE):
        rows = []
        for number in range(start, min(count, start + _AT_ONCE)):
            data = body + f"\n% {count}-{number}\n".encode()
            file_id = f"file-{count:08x}{number:016x}"
            key = f"files/{_TENANT}/{file_id}"
            blobs.put(key, data)
            rows.append(
                {"file_id": file_id, "tenant": _TENANT, "filename": f"{number}.pdf", "purpose": "user_data"}
                | {"kind": "pdf", "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "blob_key": key}
            )
        with engine.begin() as connection:
            connection.execute(insert(files), rows)
        made += [row["file_id"] for row in rows]
    engine.dispose()
    return made


def write_requests(path: Path, file_ids: list[str]) -> None:
    with path.open("w") as out:
        for number, file_id in enumerate(file_ids):
            content = [{"type": "file", "file": {"file_id": file_id}}]
            body = {"model": PROFILE, "messages": [{"role": "user", "content": content}]}
            line = {"custom_id": f"request-{number}", "method": "POST", "url": ENDPOINT, "body": body}
            out.write(json.dumps(line) + "\n")


@contextmanager
def peaks_of(stack: Stack, into: dict[str, float]) -> Iterator[None]:
    """Watch the resident memory of each program, all its processes together."""
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.25):
            for program in PROGRAMS:
                into[program] = max(into.get(program, 0.0), _resident(stack, program) / MIB)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _resident(stack: Stack, program: str) -> int:
    total = 0
    for process in marked(str(stack.data.resolve()), program):
        try:
            total += process.memory_info().rss
        except psutil.NoSuchProcess:
            continue
    return total


def run(stack: Stack, client: OpenAI, lines: int, limit_s: float) -> Run:
    """Documents, upload, batch, some results, cancel, files."""
    done = Run(lines)
    path = stack.home / f"{lines}.jsonl"
    write_requests(path, put_documents(stack, lines))
    with peaks_of(stack, done.peaks):
        with _timed(done, "upload"), path.open("rb") as source:
            file_id = client.files.create(file=source, purpose="batch").id
        made = client.batches.create(input_file_id=file_id, endpoint=ENDPOINT, completion_window="24h")

        def wait_for(holds: Callable[[Any], bool]) -> Any:
            until = time.monotonic() + limit_s
            while not holds(batch := client.batches.retrieve(made.id)):
                if time.monotonic() > until:
                    raise TimeoutError(f"{made.id} is {batch.status} {batch.request_counts} after {limit_s:.0f} s")
                time.sleep(0.2)
            return batch

        with _timed(done, "accepted"):
            wait_for(lambda batch: batch.status != "validating")
        with _timed(done, "begun"):
            wait_for(lambda batch: batch.request_counts.completed >= BEGUN)
        with _timed(done, "cancelled"):
            client.batches.cancel(made.id)
            ended = wait_for(lambda batch: batch.status == "cancelled")
        with _timed(done, "download"):
            rows = [_rows(client, name) for name in (ended.output_file_id, ended.error_file_id)]
    counts = ended.request_counts
    done.counts = {"total": counts.total, "completed": counts.completed, "failed": counts.failed, "rows": sum(rows)}
    return done


@contextmanager
def _timed(done: Run, name: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    done.seconds[name] = time.monotonic() - began


def _rows(client: OpenAI, file_id: str | None) -> int:
    """Rows of a file, counted as they come."""
    if file_id is None:
        return 0
    with client.files.with_streaming_response.content(file_id) as answer:
        return sum(1 for _ in answer.iter_lines())


def main() -> int:
    options = _options()
    home = new_home("bench-batch")
    lanes = home / "lanes.yaml"
    lanes.write_text(STUB_LANE.format(slots=4, delay=0.01))
    try:
        with Stack(home, {"DOCMILL_LANES": str(lanes)}).running(within_s=300) as stack:
            key = stack.command("keys", "create", _TENANT).split()[0]
            client = OpenAI(base_url=f"{stack.url}/v1", api_key=key, timeout=600)
            small, large = (run(stack, client, lines, options.limit) for lines in (SMALL, options.lines))
        # Before the folder goes: a hundred thousand documents take minutes to remove on a slow disk.
        _tell(small, large)
        return finish("batch", _figures(small, large))
    finally:
        forget(home)


def _tell(small: Run, large: Run) -> None:
    states = ("upload", "accepted", "begun", "cancelled", "download")
    rows = [(name, small.seconds[name], large.seconds[name], large.per_second(name)) for name in states]
    show("seconds", ["until", f"{small.lines:,} lines", f"{large.lines:,} lines", "lines/s"], rows)
    peaks = [(name, small.peaks[name], large.peaks[name], large.peaks[name] - small.peaks[name]) for name in PROGRAMS]
    show("peak resident memory, MiB", ["program", f"{small.lines:,} lines", f"{large.lines:,} lines", "more"], peaks)
    show("requests", list(large.counts), [list(one.counts.values()) for one in (small, large)])


def _figures(small: Run, large: Run) -> list[Figure]:
    unaccounted = large.counts["total"] - large.counts["completed"] - large.counts["failed"]
    return [
        Figure("lines", large.lines),
        Figure("accepted_lines_per_second", large.per_second("accepted")),
        Figure("cancelled_lines_per_second", large.per_second("cancelled")),
        Figure("completed_before_cancel", large.counts["completed"], f">= {BEGUN}"),
        Figure("unaccounted_lines", unaccounted, "== 0"),
        Figure("missing_rows", large.counts["total"] - large.counts["rows"], "== 0"),
        Figure("api_peak_mib", large.peaks["api"]),
        Figure("batch_peak_mib", large.peaks["batch"]),
        *(Figure(f"{name}_growth_mib", large.peaks[name] - small.peaks[name], "<= 64") for name in ("api", "batch")),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=1800, help="seconds that each state may take")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
