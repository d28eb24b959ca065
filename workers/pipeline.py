"""The order of the stages, in one screen.

    received ──parse──▶ prepared ▶ queued ──infer──▶ running ▶ validating ──validate──▶ done | needs_review

Each step is `load → pure stage function → save → name the next`; `run` puts a claim and a lease around it, and
settles errors by the table in `workers/policy.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from docmill.codec import pack, unpack
from docmill.errors import EngineDead, EngineUnavailable, StaleAttempt
from docmill.log import logger, say
from docmill.types import Heat, Outcome, Part, PreparedDocument, Route
from inference.extract import ExtractConfig, extract
from inference.profile import Profile, get
from inference.prompt import overhead
from inference.route import queue_name
from preprocess.budget import split
from preprocess.dedup import bands
from preprocess.prepare import prepare
from preprocess.tokens import counter
from preprocess.version import PARSER
from storage.blobs import prepared_key
from storage.ports import Claim, Stage
from validation.validate import validate as judge
from workers.engine_host import leave_with_engine
from workers.policy import code_of, describe, policy_for
from workers.services import Services

log = logger("pipeline")


def parse(claim: Claim, use: Services) -> None:
    """Bytes → prepared document → route."""
    prepared = _prepared_before(claim, use) or _prepare(claim, use)
    chosen = route_claim(claim, prepared.tokens, use)
    use.store.finish_parse(claim, prepared, chosen, bands=bands(prepared.signature))
    if chosen.heat == Heat.HOT:
        use.send(claim.job_id, Stage.INFER, chosen, hot=True)


def infer(claim: Claim, use: Services) -> None:
    """Prepared document → extraction, on this worker's engine."""
    if use.engine is None or claim.route is None:
        raise EngineUnavailable("this worker has no engine: start it with `docmill worker gpu`")
    profile = get(use.profiles, claim.profile)
    prepared = load_prepared(claim.document_id, use)
    parts = split(prepared, _room(profile, claim.route, use))
    config = _extract_config(claim, claim.route, use)
    extraction = use.engine.call(
        lambda engine: extract(parts, profile, engine, config),
        timeout_s=config.deadline_s * _rounds(parts, claim.route, use),
    )
    use.store.finish_infer(claim, extraction)
    use.send(claim.job_id, Stage.VALIDATE, None, hot=True)


def validate(claim: Claim, use: Services) -> None:
    """Extraction → verdict → the one result, or one more reading on a better lane."""
    profile = get(use.profiles, claim.profile)
    extraction = use.store.extraction(claim)
    prepared = load_prepared(claim.document_id, use)
    verdict = judge(extraction, prepared, schema=profile.schema, ruleset=use.rulesets[profile.ruleset])
    again = verdict.outcome == Outcome.REJECT and claim.rejections == 0
    retry = _better_route(claim, profile, prepared, use) if again else None
    use.store.finish_validate(claim, verdict, extraction, retry=retry)
    if retry is not None and retry.heat == Heat.HOT:
        use.send(claim.job_id, Stage.INFER, retry, hot=True)


STEPS: dict[Stage, Callable[[Claim, Services], None]] = {
    Stage.PARSE: parse,
    Stage.INFER: infer,
    Stage.VALIDATE: validate,
}


def run(stage: Stage, job_id: str, use: Services) -> None:
    """Claim the job, run the step under a lease, settle what goes wrong. A second delivery does nothing."""
    claim = use.store.claim(job_id, stage, worker=use.worker, lease_s=use.settings.lease_s)
    if claim is None:
        say(log, "not_ours", job_id=job_id, stage=stage)
        return
    say(log, "claimed", job_id=job_id, stage=stage, attempt=claim.attempt)
    with use.leases.held(claim):
        try:
            STEPS[stage](claim, use)
            say(log, "finished", job_id=job_id, stage=stage, attempt=claim.attempt)
        except StaleAttempt as stale:
            say(log, "stale", job_id=job_id, stage=stage, attempt=claim.attempt, why=stale)
        except Exception as error:
            say(log, "error", level=logging.WARNING, error=True, job_id=job_id, stage=stage, code=code_of(error))
            settle(error, claim, use)


def settle(error: Exception, claim: Claim, use: Services) -> None:
    """Give the job back or end it, as the policy table says; leave with the engine if that is dead."""
    policy = policy_for(error)
    tries = claim.retries + 1
    try:
        if tries >= policy.tries:
            use.store.fail(claim, code=code_of(error), reason=describe(error))
        else:
            use.store.give_back(claim, reason=describe(error), delay_s=policy.delay_s * tries, counts=True)
    except StaleAttempt as stale:
        say(log, "stale", job_id=claim.job_id, attempt=claim.attempt, why=stale)
    if isinstance(error, EngineDead):
        leave_with_engine()


def route_claim(claim: Claim, tokens: int, use: Services) -> Route:
    """Where this claim's document is read."""
    return use.route(tokens, claim.profile, age_s=claim.age_s, window_s=claim.window_s, vip=claim.vip)


def load_prepared(document_id: str, use: Services) -> PreparedDocument:
    """The parsed document from the blob store."""
    return unpack(use.blobs.get(prepared_key(document_id)), PreparedDocument)


def _prepare(claim: Claim, use: Services) -> PreparedDocument:
    """Parse the document and keep what was read for the next stages and for other profiles."""
    prepared = prepare(use.blobs.get(claim.blob_key), claim.document_id, use.prepare)
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    return prepared


def _prepared_before(claim: Claim, use: Services) -> PreparedDocument | None:
    """Another profile's job has parsed the same document with this parser already."""
    if not use.blobs.exists(prepared_key(claim.document_id)):
        return None
    prepared = load_prepared(claim.document_id, use)
    return prepared if prepared.parser == PARSER else None


def _room(profile: Profile, chosen: Route, use: Services) -> int:
    """Tokens that a lane's context leaves for the document."""
    lane = use.lane(chosen.lane)
    count = counter(use.tokenizer)
    return lane.context_tokens - profile.max_output_tokens - overhead(profile, lambda text: count([text])[0])


def _rounds(parts: tuple[Part, ...], chosen: Route, use: Services) -> int:
    """How many times the lane's slots must be filled to read all parts."""
    return 1 + len(parts) // use.lane(chosen.lane).max_num_seqs


def _extract_config(claim: Claim, chosen: Route, use: Services) -> ExtractConfig:
    return ExtractConfig(
        job_id=claim.job_id,
        attempt=claim.attempt,
        priority=chosen.priority,
        deadline_s=use.settings.infer_deadline_s,
        seed=claim.retries + claim.rejections,
        cache_salt=claim.tenant,
        prices=use.lane(chosen.lane).prices,
    )


def _better_route(claim: Claim, profile: Profile, prepared: PreparedDocument, use: Services) -> Route:
    """The next lane of the profile's list that runs; the same one, with another seed, where there is no other."""
    fresh = route_claim(claim, prepared.tokens, use)
    running = [name for name in profile.lanes if name in use.lanes]
    present = claim.route.lane if claim.route is not None else fresh.lane
    later = running[running.index(present) + 1 :] if present in running else []
    if not later:
        return fresh
    lane = use.lanes[later[0]]
    return replace(fresh, lane=lane.name, queue=queue_name(fresh.heat, fresh.length_class, lane, use.lanes))
