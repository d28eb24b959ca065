"""Messages to the broker: an id each, and never the truth. What the broker does not take waits in the database."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from kombu.exceptions import OperationalError as BrokerError
from redis.exceptions import RedisError

from docmill.log import logger, say
from docmill.types import Route
from storage.ports import Jobs, Stage
from workers.celery_app import TASKS, app

log = logger("publish")


def queue_for(stage: Stage, route: Route | None, *, hot: bool) -> str:
    """The queue that carries a stage's messages."""
    match stage:
        case Stage.PARSE:
            return "parse.hot" if hot else "parse.cold"
        case Stage.INFER if route is not None:
            return route.queue
        case Stage.VALIDATE:
            return "validate"
    raise ValueError(f"stage {stage} needs a route: the job was never prepared")


@dataclass(frozen=True, slots=True)
class Publisher:
    """Marks a job as published, then sends; a broker that is away puts the job back to wait."""

    store: Jobs

    def publish(self, job_id: str, stage: Stage, route: Route | None, *, hot: bool, marked: bool = False) -> bool:
        """Send one message; False when the broker is away (dispatch tries again)."""
        queue = queue_for(stage, route, hot=hot)
        # Marked first: a crash in between costs a wait for the sweeper; the other order could send twice as a rule.
        if not marked:
            self.store.mark_published([job_id])
        try:
            app.send_task(TASKS[stage], args=[job_id], queue=queue, retry=False, ignore_result=True)
        except (BrokerError, RedisError, OSError) as error:
            self.store.mark_unpublished([job_id])
            say(log, "broker_away", level=logging.WARNING, job_id=job_id, queue=queue, why=error)
            return False
        say(log, "published", level=logging.DEBUG, job_id=job_id, queue=queue)
        return True
