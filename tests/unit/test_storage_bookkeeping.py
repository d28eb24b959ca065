"""Whatever happens to an attempt, in whatever order it is told: its entries add up to what it used."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from docmill.types import Usage
from storage import bookkeeping
from storage.bookkeeping import SPENDING, Entry, Kind, held, spent
from storage.ports import Claim, Stage, Waste

CLAIM = Claim(
    job_id="j",
    attempt=1,
    stage=Stage.INFER,
    document_id="d",
    tenant="acme",
    profile="risk-report",
    profile_version="1",
    blob_key="b",
    vip=False,
    age_s=0,
    window_s=0,
    remaining_s=60,
    retries=0,
    rejections=0,
)
AMOUNTS = st.integers(0, 10**12).map(lambda number: Decimal(number) / 10**12)
USES = st.builds(
    lambda cost, tokens: Usage(prompt_tokens=tokens, cost_usd=cost, gpu_seconds=cost), AMOUNTS, st.integers(0, 9999)
)
#: What may be told of one attempt: it reports, ends without a word, is given up, or its job's use is written off.
TOLD = st.one_of(
    st.tuples(st.just("report"), USES, st.sampled_from([None, *Waste]), st.booleans()),
    st.tuples(st.just("close")),
    st.tuples(st.just("give_up"), st.sampled_from([Waste.LOST, Waste.CANCELLED])),
    st.tuples(st.just("write_off"), st.sampled_from(Waste)),
)


def after(told: list[tuple[object, ...]], reserved: Decimal | None) -> list[Entry]:
    book = [] if reserved is None else [bookkeeping.reservation(CLAIM, reserved)]
    for what, *details in told:
        match what, details:
            case "report", [Usage() as usage, waste, bool() as overtaken]:
                known = waste if isinstance(waste, Waste) else None
                book += bookkeeping.settlement(book, CLAIM, usage, known, overtaken=overtaken)
            case "give_up", [Waste() as waste]:
                book += bookkeeping.closing(book, waste)
            case "write_off", [Waste() as waste]:
                book += bookkeeping.write_off(book, waste)
            case _:
                book += bookkeeping.closing(book)
    return book


@given(st.lists(TOLD, max_size=8), st.one_of(st.none(), AMOUNTS))
def test_nothing_is_held_once_an_attempt_has_ended_and_what_it_used_stands(
    told: list[tuple[object, ...]], reserved: Decimal | None
) -> None:
    book = after(told, reserved)
    ended = [one for one in told if one[0] != "write_off"]
    assert held(book) == (0 if ended or reserved is None else reserved)
    reports = [one[1] for one in told if one[0] == "report"]
    first = next((one[0] for one in ended), None)
    if reports:
        used = reports[0]
        assert isinstance(used, Usage)
        assert spent(book) == used.cost_usd
        assert sum(entry.prompt_tokens for entry in book if entry.kind in SPENDING) == used.prompt_tokens
    else:
        assert spent(book) == (reserved if first == "give_up" and reserved is not None else 0)


@given(st.lists(TOLD, max_size=8), AMOUNTS)
def test_an_attempt_is_reserved_settled_and_refunded_once(told: list[tuple[object, ...]], reserved: Decimal) -> None:
    kinds = [entry.kind for entry in after(told, reserved)]
    assert all(kinds.count(kind) <= 1 for kind in (Kind.RESERVE, Kind.SETTLE, Kind.REFUND))


@given(st.lists(TOLD, max_size=8), AMOUNTS, st.sampled_from(Waste))
def test_after_a_write_off_nothing_is_left_that_is_not_wasted(
    told: list[tuple[object, ...]], reserved: Decimal, waste: Waste
) -> None:
    book = after([*told, ("write_off", waste)], reserved)
    good = [entry for entry in book if entry.kind in SPENDING and entry.waste is None]
    assert sum((entry.amount_usd for entry in good), Decimal(0)) == 0
    assert bookkeeping.write_off(book, waste) == []
