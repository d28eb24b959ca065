"""The engine inside the GPU worker: started before the first task, and the worker's end when it dies."""

from __future__ import annotations

import logging
import os
import threading

from docmill.log import logger, say
from inference.engines.vllm_local import EngineThread
from inference.lanes import Lane
from inference.warmup import warm_up
from workers.services import Services

log = logger("engine")

#: Exit status of a worker whose engine died, so that a supervisor starts both again (EX_SOFTWARE of sysexits.h).
ENGINE_DIED = 70
#: Other threads of the worker get this long to give their jobs back.
GRACE_S = 3.0


def start_engine(lane: Lane, use: Services) -> EngineThread:
    """Load, warm up, and only then return."""
    engine = EngineThread.start(lane)
    report = engine.run(warm_up(engine.engine, use.profiles.values(), lane), timeout_s=900)
    say(log, "ready", lane=lane.name, model=engine.engine.info.model, report=report)
    return engine


def leave_with_engine() -> None:
    """End this process soon: a dead engine cannot be revived inside it."""
    say(log, "engine_died", level=logging.ERROR, exit=ENGINE_DIED)
    threading.Timer(GRACE_S, os._exit, args=[ENGINE_DIED]).start()
