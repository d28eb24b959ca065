"""The engine inside the GPU worker: started before the first task, and the worker's end when it dies."""

from __future__ import annotations

import logging
import os
import threading
from functools import partial

from docmill.log import logger, say
from inference.engine import Engine
from inference.engines import vllm_local, vllm_server
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.lanes import Lane
from inference.warmup import warm_up
from workers.services import Services
from workers.settings import Settings, export

log = logger("engine")

#: Exit status of a worker whose engine died, so that a supervisor starts both again (EX_SOFTWARE of sysexits.h).
ENGINE_DIED = 70
#: Other threads of the worker get this long to give their jobs back.
GRACE_S = 3.0
#: Weights of a large model come slowly from a network disk.
START_WITHIN_S = 1800.0


def start_engine(lane: Lane, use: Services) -> EngineThread:
    """Load, warm up, and only then return."""
    engine = EngineThread(partial(open_engine, lane, use.settings))
    engine.start(timeout_s=START_WITHIN_S)
    engine.call(lambda opened: warm_up(opened, use.profiles.values(), lane.max_num_seqs), timeout_s=START_WITHIN_S)
    say(log, "ready", lane=lane.name, model=engine.engine.info.model, build=engine.engine.info.build)
    return engine


async def open_engine(lane: Lane, settings: Settings) -> Engine:
    """The engine that a lane describes."""
    match lane.engine:
        case "vllm_local":
            export({"VLLM_CPU_KVCACHE_SPACE": str(settings.kv_cache_gib)})
            export({"VLLM_CPU_OMP_THREADS_BIND": settings.omp_threads_bind})
            return await vllm_local.open_engine(lane)
        case "vllm_server":
            return await vllm_server.open_engine(lane)
        case "stub":
            return StubEngine(StubScript(delay_s=float(lane.model)), context_tokens=lane.context_tokens)


def leave_with_engine() -> None:
    """End this process soon: a dead engine cannot be revived inside it."""
    say(log, "engine_died", level=logging.ERROR, exit=ENGINE_DIED)
    threading.Timer(GRACE_S, os._exit, args=[ENGINE_DIED]).start()
