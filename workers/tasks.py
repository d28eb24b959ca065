"""The Celery tasks: an id in, one call, nothing else. Importable and testable without Celery lives in `pipeline`."""

from __future__ import annotations

from storage.ports import Stage
from workers import bucket, dispatch, pipeline, sweeper
from workers.celery_app import TASKS, app
from workers.services import services


@app.task(name=TASKS[Stage.PARSE])  # type: ignore[untyped-decorator]  # Celery ships no types
def parse(job_id: str) -> None:
    pipeline.run(Stage.PARSE, job_id, services())


@app.task(name=TASKS[Stage.INFER])  # type: ignore[untyped-decorator]  # Celery ships no types
def infer(job_id: str) -> None:
    pipeline.run(Stage.INFER, job_id, services())


@app.task(name=TASKS[Stage.VALIDATE])  # type: ignore[untyped-decorator]  # Celery ships no types
def validate(job_id: str) -> None:
    pipeline.run(Stage.VALIDATE, job_id, services())


@app.task(name="docmill.dispatch")  # type: ignore[untyped-decorator]  # Celery ships no types
def dispatch_waiting() -> None:
    dispatch.tick(services())


@app.task(name="docmill.sweep")  # type: ignore[untyped-decorator]  # Celery ships no types
def sweep() -> None:
    sweeper.tick(services())


@app.task(name="docmill.scan_inbox")  # type: ignore[untyped-decorator]  # Celery ships no types
def scan_inbox() -> None:
    bucket.tick(services())
