"""Jobs through every stage against Celery tasks that do nothing, on the same workers, broker and machine.

`python -m bench.pipeline [--jobs N] [--rounds N] [--tokenizer FOLDER] [--backlog N]`. The documents were parsed before
(as for a second profile), the engine is the stub: what is measured is the way of a job, parse-skip → route → claim →
finish for each stage, on a real Valkey, a real PostgreSQL and real worker processes. Both sides' messages are put into
the queues at once; they take turns at being first; each figure is the median of its rounds. No-op tasks do nothing at
all; what of a job is reading and checking is shown on lines of its own ("engine thread", "pure code").
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pymupdf
from sqlalchemy import text

from bench import backlog
from bench.pipeline_stack import QUEUES, Parts, running
from bench.report import Figure, finish, show
from docmill.codec import pack
from docmill.types import PreparedDocument, Source
from inference.profile import get
from ingest.accept import accept, job_id_of
from preprocess import process
from preprocess.prepare import prepare
from storage.blobs import original_key, prepared_key
from storage.ports import Order, Stage, Submission
from workers.celery_app import TASKS, app
from workers.services import Services

PROFILE: Final = "transaction-monitoring"
#: Stage → the kind of worker that does it.
STAGES: Final = {"parse": "parse", "infer": "gpu", "validate": "validate"}
_SYLLABLES: Final = ("ka", "lo", "mer", "tin", "sol", "va", "rek", "dun", "pis", "hal", "or", "ne", "bru", "get")


@dataclass(frozen=True, slots=True)
class Round:
    """What one side did: tasks, seconds, CPU seconds by part, and by meter where there are any."""

    tasks: int
    seconds: float
    cpu: Mapping[str, float]
    meters: Mapping[str, Mapping[str, float]]

    @property
    def rate(self) -> float:
        return self.tasks / self.seconds


def main() -> int:
    options = _options()
    if options.backlog:
        return backlog.main(options.backlog)
    with running(options.tokenizer) as parts:
        documents = list(_documents(options.jobs, parts.use))
        rounds: dict[str, list[Round]] = {"docmill": [], "no-op": []}
        for number in range(options.rounds + 1):
            sides = [("docmill", _jobs), ("no-op", _noops)]
            for name, side in sides if number % 2 else reversed(sides):
                rounds[name].append(side(parts, documents, number))
    # The first round warms everything up: imports, connections, prepared statements.
    measured = {name: of_side[1:] for name, of_side in rounds.items()}
    _show(measured, options.jobs)
    return finish("pipeline", _figures(measured, options.jobs), details=_details(measured))


# ---------------------------------------------------------------- the two sides


def _noops(parts: Parts, documents: Sequence[tuple[bytes, PreparedDocument]], number: int) -> Round:
    """As many tasks that do nothing for each worker as there are jobs."""
    for queue in QUEUES.values():
        _hold(queue, "bench.noop", [[]] * len(documents))
    return _measured(parts, list(QUEUES.values()), len(documents) * len(QUEUES))


def _jobs(parts: Parts, documents: Sequence[tuple[bytes, PreparedDocument]], number: int) -> Round:
    """A job for each document, for which somebody waits; the tenant is this round's own."""
    tenant = f"round{number}"
    ids = [_submit(data, prepared, tenant, parts.use) for data, prepared in documents]
    parts.use.store.mark_published(ids)
    _hold(QUEUES["parse"], TASKS[Stage.PARSE], [[job_id] for job_id in ids])
    done = _measured(parts, [QUEUES["parse"]], 0)
    return replace(done, tasks=_stages_done(parts.use, tenant, len(documents)))


def _hold(queue: str, task: str, arguments: Sequence[Sequence[str]]) -> None:
    """Messages beside the queue: one RENAME gives them to the worker."""
    for args in arguments:
        app.send_task(task, args=list(args), queue=f"held.{queue}", ignore_result=True)


def _measured(parts: Parts, queues: Sequence[str], tasks: int) -> Round:
    before, began = parts.cpu(), time.monotonic()
    for queue in queues:
        parts.redis.rename(f"held.{queue}", queue)
    seconds = parts.drained() - began
    after = parts.cpu()
    return Round(tasks, seconds, {name: after[name] - before[name] for name in after}, parts.meters())


def _submit(data: bytes, prepared: PreparedDocument, tenant: str, use: Services) -> str:
    """The job of a document that was parsed before."""
    profile = get(use.profiles, PROFILE)
    document = accept(data, name="notice.pdf", tenant=tenant, source=Source.CLI, config=use.ingest)
    job_id = job_id_of(document.document_id, profile.name, profile.version)
    use.blobs.put(prepared_key(document.document_id), pack(replace(prepared, document_id=document.document_id)))
    submission = Submission(
        tenant, Source.CLI, "notice.pdf", document.sha256, profile.name, document.size_bytes, profile.version
    )
    key = original_key(tenant, document.sha256)
    use.store.accept(document, blob_key=key, submission=submission, order=Order(job_id, profile.name, profile.version))
    return job_id


