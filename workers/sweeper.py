"""What brings lost work back: ended leases, messages that nobody got, a broker that was emptied."""

from __future__ import annotations

import logging

from redis import Redis

from docmill.log import logger, say
from workers.celery_app import app
from workers.services import Services

log = logger("sweeper")

#: A key that stands in the broker for as long as the broker keeps its data.
EPOCH_KEY = "docmill:epoch"


def tick(use: Services) -> None:
    """One sweep; dispatch publishes what it sets free."""
    with Redis.from_url(use.settings.broker_url, socket_timeout=3, socket_connect_timeout=3) as redis:
        if was_emptied(redis):
            say(log, "broker_was_emptied", level=logging.WARNING, jobs=use.store.unpublish_all())
        backed_up = queues_with_messages(redis)
    swept = use.store.sweep(
        republish_after_s=use.settings.republish_after_s, max_lost=use.settings.max_lost, backed_up=backed_up
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


def was_emptied(redis: Redis) -> bool:
    """True once after a flush or a restart without data: the marker is gone, and is set again."""
    return bool(redis.set(EPOCH_KEY, "1", nx=True))


def queues_with_messages(redis: Redis) -> list[str]:
    """The queues in which messages lie: a job of theirs waits for its turn, its message is not lost."""
    names = [queue.name for queue in app.conf.task_queues]
    pipeline = redis.pipeline(transaction=False)
    for name in names:
        pipeline.llen(name)
    return [name for name, length in zip(names, pipeline.execute(), strict=True) if length]
