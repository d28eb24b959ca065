"""One part's answer: asked for, checked, cited. What an earlier attempt has read and kept is not asked for again.

An answer that ran out of room is asked for once more with the lesser of twice the room and the profile's limit; one
that went round in circles once more with some chance in it, since without any it would go the same way.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from docmill.codec import decode, encode
from docmill.errors import EmptyOutput, InvalidOutput, LoopingOutput, OutputTruncated
from docmill.types import Citation, Part
from inference.cite import leaves, locate
from inference.cost import Prices
from inference.engine import Completion, Engine, EngineInfo, Request
from inference.grounding import Grounding, ground
from inference.loops import LOOP
from inference.profile import Profile
from inference.prompt import Objections, Prompt, build

#: The temperature at which an answer is asked for again that went round in circles.
OUT_OF_THE_LOOP: Final = 0.3
#: How much more room an answer gets that was cut off.
MORE_ROOM: Final = 2


class Kept(Protocol):
    """Answers to the parts of a job that earlier attempts have read; a failed attempt leaves its good ones here."""

    def get(self, key: str) -> bytes | None:
        """The answer of this key, if it was kept."""
        ...

    def keep(self, key: str, answer: bytes) -> None:
        """Keep an answer. Called from a thread; raises StaleAttempt if the job has another attempt by now."""
        ...


class _Nothing:
    """Keeps nothing: for a document of one part, whose only answer is the result."""

    def get(self, key: str) -> bytes | None:
        return None

    def keep(self, key: str, answer: bytes) -> None:
        return None


NOTHING_KEPT: Final[Kept] = _Nothing()


@dataclass(frozen=True, slots=True)
class ExtractConfig:
    """What the caller knows of the job. `grounded=False` decodes by the JSON Schema alone, for comparison only.

    `objections` say what was wrong with an earlier reading; the model is told. `max_tokens` is how long an answer
    probably is (None: the profile's limit); `at_once` bounds the parts that are read side by side; `reading` counts the
    readings of the document that the rules rejected, of which nothing is kept for the next.
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
    max_tokens: int | None = None
    at_once: int = 16
    reading: int = 0
    kept: Kept = NOTHING_KEPT


@dataclass(frozen=True)
class Reading:
    """One part's answer, checked. `asked` are all completions that it took, none if it was kept from before."""

    part: Part
    prompt: Prompt
    completion: Completion
    value: Any
    citations: tuple[Citation, ...]
    asked: tuple[Completion, ...]


def request_id(job_id: str, attempt: int, part: int) -> str:
    """The engine's name for one part of a job, for whoever must cancel it."""
    return f"{job_id}.{attempt}.{part}"


async def read(part: Part, profile: Profile, engine: Engine, job: ExtractConfig) -> Reading:
    """The answer for one part. Raises the ModelErrors and SystemFaults of docmill.errors."""
    prompt = build(profile, part, job.objections)
    grounding = ground(profile.schema, part)
    key = key_of(prompt, profile, engine.info, job)
    before = job.kept.get(key) if part.of > 1 else None
    if before is not None:
        return _checked(decode(before, Completion), prompt, grounding, profile, job, asked=())
    asked = await _ask(_request(prompt, grounding, profile, job), profile, engine)
    reading = _checked(asked[-1], prompt, grounding, profile, job, asked=asked)
    if part.of > 1:
        await asyncio.to_thread(job.kept.keep, key, encode(reading.completion))
    return reading


def key_of(prompt: Prompt, profile: Profile, info: EngineInfo, job: ExtractConfig) -> str:
    """The same question to the same model: what an answer is kept under."""
    asked = (
        *prompt,
        profile.version,
        json.dumps(profile.schema),
        info.model,
        info.precision,
        job.grounded,
        job.reading,
    )
    return hashlib.sha256(json.dumps(asked).encode()).hexdigest()


async def _ask(request: Request, profile: Profile, engine: Engine) -> tuple[Completion, ...]:
    """The completion, and the one before it if that could not be used and another try may help."""
    first = await engine.submit(request)
    again = _second_try(first, request, profile)
    return (first,) if again is None else (first, await engine.submit(again))


def _second_try(completion: Completion, request: Request, profile: Profile) -> Request | None:
    if completion.finish_reason == LOOP:
        return replace(request, temperature=max(request.temperature, OUT_OF_THE_LOOP), seed=request.seed + 1)
    if completion.finish_reason == "length" and request.max_tokens < profile.max_output_tokens:
        return replace(request, max_tokens=min(profile.max_output_tokens, MORE_ROOM * request.max_tokens))
    return None


def _request(prompt: Prompt, grounding: Grounding, profile: Profile, job: ExtractConfig) -> Request:
    limit = profile.max_output_tokens
    return Request(
        request_id=request_id(job.job_id, job.attempt, grounding.part.number),
        system=prompt.system,
        user=prompt.user,
        max_tokens=limit if job.max_tokens is None else min(limit, job.max_tokens),
        priority=job.priority,
        deadline_s=job.deadline_s,
        temperature=profile.temperature,
        seed=job.seed,
        grammar=grounding.grammar if job.grounded else None,
        json_schema=None if job.grounded else profile.json_schema(),
        cache_salt=job.cache_salt,
    )


def _checked(
    completion: Completion,
    prompt: Prompt,
    grounding: Grounding,
    profile: Profile,
    job: ExtractConfig,
    *,
    asked: tuple[Completion, ...],
) -> Reading:
    """An answer as a reading. Raises the ModelError that names what is wrong with it."""
    part = grounding.part
    value = _parsed(completion, profile, part)
    citations = locate(grounding, profile.schema, value)
    if job.grounded:
        _insist_on_citations(profile, part, value, citations)
    return Reading(part, prompt, completion, value, citations, asked)


def _parsed(completion: Completion, profile: Profile, part: Part) -> Any:
    """The answer as JSON of the profile's schema."""
    where = f"part {part.number} of {part.of}"
    if completion.finish_reason == LOOP:
        raise LoopingOutput(
            f"{where}: the answer went round in circles and was stopped after {completion.output_tokens} tokens:"
            f" …{completion.text[-40:]!r}; shorten the profile's fields or take a better lane"
        )
    if not completion.text.strip():
        raise EmptyOutput(f"{where}: the model answered nothing; look for a grammar error in the engine's log")
    if completion.finish_reason == "length":
        raise OutputTruncated(
            f"{where}: the answer ran into its {completion.output_tokens} tokens; raise the profile's max_output_tokens"
        )
    try:
        value = json.loads(completion.text)
    except json.JSONDecodeError as error:
        raise InvalidOutput(f"{where}: the answer is not JSON ({error}); try again or another lane") from error
    if wrong := best_match(Draft202012Validator(profile.schema).iter_errors(value)):
        raise InvalidOutput(f"{where}: at {wrong.json_path}: {wrong.message}; this is not of profile {profile.name}")
    return value


def _insist_on_citations(profile: Profile, part: Part, value: Any, citations: Sequence[Citation]) -> None:
    """An engine that ignores the grammar (an old server does, in silence) must not go unnoticed."""
    cited = {citation.path for citation in citations}
    for leaf in leaves(profile.schema, value):
        if leaf.path not in cited:
            raise InvalidOutput(
                f"part {part.number} of {part.of}: {leaf.path} is {leaf.text!r}, which the document does not print;"
                " the engine did not follow the grammar: check its structured-outputs backend"
            )