def _stages_done(use: Services, tenant: str, expected: int) -> int:
    """The stages that were finished; every job must have come to its end, by its three stages alone."""
    counted = text(
        "SELECT (SELECT count(*) FROM jobs WHERE tenant = :tenant AND status IN ('done', 'needs_review')) AS ended,"
        " (SELECT count(*) FROM attempts JOIN jobs USING (job_id) WHERE tenant = :tenant) AS stages"
    )
    with use.database.connect() as connection:
        row = connection.execute(counted, {"tenant": tenant}).one()
    if (row.ended, row.stages) != (expected, expected * len(STAGES)):
        raise RuntimeError(f"of {expected} jobs {row.ended} ended, with {row.stages} attempts: see the workers' logs")
    return int(row.stages)


# ---------------------------------------------------------------- documents


def _documents(count: int, use: Services) -> Iterator[tuple[bytes, PreparedDocument]]:
    """Short notices, each of its own words, as the product's parser reads them."""
    process.start_child(use.prepare)
    try:
        for number in range(count):
            data = _notice(number)
            yield data, prepare(data, "doc", use.prepare)
    finally:
        process.stop_child()


def _notice(number: int) -> bytes:
    draw = random.Random(number)
    words = ["".join(draw.choices(_SYLLABLES, k=3)) for _ in range(60)]
    lines = [
        f"Transaction notice {number}",
        f"Account: ACC-{100000 + number}",
        f"Counterparty: {words[0].title()} {words[1].title()} Ltd",
        f"Amount: USD {draw.randrange(1000, 99999)}.50",
        f"Date: 2024-03-{1 + number % 28:02d}",
        *(" ".join(words[start : start + 10]) for start in range(0, 60, 10)),
    ]
    document = pymupdf.open()
    document.new_page().insert_text((72, 72), lines, fontsize=11)
    return bytes(document.tobytes())


# ---------------------------------------------------------------- telling


def _show(measured: Mapping[str, Sequence[Round]], jobs: int) -> None:
    rows = [
        (name, one.tasks, one.seconds, one.rate, *(1000 * one.cpu[part] / one.tasks for part in _PARTS))
        for name, of_side in measured.items()
        for one in of_side
    ]
    title = f"{jobs} jobs of three stages, {len(QUEUES) * jobs} no-op tasks: CPU ms a task by part"
    show(title, ["side", "tasks", "seconds", "tasks/s", *_PARTS], rows)
    show("where a job's CPU goes (ms)", ["stage", "what", "ms/job"], _spent(measured, jobs))


_PARTS: Final = (*QUEUES, "valkey", "postgres")


def _spent(measured: Mapping[str, Sequence[Round]], jobs: int) -> list[tuple[str, str, float]]:
    """Each stage's CPU by meter; what no meter claims is Celery, kombu and the interpreter."""
    rows: list[tuple[str, str, float]] = []
    for stage, kind in STAGES.items():
        of_stage = [_by_meter(one, kind) for one in measured["docmill"]]
        for what in dict.fromkeys(name for one in of_stage for name in one):
            rows.append((stage, what, 1000 * statistics.median(one.get(what, 0.0) for one in of_stage) / jobs))
        rows.append((stage, "all", 1000 * _median_cpu(measured["docmill"], kind) / jobs))
    rows += [
        ("all stages", part, 1000 * _median_cpu(measured["docmill"], part) / jobs) for part in ("postgres", "valkey")
    ]
    rows += [("no-op", kind, 1000 * _median_cpu(measured["no-op"], kind) / jobs) for kind in QUEUES]
    return rows


def _by_meter(one: Round, kind: str) -> dict[str, float]:
    known = dict(one.meters[kind])
    rest = one.cpu[kind] - sum(known.values())
    return {**dict(sorted(known.items(), key=lambda item: -item[1])), "Celery, kombu, rest": rest}


def _median_cpu(of_side: Sequence[Round], part: str) -> float:
    return statistics.median(one.cpu[part] for one in of_side)


def _figures(measured: Mapping[str, Sequence[Round]], jobs: int) -> list[Figure]:
    rates = {name: statistics.median(one.rate for one in of_side) for name, of_side in measured.items()}
    cpu, nothing = (sum(_median_cpu(measured[side], part) for part in _PARTS) for side in ("docmill", "no-op"))
    return [
        Figure("jobs", jobs),
        Figure("jobs_per_second", rates["docmill"] / len(STAGES)),
        Figure("stage_tasks_per_second", rates["docmill"]),
        Figure("noop_tasks_per_second", rates["no-op"]),
        Figure("of_noop", rates["docmill"] / rates["no-op"], ">= 0.5"),
        Figure("cpu_ms_per_job", 1000 * cpu / jobs),
        Figure("cpu_of_noop", nothing / cpu),
    ]


def _details(measured: Mapping[str, Sequence[Round]]) -> dict[str, Any]:
    return {
        name: [{"seconds": one.seconds, "tasks": one.tasks, "cpu": one.cpu, "meters": one.meters} for one in of_side]
        for name, of_side in measured.items()
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backlog", type=int, default=0, help="instead: looks of dispatch at so many waiting jobs")
    parser.add_argument("--tokenizer", type=Path, default=Path(os.environ.get("DOCMILL_TEST_MODEL", ".models/smollm2")))
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
