"""The Celery tasks: an id in, one call, nothing else. Importable and testable without Celery lives in `pipeline`."""

from __future__ import annotations

from storage.ports import Stage
from workers.bucket import tick as scan_bucket
from workers.celery_app import TASKS, app
from workers.dispatch import tick as release_waiting
from workers.pace import Pace
from workers.pipeline import run
from workers.probes import tick as send_probes
from workers.services import services
from workers.sweeper import tick as sweep_once

DISPATCH = Pace(lambda: release_waiting(services()))
SWEEP = Pace(lambda: sweep_once(services()))
PROBE = Pace(lambda: send_probes(services()))
SCAN = Pace(lambda: scan_bucket(services()))


@app.task(name=TASKS[Stage.PARSE])  # type: ignore[untyped-decorator]  # Celery ships no types
def parse(job_id: str) -> None:
    run(Stage.PARSE, job_id, services())


@app.task(name=TASKS[Stage.INFER])  # type: ignore[untyped-decorator]  # Celery ships no types
def infer(job_id: str) -> None:
    run(Stage.INFER, job_id, services())


@app.task(name=TASKS[Stage.VALIDATE])  # type: ignore[untyped-decorator]  # Celery ships no types
def validate(job_id: str) -> None:
    run(Stage.VALIDATE, job_id, services())


@app.task(name="docmill.dispatch")  # type: ignore[untyped-decorator]  # Celery ships no types
def dispatch_waiting() -> None:
    DISPATCH.due()


@app.task(name="docmill.sweep")  # type: ignore[untyped-decorator]  # Celery ships no types
def sweep() -> None:
    SWEEP.due()


@app.task(name="docmill.probe")  # type: ignore[untyped-decorator]  # Celery ships no types
def probe() -> None:
    PROBE.due()


@app.task(name="docmill.scan_inbox")  # type: ignore[untyped-decorator]  # Celery ships no types
def scan_inbox() -> None:
    SCAN.due()
