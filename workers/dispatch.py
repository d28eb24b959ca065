"""Releasing what waits in the database: hot at once, warm and cold only while their lane has room.

The broker never holds a backlog, so a hot document that comes late, a cancelled batch or a nearer deadline takes
effect at once. `release.choose` decides; `tick` runs it each second.
"""

from __future__ import annotations

from dataclasses import replace

from docmill.log import logger, say
from inference.qos import is_open
from inference.route import queue_name
from storage.ports import Stage, Waiting
from workers.controller import Controller
from workers.release import charged, choose, is_hot
from workers.services import Services

log = logger("dispatch")

#: Waiting jobs that one tick looks at.
HORIZON = 500


def tick(use: Services) -> None:
    """Look, age what waits, choose, publish."""
    controller = Controller(use)
    look = controller.look()
    waiting = [_aged(job, use) for job in use.store.waiting(limit=HORIZON)]
    released = []
    for job in choose(waiting, use.store.in_flight(), look.view):
        if not controller.admits(job, look):
            continue
        if not use.publisher.publish(job.job_id, job.stage, job.route, hot=is_hot(job)):
            break
        released.append(job)
    controller.remember(charged(released, waiting, look.view) if released else {}, look)
    if released:
        say(log, "released", jobs=len(released), waiting=len(waiting))


def _aged(job: Waiting, use: Services) -> Waiting:
    """The job with the heat that it has by now: a deadline that nears warms it up."""
    if job.stage != Stage.INFER or job.route is None:
        return job
    now = use.route(job.tokens, job.profile, age_s=job.age_s, window_s=job.window_s, vip=job.vip, tenant=job.tenant)
    lane = use.lane(job.route.lane)
    if not is_open(lane.tenants, job.tenant):
        lane = use.lane(now.lane)  # its lane has got owners since
    elif now.heat == job.route.heat:
        return job
    # Else it stays on its lane: a job that was rejected once waits for a better one.
    now = replace(now, lane=lane.name, queue=queue_name(now.heat, now.length_class, lane, use.lanes))
    if now.queue != job.route.queue:
        use.store.reroute(job.job_id, now)
        say(log, "aged", job_id=job.job_id, was=job.route.queue, now=now.queue)
    return replace(job, route=now)
