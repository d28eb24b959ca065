"""The processes of docmill, each started by a command: parse, GPU and validate workers, beat, API."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import uvicorn
from celery.signals import worker_process_init
from prometheus_client import REGISTRY, start_http_server

from docmill.log import FORMAT
from inference.route import queues_of
from preprocess.process import start_child
from workers.celery_app import PARSE_QUEUES, VALIDATE_QUEUES, app
from workers.engine_host import start_engine
from workers.engine_life import EngineLife
from workers.engine_report import Reporter
from workers.fetching import Consumer, Watchdog
from workers.gauges import ControlGauges
from workers.services import Services, services

#: How long deliveries that are under way may take after the end was asked for.
LAST_CALL_S = 5.0


def worker(kind: str) -> None:
    """Run a worker of this kind until SIGTERM."""
    use = services()
    if use.settings.metrics_port:
        start_http_server(use.settings.metrics_port)
        if kind == "validate":
            REGISTRY.register(ControlGauges(use))
    RUN[kind](use)


def parse_worker(use: Services) -> None:
    """PyMuPDF is not thread-safe: processes, each with a reader child of its own."""
    _parse("parse", PARSE_QUEUES, use.settings.parse_concurrency, use)


def parse_hot_worker(use: Services) -> None:
    """One parser for hot documents alone: a thousand cold pages in every other one do not delay them."""
    _parse("parse-hot", PARSE_QUEUES[:1], 1, use)


def _parse(name: str, queues: tuple[str, ...], concurrency: int, use: Services) -> None:
    def start_reader(**_: object) -> None:
        # Beside, not before: Celery ends a process that is not up within four seconds.
        threading.Thread(target=start_child, args=[services().prepare], name="start-reader", daemon=True).start()

    worker_process_init.connect(start_reader, weak=False)
    _celery(name, queues, "prefork", concurrency, use)


def validate_worker(use: Services) -> None:
    """Checks are CPU work: processes. It also drains `control`."""
    _celery("validate", VALIDATE_QUEUES, "prefork", use.settings.validate_concurrency, use)


def gpu_worker(use: Services) -> None:
    """The engine first, then threads for its slots and a few more, so that its batches stay full."""
    lane = use.lane(use.settings.lane)
    use.engine = start_engine(lane, use)
    Reporter(use.engine, use.watch, use.redis, lane=lane.name, worker=use.worker).start()
    EngineLife(use.engine, lane, use).begin()
    try:
        _celery(f"gpu-{lane.name}", queues_of(lane, use.lanes), "threads", lane.threads, use)
    finally:
        use.engine.close()


def batch_worker(use: Services) -> None:
    """Steps batches and tells webhooks; it needs no broker."""
    from workers.batches import Runner
    from workers.local import stop_event
    from workers.webhooks import Teller

    logging.basicConfig(format=FORMAT, level=use.settings.log_level)
    stop = stop_event()
    teller = threading.Thread(target=Teller(use).run, args=[stop], name="webhooks", daemon=True)
    teller.start()
    Runner(use).run(stop)
    teller.join(timeout=LAST_CALL_S)


RUN: dict[str, Callable[[Services], None]] = {
    "parse": parse_worker,
    "parse-hot": parse_hot_worker,
    "gpu": gpu_worker,
    "validate": validate_worker,
    "batch": batch_worker,
}


class OneLine(logging.Filter):
    """While the broker is away beat logs two stacks for each message; one line says as much."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            record.msg, record.args = "action=not_sent why=%s", (record.exc_info[1],)
            record.exc_info = None
        return True


def beat() -> None:
    """The clock: a message each tick for dispatch, sweep and the inbox."""
    schedule = services().settings.home / "beat-schedule"
    schedule.parent.mkdir(parents=True, exist_ok=True)
    logging.getLogger("celery.beat").addFilter(OneLine())
    app.start(["beat", "--schedule", str(schedule), "--pidfile", "", "--loglevel", "WARNING"])


def api() -> None:
    """The HTTP door."""
    from workers.api.app import make_api  # no worker needs it, and each must be back soon after it was killed

    use = services()
    logging.basicConfig(format=FORMAT, level=use.settings.log_level)
    uvicorn.run(
        make_api(use), host=use.settings.api_host, port=use.settings.api_port, log_level="warning", access_log=False
    )


def _celery(name: str, queues: tuple[str, ...], pool: str, concurrency: int, use: Services) -> None:
    if use.settings.stalled_s:
        Consumer(name, use.worker, queues, concurrency, use.redis, Watchdog(use.settings.stalled_s)).watch()
    app.worker_main(
        [
            "worker",
            *("--hostname", f"{name}@%h"),
            *("--queues", ",".join(queues)),
            *("--pool", pool),
            *("--concurrency", str(concurrency)),
            *("--loglevel", use.settings.log_level),
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )
