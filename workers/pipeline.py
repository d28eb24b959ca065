"""The order of the stages, in one screen.

    received ──parse──▶ prepared ▶ queued ──infer──▶ running ▶ validating ──validate──▶ done | needs_review

Each step is `load → pure stage function → save → name the next`; `run` puts a claim and a lease around it, and
settles errors by the table in `workers/policy.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from docmill.codec import pack, unpack
from docmill.errors import EngineDead, EngineUnavailable, StaleAttempt
from docmill.log import logger, say
from docmill.types import Extraction, Heat, Part, PreparedDocument, Route, Status
from inference.extract import ExtractConfig, extract
from inference.profile import Profile, get
from inference.prompt import Objections, overhead
from inference.qos import engine_priority, open_lanes
from inference.remarks import with_omissions
from inference.reuse import reuse
from inference.route import better_lane, queue_name
from preprocess.budget import Budget, fit
from preprocess.dedup import likeness
from preprocess.prepare import prepare
from preprocess.tokens import counter
from preprocess.version import PARSER
from storage.blobs import prepared_key
from storage.ports import Claim, Stage
from workers.charging import Terms, agree, charged
from workers.controller import wake, watched
from workers.decoding import HandedBack
from workers.engine_host import leave_with_engine
from workers.judging import judge
from workers.messages import objections_of
from workers.parts import KeptAnswers
from workers.policy import Policy, Step, code_of, describe, policy_for
from workers.room import Place
from workers.services import Services

log = logger("pipeline")

#: Pages of a document between two log lines of its parse.
_TOLD_EVERY: Final = 100


def parse(claim: Claim, use: Services) -> None:
    """Bytes → prepared document → route."""
    prepared = _prepared_before(claim, use) or _prepare(claim, use)
    chosen = route_claim(claim, prepared.tokens, use)
    _terms(claim, chosen, prepared.tokens, {}, use)  # what may not be read is refused before it waits
    like, at_once = likeness(prepared.pages, prepared.signature), is_at_once(chosen, claim)
    use.store.finish_parse(claim, prepared, chosen, likeness=like, sent=at_once)
    if at_once:
        use.send(claim.job_id, Stage.INFER, chosen, hot=True, marked=True)


def infer(claim: Claim, use: Services) -> None:
    """Prepared document → extraction, on this worker's engine."""
    if use.engine is None or claim.route is None:
        raise EngineUnavailable("this worker has no engine: start it with `docmill worker gpu`")
    profile = get(use.profiles, claim.profile)
    prepared = load_prepared(claim.document_id, use)
    objections = _objections(claim, profile, use)
    terms = _terms(claim, claim.route, prepared.tokens, objections, use)
    shown = fit(prepared, _budget(profile, terms.room))
    config = replace(_extract_config(claim, claim.route, use), objections=objections)
    extraction = _shared(claim, shown.parts, profile, use)
    terms = replace(terms, output_tokens=config.max_tokens or terms.output_tokens)
    with charged(claim, shown.parts if extraction is None else (), terms, use) as bill:
        if extraction is None:
            with watched(claim, use):
                extraction = use.decoding.run(
                    claim,
                    use.engine,
                    lambda engine: extract(shown.parts, profile, bill.over(engine), config),
                    timeout_s=config.deadline_s * _rounds(shown.parts, claim.route, use),
                )
        extraction = replace(extraction, usage=bill.usage())
        use.store.finish_infer(claim, with_omissions(extraction, shown.omitted), sent=True)
    use.watch.prompted(profile.name, extraction.usage)
    wake(claim.route, use)
    use.send(claim.job_id, Stage.VALIDATE, None, hot=True, marked=True)


def validate(claim: Claim, use: Services) -> None:
    """Extraction → verdict → what the policy says: the one result, a person, or one more reading on a better lane."""
    profile = get(use.profiles, claim.profile)
    extraction = use.store.extraction(claim)
    prepared = load_prepared(claim.document_id, use)
    rules, told = use.rulesets[profile.ruleset], profile.instructions.values()
    verdict = judge(extraction, prepared, schema=profile.schema, ruleset=rules, prompt=told)
    step = use.policy.step(profile.name, verdict.outcome, claim.rejections)
    retry = _better_route(claim, profile, prepared, use) if step == Step.RETRY else None
    at_once = retry is not None and is_at_once(retry, claim)
    use.store.finish_validate(claim, verdict, extraction, retry=retry, ends=ENDS_AS.get(step), sent=at_once)
    if at_once:
        use.send(claim.job_id, Stage.INFER, retry, hot=True, marked=True)


