"""Reading a document: every part is one request, side by side; each answer is checked; the answers become one."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from docmill.errors import EmptyOutput, InvalidOutput, OutputTruncated
from docmill.types import Citation, Extraction, Part, Usage
from inference.cite import leaves, locate
from inference.cost import Prices, cost
from inference.engine import Completion, Engine, Request
from inference.grounding import Grounding, ground
from inference.merge import Merged, merge
from inference.profile import Profile
from inference.prompt import Objections, Prompt, build


@dataclass(frozen=True, slots=True)
class ExtractConfig:
    """What the caller knows of the job. `grounded=False` decodes by the JSON Schema alone, for comparison only.

    `objections` say what was wrong with an earlier reading; the model is told.
    """

    job_id: str
    attempt: int = 1
    priority: int = 2
    deadline_s: float = 120.0
    seed: int = 0
    cache_salt: str | None = None
    prices: Prices = field(default_factory=Prices)
    grounded: bool = True
    objections: Objections = field(default_factory=dict)


@dataclass(frozen=True)
class _Reading:
    """One part's answer, checked."""

    prompt: Prompt
    completion: Completion
    value: Any
    citations: tuple[Citation, ...]


async def extract(parts: tuple[Part, ...], profile: Profile, engine: Engine, job: ExtractConfig) -> Extraction:
    """Read all parts and merge what they say. Raises the ModelErrors and SystemFaults of docmill.errors."""
    if not parts:
        raise ValueError(f"job {job.job_id} has no part to read; a document without text ends before inference")
    readings = await _side_by_side(parts, profile, engine, job)
    merged = merge(profile.schema, [reading.value for reading in readings])
    return Extraction(
        result=merged.value,
        citations=_cited(merged, readings),
        usage=_summed([reading.completion for reading in readings], job.prices),
        engine=engine.info.build,
        model=engine.info.model,
        precision=engine.info.precision,
        prompt_sha256=_sha256(reading.prompt for reading in readings),
        seed=job.seed,
        finish_reason=readings[-1].completion.finish_reason,
        raw="\n".join(reading.completion.text for reading in readings),
        parts=len(parts),
    )


def request_id(job_id: str, attempt: int, part: int) -> str:
    """The engine's name for one part of a job, for whoever must cancel it."""
    return f"{job_id}.{attempt}.{part}"


async def _side_by_side(
    parts: tuple[Part, ...], profile: Profile, engine: Engine, job: ExtractConfig
) -> list[_Reading]:
    """All parts at once: the engine batches them. The first failure stops the others, and is the one raised."""
    tasks = [asyncio.ensure_future(_read(part, profile, engine, job)) for part in parts]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read(part: Part, profile: Profile, engine: Engine, job: ExtractConfig) -> _Reading:
    prompt = build(profile, part, job.objections)
    grounding = ground(profile.schema, part)
    completion = await engine.submit(_request(prompt, grounding, profile, job))
    value = _parsed(completion, profile, part)
    citations = locate(grounding, profile.schema, value)
    if job.grounded:
        _insist_on_citations(profile, part, value, citations)
    return _Reading(prompt, completion, value, citations)


def _request(prompt: Prompt, grounding: Grounding, profile: Profile, job: ExtractConfig) -> Request:
    return Request(
        request_id=request_id(job.job_id, job.attempt, grounding.part.number),
        system=prompt.system,
        user=prompt.user,
        max_tokens=profile.max_output_tokens,
        priority=job.priority,
        deadline_s=job.deadline_s,
        temperature=profile.temperature,
        seed=job.seed,
        grammar=grounding.grammar if job.grounded else None,
        json_schema=None if job.grounded else profile.json_schema(),
        cache_salt=job.cache_salt,
    )


def _parsed(completion: Completion, profile: Profile, part: Part) -> Any:
    """The answer as a value of the profile's schema."""
    where = f"part {part.number} of {part.of}"
    if not completion.text.strip():
        raise EmptyOutput(f"{where}: the model answered nothing; look for a grammar error in the engine's log")
    if completion.finish_reason == "length":
        limit = profile.max_output_tokens
        raise OutputTruncated(f"{where}: the answer ran into its {limit} tokens; raise the profile's max_output_tokens")
    try:
        value = json.loads(completion.text)
    except json.JSONDecodeError as error:
        raise InvalidOutput(f"{where}: the answer is not JSON ({error}); try again or another lane") from error
    if wrong := best_match(Draft202012Validator(profile.schema).iter_errors(value)):
        raise InvalidOutput(f"{where}: at {wrong.json_path}: {wrong.message}; this is not of profile {profile.name}")
    return value


def _insist_on_citations(profile: Profile, part: Part, value: Any, citations: tuple[Citation, ...]) -> None:
    """An engine that ignores the grammar (an old server does, in silence) must not go unnoticed."""
    cited = {citation.path for citation in citations}
    for leaf in leaves(profile.schema, value):
        if leaf.path not in cited:
            raise InvalidOutput(
                f"part {part.number} of {part.of}: {leaf.path} is {leaf.text!r}, which the document does not print;"
                " the engine did not follow the grammar: check its structured-outputs backend"
            )


def _cited(merged: Merged, readings: Sequence[_Reading]) -> tuple[Citation, ...]:
    """The citations of the values that were kept, under their paths in the merged result."""
    known = {(number, cited.path): cited for number, reading in enumerate(readings) for cited in reading.citations}
    kept = ((path, known.get(origin)) for path, origin in merged.origins.items())
    return tuple(replace(citation, path=path) for path, citation in kept if citation is not None)


def _summed(completions: Sequence[Completion], prices: Prices) -> Usage:
    """Tokens add up; the parts ran side by side, so of their times the longest counts."""
    costs = (cost(one.prompt_tokens, one.cached_tokens, one.output_tokens, prices) for one in completions)
    return Usage(
        prompt_tokens=sum(one.prompt_tokens for one in completions),
        cached_tokens=sum(one.cached_tokens for one in completions),
        output_tokens=sum(one.output_tokens for one in completions),
        queue_ms=max(one.queue_ms for one in completions),
        prefill_ms=max(one.prefill_ms for one in completions),
        decode_ms=max(one.decode_ms for one in completions),
        cost_usd=sum(costs, Decimal(0)),
    )


def _sha256(prompts: Any) -> str:
    digest = hashlib.sha256()
    for prompt in prompts:
        digest.update(f"{prompt.system}\0{prompt.user}\0".encode())
    return digest.hexdigest()
