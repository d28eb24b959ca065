"""The Celery application: queues in strict order, late acknowledgement, ids in JSON, no results."""

from __future__ import annotations

from celery import Celery
from kombu import Exchange, Queue

from inference.route import QUEUES_IN_ORDER
from storage.ports import Stage
from workers.settings import settings

TASKS = {stage: f"docmill.{stage}" for stage in Stage}

#: Longer than any job may run: the lease in the database, not the broker, decides when work is lost.
VISIBILITY_TIMEOUT_S = 6 * 3600

#: Clocks of two machines may differ by this much.
TICK_EXPIRES_S = 600

PARSE_QUEUES = ("parse.hot", "parse.cold")
# Control first: dispatch and sweep must not wait behind a pile of results.
VALIDATE_QUEUES = ("control", "validate")


def queue(name: str) -> Queue:
    """A queue on the default exchange: it needs no binding in Redis, so an emptied Redis cannot unbind it."""
    return Queue(name, Exchange("", type="direct"), routing_key=name)


def make_app() -> Celery:
    """The application for the broker of the settings."""
    app = Celery("docmill", broker=settings().broker_url or None, include=["workers.tasks"])
    app.conf.update(
        task_queues=[queue(name) for name in (*PARSE_QUEUES, *QUEUES_IN_ORDER, *VALIDATE_QUEUES)],
        task_create_missing_queues=True,
        task_default_queue="control",
        task_default_exchange="",
        task_default_routing_key="control",
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=True,
        worker_send_task_events=False,
        # Its subscription is the one connection that is always read: without it, a worker whose only late-ack task
        # cannot be acknowledged in an outage stops polling, never sees the broker go, and never comes back.
        worker_enable_remote_control=True,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "queue_order_strategy": "priority",
            "visibility_timeout": VISIBILITY_TIMEOUT_S,
            "socket_timeout": 30,
            "socket_connect_timeout": 3,
            "socket_keepalive": True,
            "health_check_interval": 10,
            # A publisher that finds the broker away gives up at once: the job waits in the database instead.
            "max_retries": 0,
            "interval_start": 0,
            "interval_step": 0.1,
            "interval_max": 0.1,
        },
        beat_schedule={
            name: {
                "task": f"docmill.{name}",
                "schedule": settings().tick_s,
                # What nobody took for long is worth nothing: the next tick does the same. Long, because the moment is
                # by beat's clock and compared with the worker's.
                "options": {"queue": "control", "expires": TICK_EXPIRES_S},
            }
            for name in ("dispatch", "sweep", "scan_inbox", *(["probe"] if settings().probe_every_s else []))
        },
        beat_max_loop_interval=1,
        enable_utc=True,
    )
    return app


app = make_app()