#: How a job ends by the step that the policy takes; one that is read again does not end.
ENDS_AS = {Step.ACCEPT: Status.DONE, Step.REVIEW: Status.NEEDS_REVIEW, Step.REJECT: Status.FAILED}

STEPS: dict[Stage, Callable[[Claim, Services], None]] = {
    Stage.PARSE: parse,
    Stage.INFER: infer,
    Stage.VALIDATE: validate,
}


def run(stage: Stage, job_id: str, use: Services) -> None:
    """Claim the job, run the step under a lease, settle what goes wrong. A second delivery does nothing."""
    if use.room.is_closed:
        use.store.mark_unpublished([job_id])  # for another worker, without the wait for a message that is lost
    with use.room.entered() as place:
        claim = use.store.claim(job_id, stage, worker=use.worker, lease_s=use.settings.lease_s)
        if claim is None:
            say(log, "not_ours", job_id=job_id, stage=stage)
            return
        say(log, "claimed", job_id=job_id, stage=stage, attempt=claim.attempt)
        with use.leases.held(claim):
            _carry_out(claim, place, use)


def _carry_out(claim: Claim, place: Place, use: Services) -> None:
    about: dict[str, Any] = {"job_id": claim.job_id, "stage": claim.stage, "attempt": claim.attempt}
    try:
        if claim.lost + 1 >= use.settings.max_lost:
            place.be_alone()
            use.store.alone(claim)
            say(log, "alone", level=logging.WARNING, lost=claim.lost, **about)
        STEPS[claim.stage](claim, use)
        say(log, "finished", **about)
    except StaleAttempt as stale:
        say(log, "stale", why=stale, **about)
    except HandedBack as leaving:
        _hand_back(claim, str(leaving), use)
    except Exception as error:
        say(log, "error", level=logging.WARNING, error=True, code=code_of(error), **about)
        settle(error, claim, use)


def _hand_back(claim: Claim, why: str, use: Services) -> None:
    """Another worker may have the job at once, and it is no try of it."""
    try:
        use.store.give_back(claim, reason=why, delay_s=0, counts=False)
    except StaleAttempt as stale:
        say(log, "stale", job_id=claim.job_id, attempt=claim.attempt, why=stale)


def settle(error: Exception, claim: Claim, use: Services) -> None:
    """Give the job back or end it, as the policy table says; leave with the engine if that is dead."""
    if isinstance(error, EngineDead):
        use.room.close()
    try:
        _settle(policy_for(error), error, claim, use)
    except StaleAttempt as stale:
        say(log, "stale", job_id=claim.job_id, attempt=claim.attempt, why=stale)
    if isinstance(error, EngineDead):
        leave_with_engine()


def _settle(policy: Policy, error: Exception, claim: Claim, use: Services) -> None:
    reason, tries = describe(error), claim.retries + 1
    if policy.loses:
        use.store.lose(claim, reason=reason, max_lost=use.settings.max_lost)
    elif not policy.counts:
        use.store.give_back(claim, reason=reason, delay_s=policy.delay_s, counts=False)
    elif tries >= policy.tries:
        use.store.fail(claim, code=code_of(error), reason=reason)
    else:
        asked_s = error.retry_after_s if isinstance(error, EngineUnavailable) else 0.0
        use.store.give_back(claim, reason=reason, delay_s=max(asked_s, policy.delay_s * tries), counts=True)


def route_claim(claim: Claim, tokens: int, use: Services) -> Route:
    """Where this claim's document is read."""
    need = {"age_s": claim.age_s, "window_s": claim.window_s}
    return use.route(tokens, claim.profile, **need, vip=claim.vip, tenant=claim.tenant)


def is_at_once(chosen: Route, claim: Claim) -> bool:
    """Hot work needs no dispatch, unless its key has an order, which dispatch keeps."""
    return chosen.heat == Heat.HOT and claim.ordering_key is None


def load_prepared(document_id: str, use: Services) -> PreparedDocument:
    """The parsed document from the blob store."""
    return unpack(use.blobs.get(prepared_key(document_id)), PreparedDocument)


def _prepare(claim: Claim, use: Services) -> PreparedDocument:
    """Parse the document and keep what was read for the next stages and for other profiles."""
    prepared = prepare(use.blobs.get(claim.blob_key), claim.document_id, use.prepare, on_page=_progress(claim))
    use.blobs.put(prepared_key(claim.document_id), pack(prepared))
    return prepared


def _progress(claim: Claim) -> Callable[[int, int], None]:
    """Tells of a long document that it moves."""

    def on_page(page: int, of: int) -> None:
        if page % _TOLD_EVERY == 0:
            say(log, "parsing", job_id=claim.job_id, page=page, of=of)

    return on_page


def _prepared_before(claim: Claim, use: Services) -> PreparedDocument | None:
    """Another profile's job has parsed the same document with this parser already."""
    if not use.blobs.exists(prepared_key(claim.document_id)):
        return None
    prepared = load_prepared(claim.document_id, use)
    return prepared if prepared.parser == PARSER else None


def _shared(claim: Claim, parts: tuple[Part, ...], profile: Profile, use: Services) -> Extraction | None:
    """The reading of a document with the same text and facts, if its values stand here too; else the model reads."""
    again = claim.retries or claim.rejections
    earlier = use.store.repeated_reading(claim) if claim.repeats and not again else None
    shared = reuse(earlier, parts, profile) if earlier is not None else None
    if shared is not None:
        say(log, "shared", job_id=claim.job_id)
    return shared


def _objections(claim: Claim, profile: Profile, use: Services) -> Objections:
    """What the rules said of the last reading, where this is another one."""
    if claim.rejections == 0:
        return {}
    return objections_of(use.store.record(claim.job_id).findings, use.rulesets[profile.ruleset].rules)


def _terms(claim: Claim, chosen: Route, tokens: int, objections: Objections, use: Services) -> Terms:
    """On which lane, and in prompts of what length, a document of so many tokens is read."""
    profile = get(use.profiles, claim.profile)
    return agree(claim.tenant, chosen, tokens, _beside(profile, objections, use), profile, use)


def _beside(profile: Profile, objections: Objections, use: Services) -> int:
    """Tokens of a prompt beside the document; those of the usual prompt are counted once a process."""
    if not objections and profile.name in use.overheads:
        return use.overheads[profile.name]
    count = counter(use.tokenizer)
    beside = overhead(profile, lambda text: count([text])[0], objections)
    if not objections:
        use.overheads[profile.name] = beside
    return beside


def _budget(profile: Profile, room: int) -> Budget:
    """What a profile wants to be read of a document, in prompts with this much room."""
    return Budget(room, profile.document_tokens, profile.critical_terms, profile.critical_sections)


def _rounds(parts: tuple[Part, ...], chosen: Route, use: Services) -> int:
    """How many times the lane's slots must be filled to read all parts."""
    return 1 + len(parts) // use.lane(chosen.lane).max_num_seqs


def _extract_config(claim: Claim, chosen: Route, use: Services) -> ExtractConfig:
    return ExtractConfig(
        job_id=claim.job_id,
        attempt=claim.attempt,
        priority=engine_priority(chosen.priority, guaranteed=use.guaranteed(claim.tenant)),
        deadline_s=use.settings.infer_deadline_s,
        seed=claim.retries + claim.rejections,
        cache_salt=claim.tenant,
        at_once=use.lane(chosen.lane).max_num_seqs,
        reading=claim.rejections,
        max_tokens=use.usual_answers.max_tokens(get(use.profiles, claim.profile), chosen),
        kept=KeptAnswers(claim, use.parts).load(),
        prices=use.lane(chosen.lane).prices,
    )


def _better_route(claim: Claim, profile: Profile, prepared: PreparedDocument, use: Services) -> Route:
    """Where a result that the rules rejected is read again."""
    fresh = route_claim(claim, prepared.tokens, use)
    present = claim.route.lane if claim.route is not None else fresh.lane
    lanes = open_lanes(claim.tenant, use.lanes)
    lane = better_lane(present, fresh.heat, fresh.length_class, profile, lanes, tokens=prepared.tokens)
    return replace(fresh, lane=lane.name, queue=queue_name(fresh.heat, fresh.length_class, lane, use.lanes))
