"""`docmill demo`: the whole of docmill on the sample documents, told as it happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from docmill.types import TERMINAL, Status
from workers import reports
from workers.local import DRAIN_S, Address, read_address
from workers.processes import alive
from workers.settings import Settings, child_environment, export, settings

#: Loading and warming up a small model on two cores takes about a minute; a busy machine needs more.
START_WITHIN_S = 120.0
#: The longest that the samples may take on a laptop.
DONE_WITHIN_S = 720.0
LOOK_EVERY_S = 0.5


def run_demo(samples: Path, at: Settings, out: Console) -> None:
    """Start (or find) the stack, drop the samples, watch, report."""
    address = start_stack(at, out)
    export(address.environment())
    settings.cache_clear()
    if at.inbox_folder is None:
        raise SystemExit(f"the demo drops files into a folder, and the inbox is {at.inbox}: unset DOCMILL_INBOX")
    names = drop(samples, at.inbox_folder, out)
    rows = watch(names, out)
    report(rows, address, out)
    unfinished = [row["name"] for row in rows if Status(row["status"]) not in TERMINAL]
    if len(rows) < len(names) or unfinished:
        out.print(f"[red]{len(names) - len(rows)} not seen, not ended: {unfinished}[/]; logs: {at.home / 'logs'}")
        raise SystemExit(1)


def start_stack(at: Settings, out: Console) -> Address:
    """The running stack of this home, or a new one in the background."""
    address = read_address(at)
    if address is not None and alive([address.pid]):
        out.print(f"using the stack that runs already (pid {address.pid})")
        return address
    (at.home / "logs").mkdir(parents=True, exist_ok=True)
    (at.home / "stack.json").unlink(missing_ok=True)
    with (at.home / "logs" / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.cli", "up"],
            env=child_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    with out.status("starting Valkey, PostgreSQL, workers and API"):
        return _wait_for_address(at, process)


def _wait_for_address(at: Settings, process: subprocess.Popen[bytes]) -> Address:
    until = time.monotonic() + START_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        address = read_address(at)
        if address is not None:
            return address
        time.sleep(LOOK_EVERY_S)
    raise SystemExit(f"the stack did not start within {START_WITHIN_S:.0f} s: see {at.home / 'logs' / 'up.log'}")


def stop_stack(at: Settings) -> bool:
    """End the stack of this home in order; False if none runs."""
    address = read_address(at)
    if address is None or not alive([address.pid]):
        return False
    os.kill(address.pid, signal.SIGTERM)
    # Its children drain for DRAIN_S at most; then it ends them and its servers.
    psutil.wait_procs([psutil.Process(address.pid)], timeout=DRAIN_S + 30)
    return not alive([address.pid])


def drop(samples: Path, inbox: Path, out: Console) -> list[str]:
    """Copy the sample tree into the inbox; what is there already stays as it is. The names of all."""
    names = []
    for path in sorted(path for path in samples.rglob("*") if path.is_file() and not path.name.startswith(".")):
        name = str(path.relative_to(samples))
        target = inbox / name
        if not target.exists() or target.stat().st_size != path.stat().st_size:
            target.parent.mkdir(parents=True, exist_ok=True)
            # Under another name first: a file that is still being written must not look like one that is there.
            partial = target.with_name(f".{target.name}.part")
            shutil.copyfile(path, partial)
            partial.rename(target)
        names.append(name)
    out.print(f"{len(names)} sample documents are in {inbox}/<tenant>/<profile>/")
    return names


def watch(names: Sequence[str], out: Console) -> list[dict[str, Any]]:
    """Show progress until every named file has ended, or the time is over; their rows of `v_results`."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[states]}"),
    )
    until = time.monotonic() + DONE_WITHIN_S
    with Progress(*columns, console=out) as progress:
        bar = progress.add_task("documents", total=len(names), states="")
        while True:
            rows = rows_of(names)
            ended = [row for row in rows if Status(row["status"]) in TERMINAL]
            progress.update(bar, completed=len(ended), states=_states(rows))
            if len(ended) == len(names) or time.monotonic() > until:
                return rows
            time.sleep(LOOK_EVERY_S)


def rows_of(names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of these files that came through the bucket."""
    from workers.commands import result_rows  # after the stack's address is known

    wanted = set(names)
    return [row for row in result_rows("", 100_000) if row["source"] == "bucket" and row["name"] in wanted]


def _states(rows: Sequence[Mapping[str, Any]]) -> str:
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    return " ".join(f"{status} {count}" for status, count in sorted(counts.items()))


def report(rows: Sequence[Mapping[str, Any]], address: Address, out: Console) -> None:
    """What became of each document, what the values are and where they stand, how to look further."""
    out.print(reports.results_table(rows))
    out.print(reports.reasons_table(rows))
    out.print(reports.fields_table(_some_fields(rows)))
    out.print(HONESTY)
    out.print(_where(address), highlight=False, soft_wrap=True)


def _some_fields(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from storage import reading
    from workers.services import services

    jobs = {row["job_id"] for row in rows}
    with services().database.begin() as connection:
        found = reading.view(connection, "v_fields", limit=10_000, order_by="job_id, path")
    return [field for field in found if field["job_id"] in jobs and field["page"] is not None][:20]


HONESTY = """
[bold]How to read this.[/] The model is SmolLM2-135M, small enough for a laptop's CPU, and it reads badly: it often
picks the wrong one of two amounts, and it cannot read Chinese. What it cannot do is invent a number, a date, an
identifier or a quote: decoding lets it take only text that the document prints, and each value carries the page and
box where it stands. What validation still doubts is marked above, with the rule that doubted it. Give docmill a better
model (README, "Your own model and GPU") and the same checks hold for it.
"""


def _where(address: Address) -> str:
    url = address.database_url.replace("postgresql+psycopg://", "postgresql://", 1)
    query = "SELECT name, path, text, value, page, bbox FROM v_fields LIMIT 5"
    python = f"import psycopg; print(*psycopg.connect('{url}').execute('{query}'), sep='\\n')"
    lines = (
        f"API       {address.api_url}/docs",
        f"database  {url}",
        f'Python    .venv/bin/python -c "{python}"',
        f"psql      psql '{url}' -c 'SELECT name, status, verdict, cost_usd FROM v_results'",
        "stop      make down      (the stack keeps running until then)",
    )
    return "\n".join(lines)
