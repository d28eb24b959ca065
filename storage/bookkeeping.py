"""What is written on the ledger, and when: pure, so that both stores keep the same books.

An attempt that is about to use the engine *reserves* what it may cost. When it ends, the reservation is *refunded* in
whole and what was really used is *settled*, whatever became of the attempt: so the entries of a job that is over add
up to its cost, and those of one that runs to what it may cost. Nothing is ever changed: money that turns out to be
wasted, or to have been estimated wrongly, is *corrected* by entries that take it back and book it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum

from docmill.types import LengthClass, Usage
from storage.ports import Claim, Waste

ZERO = Decimal(0)


class Kind(StrEnum):
    """What an entry does."""

    RESERVE = "reserve"
    SETTLE = "settle"
    REFUND = "refund"
    CORRECT = "correct"


#: Entries of these kinds say what was used; the others hold money and give it back.
SPENDING = frozenset({Kind.SETTLE, Kind.CORRECT})


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the ledger. `estimated`: the attempt ended without a report and is charged what it had reserved."""

    tenant: str
    job_id: str
    attempt: int
    kind: Kind
    amount_usd: Decimal
    profile: str
    length_class: LengthClass | None = None
    lane: str | None = None
    gpu_seconds: Decimal = ZERO
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    waste: Waste | None = None
    estimated: bool = False


def reservation(claim: Claim, amount_usd: Decimal) -> Entry:
    """What is held for an attempt before it uses the engine."""
    return replace(_blank(claim), kind=Kind.RESERVE, amount_usd=amount_usd)


def settlement(
    book: Sequence[Entry], claim: Claim, usage: Usage, waste: Waste | None, *, overtaken: bool = False
) -> list[Entry]:
    """What an attempt's own report adds to its entries; nothing if it has reported before.

    A report may come late, after the attempt was given up and charged by estimate: then the estimate is taken back. If
    another attempt has taken the job meanwhile (`overtaken`), the same work was done twice.
    """
    estimates = [entry for entry in book if entry.kind == Kind.SETTLE and entry.estimated]
    if not estimates and any(entry.kind == Kind.SETTLE for entry in book):
        return []
    if not estimates:
        return [_used(claim, Kind.SETTLE, usage, waste), *_refunds(book)]
    if any(entry.kind == Kind.CORRECT and entry.estimated for entry in book):
        return []
    known = estimates[0].waste
    late = Waste.DUPLICATE if overtaken and known == Waste.LOST else known
    return [*(_negative(entry) for entry in estimates), _used(claim, Kind.CORRECT, usage, late)]


def closing(book: Sequence[Entry], waste: Waste | None = None) -> list[Entry]:
    """What is written when an attempt ends and has not reported: the reservation is given back.

    With `waste` (its worker was lost, or does not know yet that it was cancelled) it is charged by estimate.
    """
    refunds = _refunds(book)
    if waste is None or not refunds:
        return refunds
    charged = replace(_negative(refunds[0]), kind=Kind.SETTLE, waste=waste, estimated=True)
    return [charged, *refunds]


def write_off(book: Iterable[Entry], waste: Waste) -> list[Entry]:
    """What marks all that a job has used so far, and that is not marked yet, as wasted."""
    good = [entry for entry in book if entry.kind in SPENDING and entry.waste is None]
    written: list[Entry] = []
    for attempt in sorted({entry.attempt for entry in good}):
        standing = total([entry for entry in good if entry.attempt == attempt])
        if standing.amount_usd or standing.gpu_seconds or standing.prompt_tokens:
            written += [_negative(standing), replace(standing, kind=Kind.CORRECT, waste=waste)]
    return written


def total(entries: Sequence[Entry]) -> Entry:
    """Entries of one attempt as one."""
    return replace(
        entries[0],
        amount_usd=sum((entry.amount_usd for entry in entries), ZERO),
        gpu_seconds=sum((entry.gpu_seconds for entry in entries), ZERO),
        prompt_tokens=sum(entry.prompt_tokens for entry in entries),
        cached_tokens=sum(entry.cached_tokens for entry in entries),
        output_tokens=sum(entry.output_tokens for entry in entries),
    )


def spent(book: Iterable[Entry]) -> Decimal:
    """What was used, without what is only held."""
    return sum((entry.amount_usd for entry in book if entry.kind in SPENDING), ZERO)


def held(book: Iterable[Entry]) -> Decimal:
    """What is reserved and not given back."""
    return sum((entry.amount_usd for entry in book if entry.kind not in SPENDING), ZERO)


def _refunds(book: Sequence[Entry]) -> list[Entry]:
    given_back = any(entry.kind == Kind.REFUND for entry in book)
    reserved = [] if given_back else [entry for entry in book if entry.kind == Kind.RESERVE]
    return [replace(entry, kind=Kind.REFUND, amount_usd=-entry.amount_usd) for entry in reserved]


def _negative(entry: Entry) -> Entry:
    """What takes an entry back."""
    return replace(
        entry,
        kind=Kind.CORRECT,
        amount_usd=-entry.amount_usd,
        gpu_seconds=-entry.gpu_seconds,
        prompt_tokens=-entry.prompt_tokens,
        cached_tokens=-entry.cached_tokens,
        output_tokens=-entry.output_tokens,
    )


def _used(claim: Claim, kind: Kind, usage: Usage, waste: Waste | None) -> Entry:
    return replace(
        _blank(claim),
        kind=kind,
        amount_usd=usage.cost_usd,
        gpu_seconds=usage.gpu_seconds,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        waste=waste,
    )


def _blank(claim: Claim) -> Entry:
    route = claim.route
    return Entry(
        tenant=claim.tenant,
        job_id=claim.job_id,
        attempt=claim.attempt,
        kind=Kind.SETTLE,
        amount_usd=ZERO,
        profile=claim.profile,
        length_class=route.length_class if route else None,
        lane=route.lane if route else None,
        retries=claim.retries + claim.rejections,
    )
