"""The engine inside the GPU worker: started before the first task, and the worker's end when it dies."""

from __future__ import annotations

import logging
import os
import threading
from functools import partial
from typing import Any

import psutil

from docmill.log import logger, say
from inference.engine import Engine
from inference.engines.stub import StubEngine, StubScript
from inference.engines.thread import EngineThread
from inference.engines.vllm_local import ON_CPU, LocalEngine, LocalSettings, environment
from inference.engines.vllm_server import ServerEngine, ServerSettings
from inference.lanes import Lane
from inference.warmup import Warmable, warm_up
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
    engine = EngineThread(partial(open_warm, lane, use))
    engine.start(timeout_s=START_WITHIN_S)
    return engine


async def open_warm(lane: Lane, use: Services) -> Engine:
    """The lane's engine, ready for work."""
    engine = await open_engine(lane, use.settings)
    took = await warm_up(engine, use.profiles.values(), at_once=lane.max_num_seqs)
    say(log, "ready", lane=lane.name, model=engine.info.model, build=engine.info.build, took=took)
    return engine


async def open_engine(lane: Lane, settings: Settings) -> Warmable:
    """The engine that a lane describes."""
    match lane.engine:
        case "vllm_local":
            local = local_settings(lane, settings)
            export({**environment(local), "OMP_NUM_THREADS": str(os.cpu_count())})
            return await LocalEngine.open(local)
        case "vllm_server":
            return await ServerEngine.open(ServerSettings.of(lane))
        case "stub":
            return await StubEngine.open(StubScript.of(lane.model), context_tokens=lane.context_tokens)


def local_settings(lane: Lane, settings: Settings) -> LocalSettings:
    """How the lane's engine is started on this machine."""
    return LocalSettings.of(lane, **(_on_this_cpu(settings) if _is_cpu() else {}))


def _on_this_cpu(settings: Settings) -> dict[str, Any]:
    """Without these vLLM's CPU backend takes nearly all memory and compiles for minutes."""
    return {
        "more": ON_CPU,
        "kv_cache_gib": settings.kv_cache_gib,
        "omp_threads_bind": settings.omp_threads_bind,
        "enforce_eager": True,
    }


def _is_cpu() -> bool:
    from vllm.platforms import current_platform  # takes seconds: only this process needs it

    return bool(current_platform.is_cpu())


def leave_with_engine() -> None:
    """End this process soon, and what is left of the engine with it: a dead one cannot be revived inside it."""
    say(log, "engine_died", level=logging.ERROR, exit=ENGINE_DIED)
    threading.Timer(GRACE_S, _end_all).start()


def _end_all() -> None:
    for child in psutil.Process().children(recursive=True):
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    os._exit(ENGINE_DIED)
