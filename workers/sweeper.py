"""What brings lost work back: ended leases, messages that nobody got, a broker that was emptied."""

from __future__ import annotations

import base64
import json
import logging

from redis import Redis

from docmill.log import logger, say
from workers.celery_app import app
from workers.services import Services

log = logger("sweeper")

#: A key that stands in the broker for as long as the broker keeps its data: gone after a flush, and after a restart
#: without data.
EPOCH_KEY = "docmill:epoch"


def tick(use: Services) -> None:
    """One sweep; dispatch publishes what it sets free."""
    with Redis.from_url(use.settings.broker_url, socket_timeout=3, socket_connect_timeout=3) as redis:
        if not redis.exists(EPOCH_KEY):
            say(log, "broker_was_emptied", level=logging.WARNING, jobs=use.store.unpublish_all())
            # Marked last: who is killed in between leaves it to the next sweep.
            redis.set(EPOCH_KEY, "1")
        heads = next_jobs(redis)
    swept = use.store.sweep(
        republish_after_s=use.settings.republish_after_s,
        max_lost=use.settings.max_lost,
        heads=heads,
        grace_s=use.settings.lease_s,
    )
    if swept.returned or swept.poisoned or swept.unpublished:
        say(
            log,
            "swept",
            level=logging.WARNING,
            returned=len(swept.returned),
            poisoned=len(swept.poisoned),
            unpublished=len(swept.unpublished),
        )


def next_jobs(redis: Redis) -> dict[str, str]:
    """The job of the next message of each queue that has one: what came after it waits for its turn and is not lost.

    kombu pushes at the left of a list and takes from its right.
    """
    names = [queue.name for queue in app.conf.task_queues]
    pipeline = redis.pipeline(transaction=False)
    for name in names:
        pipeline.lindex(name, -1)
    return {name: job_of(message) for name, message in zip(names, pipeline.execute(), strict=True) if message}


def job_of(message: bytes) -> str:
    """The id in a message, as Celery and kombu pack it; "" where it is not one of ours."""
    try:
        body = json.loads(base64.b64decode(json.loads(message)["body"]))
        return str(body[0][0])
    except (ValueError, LookupError, TypeError):
        return ""
