"""Making an engine ready: weights, then the prompts it will really get, then as many at once as it will carry.

The first constrained request of a process can take tens of seconds; no document should be the one that pays.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from docmill.errors import ModelError
from docmill.types import Part, Piece, Printed
from inference.engine import Engine, Request
from inference.extract import ExtractConfig, extract
from inference.profile import Profile

#: As many as a lane may carry.
AT_ONCE = 20
DEADLINE_S = 180.0

#: The first tokens compile the grammar and read the prompt; the rest would be more of the same.
_A_FEW_TOKENS = 24

_SAMPLES: Mapping[str, str] = {
    "en": "Zhang Wei, passport E12345678, born 1 May 1980, paid USD 5,280.00 to Harbour Ltd on 31 December 2024.",
    "zh": "客户张伟，护照号E12345678，1980年5月1日出生，于2024年12月31日向海港贸易有限公司支付人民币5,280.00元。",
}


class Warmable(Engine, Protocol):
    """An engine that can be told that it is warm."""

    def mark_ready(self) -> None: ...


@dataclass(frozen=True, slots=True)
class WarmUp:
    """How long each step took, in seconds."""

    weights_s: float
    semantic_s: float
    load_s: float


async def warm_up(engine: Warmable, profiles: Iterable[Profile], *, at_once: int = AT_ONCE) -> WarmUp:
    """Run the three steps; the engine reports ready only after the last. System faults are raised."""
    profiles = tuple(profiles)
    weights_s = await _timed(_weights(engine))
    semantic_s = await _timed(_semantic(engine, profiles))
    load_s = await _timed(_load(engine, at_once))
    engine.mark_ready()
    return WarmUp(weights_s, semantic_s, load_s)


async def _weights(engine: Engine) -> None:
    """One token: the weights are there and a step runs."""
    await engine.submit(Request("warm-up.weights", "You are ready.", "Say yes.", 1, 0, DEADLINE_S))


async def _semantic(engine: Engine, profiles: tuple[Profile, ...]) -> None:
    """Each profile in each language: fills the prefix cache, and compiles a grammar of each kind."""
    for profile in profiles:
        await asyncio.gather(*(_read(engine, profile, language) for language in _SAMPLES))


async def _read(engine: Engine, profile: Profile, language: str) -> None:
    text = _SAMPLES[language]
    part = Part(text, 0, (Piece(Printed(text), 1),))
    job = ExtractConfig(f"warm-up.{profile.name}.{language}", priority=0, deadline_s=DEADLINE_S)
    try:
        await extract((part,), replace(profile, max_output_tokens=_A_FEW_TOKENS), engine, job)
    except ModelError:
        return  # what the model answers to a sample does not matter, only that it was asked


async def _load(engine: Engine, at_once: int) -> None:
    """As many at once as the lane carries: the batch shapes and the memory are there before they are needed."""
    prompt = "Count from one to twenty in words."
    requests = (Request(f"warm-up.load.{n}", "You count.", prompt, 16, 0, DEADLINE_S) for n in range(at_once))
    await asyncio.gather(*(engine.submit(request) for request in requests))


async def _timed(step: Awaitable[None]) -> float:
    started = time.perf_counter()
    await step
    return time.perf_counter() - started
