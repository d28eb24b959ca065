"""Reading a document: every part is one request, side by side; each answer is checked; the answers become one."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from docmill.errors import ModelError
from docmill.types import Citation, Extraction, Part, Usage
from inference.cost import Prices, cost
from inference.engine import Completion, Engine
from inference.evidence import labels_of, strength
from inference.merge import Merged, Origin, Standing, merge
from inference.profile import Profile
from inference.reading import ExtractConfig, Reading, read, request_id
from inference.remarks import remarks

__all__ = ["ExtractConfig", "extract", "request_id"]


async def extract(parts: tuple[Part, ...], profile: Profile, engine: Engine, job: ExtractConfig) -> Extraction:
    """Read all parts and merge what they say. Raises the ModelErrors and SystemFaults of docmill.errors."""
    if not parts:
        raise ValueError(f"job {job.job_id} has no part to read; a document without text ends before inference")
    readings = await _side_by_side(parts, profile, engine, job)
    merged = merge(profile.schema, [reading.value for reading in readings], partial(_weigh, readings))
    cited = partial(_cited, readings)
    return Extraction(
        result=merged.value,
        citations=_citations(merged, readings),
        usage=_summed([asked for reading in readings for asked in reading.asked], job.prices),
        engine=engine.info.build,
        model=engine.info.model,
        precision=engine.info.precision,
        prompt_sha256=_sha256(reading.prompt for reading in readings),
        seed=job.seed,
        finish_reason=readings[-1].completion.finish_reason,
        raw="\n".join(reading.completion.text for reading in readings),
        parts=len(parts),
        findings=remarks(merged, cited),
        longest_output=max(reading.completion.output_tokens for reading in readings),
    )


async def _side_by_side(parts: tuple[Part, ...], profile: Profile, engine: Engine, job: ExtractConfig) -> list[Reading]:
    """All parts, as many at once as the lane has slots: the engine batches them.

    An answer that cannot be used is raised when the others are there, so that the next attempt finds them kept. Any
    other failure stops the rest, which it would reach too.
    """
    slots = asyncio.Semaphore(job.at_once)

    async def in_turn(part: Part) -> Reading:
        async with slots:
            return await read(part, profile, engine, job)

    tasks = [asyncio.ensure_future(in_turn(part)) for part in parts]
    try:
        answers = await asyncio.gather(*(_or_unusable(task) for task in tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return [_usable(answer) for answer in answers]


async def _or_unusable(task: asyncio.Future[Reading]) -> Reading | ModelError:
    try:
        return await task
    except ModelError as error:
        return error


def _usable(answer: Reading | ModelError) -> Reading:
    if isinstance(answer, ModelError):
        raise answer
    return answer


def _weigh(readings: Sequence[Reading], origin: Origin, name: str, schema: Mapping[str, Any], value: Any) -> Standing:
    """How well a value stands: beside its label in the part that it was read from, and where it is printed."""
    citation = _cited(readings, origin)
    if citation is None:
        return Standing(0, origin.reading)
    text = readings[origin.reading].part.text
    return Standing(strength(text, str(value), labels_of(name, schema)), (citation.page, citation.bbox))


def _cited(readings: Sequence[Reading], origin: Origin) -> Citation | None:
    """Where a value of one reading is printed."""
    return next((one for one in readings[origin.reading].citations if one.path == origin.path), None)


def _citations(merged: Merged, readings: Sequence[Reading]) -> tuple[Citation, ...]:
    """The citations of the values that were kept, under their paths in the merged result."""
    kept = ((path, _cited(readings, origin)) for path, origin in merged.origins.items())
    return tuple(replace(citation, path=path) for path, citation in kept if citation is not None)


def _summed(completions: Sequence[Completion], prices: Prices) -> Usage:
    """Tokens add up; the parts ran side by side, so of their times the longest counts."""
    costs = (cost(one.prompt_tokens, one.cached_tokens, one.output_tokens, prices) for one in completions)
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in completions),
        cached_tokens=sum(one.cached_tokens for one in completions),
        output_tokens=sum(one.output_tokens for one in completions),
        queue_ms=max((one.queue_ms for one in completions), default=0.0),
        prefill_ms=max((one.prefill_ms for one in completions), default=0.0),
        decode_ms=max((one.decode_ms for one in completions), default=0.0),
        cost_usd=sum(costs, Decimal(0)),
    )


def _sha256(prompts: Any) -> str:
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(f"{prompt.system}\0{prompt.user}\0".encode())
    return digest.hexdigest()
