"""The report of costs adds up to the ledger to the last digit; the database refuses to change an entry."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select, text, update
from sqlalchemy.exc import DBAPIError
from typer.testing import CliRunner

from docmill.types import LengthClass, Outcome, Usage
from storage import ledger
from storage.bookkeeping import Entry, Kind
from storage.costs import CostReport, cost_report
from storage.jobs import JobStore
from storage.ledger import Imbalance
from storage.ports import Stage, Waste
from storage.schema import attempts, batches, jobs
from storage.schema import ledger as entries
from tests.jobs import accepted, claimed, extraction, finding, route, through_parse, verdict
from workers import cli
from workers.cli_report import as_values, summary
from workers.services import _made, services
from workers.settings import settings

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(engine: Engine) -> JobStore:
    return JobStore(engine)


def reported(engine: Engine, **options: Any) -> CostReport:
    with engine.connect() as connection:
        return cost_report(connection, **options)


def imbalances(engine: Engine) -> list[Imbalance]:
    with engine.connect() as connection:
        return ledger.check(connection)


def usage(cost: str, *, prompt: int = 100, cached: int = 0, gpu: str = "0.5") -> Usage:
    return Usage(prompt, cached, 10, cost_usd=Decimal(cost), gpu_seconds=Decimal(gpu))


def reading(store: JobStore, name: str, *, held: str = "0.001", **of: Any) -> Any:
    """A job whose reading has begun."""
    job_id = accepted(store, name.encode(), **of)
    if store.record(job_id).tokens is None:
        through_parse(store, job_id)
    claim = claimed(store, job_id, Stage.INFER)
    store.reserve(claim, Decimal(held))
    return claim


def read(store: JobStore, name: str, used: Usage, **of: Any) -> str:
    """A job that was read and accepted."""
    claim = reading(store, name, **of)
    result = replace(extraction(), usage=used)
    store.finish_infer(claim, result)
    store.finish_validate(claimed(store, claim.job_id, Stage.VALIDATE), verdict(Outcome.PASS), result, retry=None)
    return str(claim.job_id)


def every_outcome(store: JobStore) -> None:
    """Work that ended in every way, with amounts down to the last place that the ledger keeps."""
    read(store, "good", usage("0.000100000001", cached=60))
    read(store, "other", usage("0.000200000003", prompt=300), tenant="globex", profile="customer-screening")
    unusable = reading(store, "unusable")
    store.settle(unusable, usage("0.000010000007"), waste=Waste.UNUSABLE)
    store.give_back(unusable, reason="not JSON", delay_s=0, counts=True)
    read(store, "unusable", usage("0.000300000001"))
    failed = reading(store, "failed")
    store.settle(failed, usage("0.000020000011"), waste=Waste.FAILED)
    store.fail(failed, code="deadline_exceeded", reason="late")
    cancelled = reading(store, "cancelled")
    store.cancel(cancelled.job_id, tenant="acme")
    store.settle(cancelled, usage("0.000030000013"), waste=Waste.LOST)
    rejected = reading(store, "rejected")
    first = replace(extraction(), usage=usage("0.000040000017"))
    store.finish_infer(rejected, first)
    check = claimed(store, rejected.job_id, Stage.VALIDATE)
    store.finish_validate(check, verdict(Outcome.REJECT, finding("r", Outcome.REJECT)), first, retry=route())
    read(store, "rejected", usage("0.000050000019"))
    reading(store, "under way", held="0.000700000023")


def lose(store: JobStore, name: str) -> Any:
    """A reading whose worker was lost."""
    claim = reading(store, name)
    store.lose(claim, reason="its engine died", max_lost=3)
    return claim


def test_the_report_adds_up_to_the_ledger_to_the_last_digit(store: JobStore, engine: Engine) -> None:
    every_outcome(store)
    late = lose(store, "lost")
    read(store, "lost", usage("0.000060000029"))
    store.settle(late, usage("0.000070000031"), waste=Waste.LOST)
    found = reported(engine)
    assert found.adds_up
    assert imbalances(engine) == []
    with engine.connect() as connection:
        rows = connection.execute(select(entries.c.amount_usd)).scalars().all()
    assert found.ledger_usd == sum(rows, Decimal(0)) == Decimal("0.001580000155")
    assert found.used_usd == Decimal("0.000880000132")
    assert found.held_usd == Decimal("0.000700000023")
    assert {one.waste: one.usd for one in found.wasted} == {
        "unusable": Decimal("0.000010000007"),
        "failed": Decimal("0.000020000011"),
        "cancelled": Decimal("0.000030000013"),
        "rejected": Decimal("0.000040000017"),
        "duplicate": Decimal("0.000070000031"),
    }
    assert {one.waste: one.attempts for one in found.wasted} == dict.fromkeys(
        ("cancelled", "duplicate", "failed", "rejected", "unusable"), 1
    )


def test_an_attempt_that_was_lost_is_waste_until_it_reports(store: JobStore, engine: Engine) -> None:
    lose(store, "lost")
    assert [(one.waste, one.usd) for one in reported(engine).wasted] == [("lost", Decimal("0.001"))]


def test_costs_are_told_by_tenant_profile_and_length(store: JobStore, engine: Engine) -> None:
    every_outcome(store)
    lines = {(line.tenant, line.profile, line.length_class): line for line in reported(engine).lines}
    assert set(lines) == {("acme", "risk-report", "short"), ("globex", "customer-screening", "short")}
    other = lines["globex", "customer-screening", "short"]
    assert (other.calls, other.retries, other.prompt_tokens, other.used_usd) == (1, 0, 300, Decimal("0.000200000003"))
    own = lines["acme", "risk-report", "short"]
    assert (own.calls, own.retries, own.cached_tokens) == (7, 2, 60)
    assert own.wasted_usd == reported(engine, tenant="acme").wasted_usd == Decimal("0.000100000048")


def test_the_prefix_cache_is_told_over_all_prompts(store: JobStore, engine: Engine) -> None:
    read(store, "a", usage("0.1", prompt=100, cached=50))
    read(store, "b", usage("0.1", prompt=300, cached=250))
    assert reported(engine).cache_hit_rate == Decimal("0.75")


def test_the_long_tail_is_what_calls_over_the_90th_percentile_cost(store: JobStore, engine: Engine) -> None:
    for number in range(9):
        read(store, str(number), usage("0.001"))
    read(store, "long", usage("0.011"))
    found = reported(engine)
    assert (found.p90_usd, found.tail_usd, found.tail_share) == (Decimal("0.001"), Decimal("0.011"), Decimal("0.55"))


def test_a_week_leaves_out_what_is_older(store: JobStore, engine: Engine) -> None:
    job_id = read(store, "new", usage("0.001"))
    with engine.begin() as connection:
        book = ledger.book(connection, job_id)
        for entry in book:
            old = {**asdict(replace(entry, attempt=99)), "at": NOON - timedelta(days=900)}
            connection.execute(insert(entries).values(old))
    assert reported(engine).used_usd == Decimal("0.002")
    assert reported(engine, since=datetime.now(UTC) - timedelta(days=7)).used_usd == Decimal("0.001")


def at(engine: Engine, job_id: str, begins: float, ends: float, batch_id: str | None = None) -> None:
    """Move the reading of a job to these seconds after noon, in a batch."""
    with engine.begin() as connection:
        if batch_id is not None:
            connection.execute(update(jobs).where(jobs.c.job_id == job_id).values(batch_id=batch_id))
        connection.execute(
            update(attempts)
            .where(attempts.c.job_id == job_id, attempts.c.stage == "infer")
            .values(started_at=NOON + timedelta(seconds=begins), ended_at=NOON + timedelta(seconds=ends))
        )


def test_the_idle_gap_is_the_time_of_a_batch_in_which_nothing_was_read(store: JobStore, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(insert(batches).values(batch_id="b", tenant="acme", label="l"))
    for name, begins, ends, batch in (("1", 0, 4, "b"), ("2", 2, 5, "b"), ("3", 8, 10, "b"), ("4", 6, 7, None)):
        at(engine, read(store, name, usage("0.001")), begins, ends, batch)
    found = reported(engine)
    gaps = {gap.batch_id: (gap.batch_s, gap.idle_s) for gap in found.gaps}
    assert gaps == {"b": (10, 2), None: (1, 0)}
    assert found.idle_share == Decimal("0.1818")


def test_an_empty_ledger_is_reported_as_nothing(engine: Engine) -> None:
    found = reported(engine)
    assert (found.lines, found.used_usd, found.tail_share, found.adds_up) == ((), 0, 0, True)
    assert "0 $ in 0 entries (the same)" in "\n".join(summary(found, []))


def test_the_json_of_a_report_keeps_every_digit(store: JobStore, engine: Engine) -> None:
    every_outcome(store)
    shown = json.loads(json.dumps(as_values(reported(engine), [])))
    lines = [Decimal(line["used_usd"]) + Decimal(line["held_usd"]) for line in shown["lines"]]
    assert sum(lines, Decimal(0)) == Decimal(shown["ledger_usd"]) == reported(engine).ledger_usd


def random_entries(job_id: str, seed: int) -> list[Entry]:
    chosen = random.Random(seed)

    def amount() -> Decimal:
        return Decimal(chosen.randrange(10**11)) / 10**12

    return [
        Entry(
            tenant=chosen.choice(["acme", "globex"]),
            job_id=job_id,
            attempt=1000 + number,
            kind=chosen.choice([Kind.SETTLE, Kind.RESERVE, Kind.CORRECT]),
            amount_usd=amount(),
            profile=chosen.choice(["risk-report", "customer-screening"]),
            length_class=chosen.choice([None, *LengthClass]),
            waste=chosen.choice([None, *Waste]),
        )
        for number in range(300)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_any_entries_at_all_add_up(store: JobStore, engine: Engine, seed: int) -> None:
    made = random_entries(accepted(store, b"x"), seed)
    with engine.begin() as connection:
        connection.execute(insert(entries), [asdict(entry) for entry in made])
    found = reported(engine)
    assert found.ledger_usd == sum((entry.amount_usd for entry in made), Decimal(0))
    assert found.used_usd + found.held_usd == found.ledger_usd
    of_tenants = [reported(engine, tenant=name).ledger_usd for name in ("acme", "globex")]
    assert sum(of_tenants) == found.ledger_usd


# ---------------------------------------------------------------- proof


@pytest.mark.parametrize("statement", ["UPDATE ledger SET amount_usd = 0", "DELETE FROM ledger"])
def test_the_database_refuses_to_change_the_ledger(store: JobStore, engine: Engine, statement: str) -> None:
    read(store, "good", usage("0.001"))
    with pytest.raises(DBAPIError, match="ledger is append-only"), engine.begin() as connection:
        connection.execute(text(statement))


def sneak(engine: Engine, statement: str, **values: Any) -> None:
    """Write what no part of docmill would: past the trigger."""
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL session_replication_role = replica"))
        connection.execute(text(statement), values)


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("UPDATE ledger SET amount_usd = amount_usd + 0.000000000001 WHERE kind = 'settle'", "different costs"),
        ("DELETE FROM ledger WHERE kind = 'refund'", "still held"),
        ("DELETE FROM ledger", "not on the ledger|different costs"),
        ("UPDATE ledger SET attempt = 77 WHERE kind = 'settle'", "never was"),
    ],
)
def test_whatever_does_not_balance_is_found(store: JobStore, engine: Engine, statement: str, what: str) -> None:
    job_id = read(store, "good", usage("0.001"))
    assert imbalances(engine) == []
    sneak(engine, statement)
    found = imbalances(engine)
    assert {one.job_id for one in found} == {job_id}
    assert any(part in one.what for one in found for part in what.split("|"))


def test_a_tenant_has_spent_what_it_used_and_what_is_held_for_it(store: JobStore, engine: Engine) -> None:
    read(store, "good", usage("0.001"))
    reading(store, "under way", held="0.002")
    read(store, "other", usage("0.004"), tenant="globex")

    def asked(tenant: str, since: datetime) -> Decimal:
        with engine.connect() as connection:
            return ledger.spent(connection, tenant, since)

    assert asked("acme", NOON) == Decimal("0.003")
    assert asked("globex", NOON) == Decimal("0.004")
    assert asked("acme", datetime.now(UTC) + timedelta(hours=1)) == 0


def test_the_command_prints_the_report_and_every_digit_as_json(
    store: JobStore, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_outcome(store)
    monkeypatch.setenv("DOCMILL_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    settings.cache_clear()
    _made.clear()
    try:
        shown = CliRunner().invoke(cli.main, ["report", "cost", "--json"])
        table = CliRunner().invoke(cli.main, ["report", "cost", "--week"])
    finally:
        services().database.dispose()
        settings.cache_clear()
        _made.clear()
    assert (shown.exit_code, table.exit_code) == (0, 0), shown.output + table.output
    assert Decimal(json.loads(shown.stdout)["ledger_usd"]) == reported(engine).ledger_usd
    assert "balance" in table.stdout
    assert "unusable" in table.stdout
