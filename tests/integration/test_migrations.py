"""The migrations against the schema, and the analysts' views on what a worker leaves in the tables."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, NullPool, create_engine, make_url, text
from sqlalchemy.exc import ProgrammingError

from docmill.likeness import Likeness
from docmill.types import Outcome, Source
from storage import migrate, reading
from storage.jobs import JobStore
from storage.migrate import READER, VIEWS, upgrade
from storage.ports import Stage
from storage.schema import metadata
from tests.jobs import (
    accept,
    accepted,
    claimed,
    finding,
    route,
    submission_of,
    through_infer,
    through_parse,
    value,
    verdict,
)

NewDatabase = Callable[[], str]


def rows(engine: Engine, sql: str, **parameters: Any) -> list[dict[str, Any]]:
    with engine.connect() as connection:
        return [dict(row._mapping) for row in connection.execute(text(sql), parameters)]


def processes(count: int) -> ProcessPoolExecutor:
    """Forked, so that they need not import everything again and start at one moment."""
    return ProcessPoolExecutor(count, mp_context=get_context("fork"))


# ---------------------------------------------------------------- migrations


# Alembic sees that PostgreSQL spells the expression of a generated column in its own way, and cannot compare it.
@pytest.mark.filterwarnings("ignore:Computed default on jobs.line")
def test_the_migrated_database_is_what_the_schema_says(shared_engine: Engine) -> None:
    with shared_engine.connect() as connection:
        options = {"compare_type": True, "compare_server_default": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_a_difference_between_database_and_schema_would_be_found(new_database: NewDatabase) -> None:
    engine = create_engine(new_database(), poolclass=NullPool)
    upgrade(engine.url.render_as_string(hide_password=False))
    with engine.begin() as connection:
        connection.execute(text("ALTER TABLE jobs DROP COLUMN lost"))
        found = compare_metadata(MigrationContext.configure(connection), metadata)
    assert [(what, table, column.name) for what, _, table, column in found] == [("add_column", "jobs", "lost")]


def test_what_waited_for_a_person_before_there_was_a_queue_is_in_it(new_database: NewDatabase) -> None:
    engine = create_engine(new_database(), poolclass=NullPool)
    with engine.begin() as connection:
        command.upgrade(migrate._config(connection), "0001")
        connection.execute(
            text(
                "INSERT INTO documents (document_id, tenant, sha256, size_bytes, name, source, blob_key)"
                " VALUES ('d', 'acme', 'x', 1, 'a.pdf', 'cli', 'b');"
                "INSERT INTO jobs (job_id, document_id, tenant, profile, profile_version, status, deadline, reason)"
                " VALUES ('j', 'd', 'acme', 'p', '1', 'needs_review', now(), 'why'),"
                " ('k', 'd', 'acme', 'q', '1', 'done', now(), 'all rules passed')"
            )
        )
    upgrade(engine.url.render_as_string(hide_password=False))
    assert rows(engine, "SELECT job_id, reason, decision FROM reviews") == [
        {"job_id": "j", "reason": "why", "decision": None}
    ]


def test_many_callers_at_once_upgrade_an_empty_database(new_database: NewDatabase) -> None:
    url = new_database()
    with processes(6) as callers:
        list(callers.map(upgrade, [url] * 6))
    engine = create_engine(url, poolclass=NullPool)
    assert rows(engine, "SELECT count(*) AS n FROM alembic_version") == [{"n": 1}]


def test_databases_of_one_server_may_be_upgraded_at_once(new_database: NewDatabase) -> None:
    urls = [new_database() for _ in range(4)]
    with processes(4) as callers:
        list(callers.map(upgrade, urls))


def test_threads_of_one_process_may_upgrade_different_databases(new_database: NewDatabase) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(upgrade, [new_database(), new_database()]))


def test_upgrade_needs_no_file_of_the_working_directory(new_database: NewDatabase, tmp_path: Path) -> None:
    url = new_database()
    code = f"from storage.migrate import upgrade; upgrade({url!r})"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
    assert rows(create_engine(url, poolclass=NullPool), "SELECT count(*) AS n FROM v_results") == [{"n": 0}]


def test_an_upgrade_with_nothing_to_do_does_not_wait_for_an_analyst(new_database: NewDatabase) -> None:
    url = new_database()
    upgrade(url)
    analyst = create_engine(url, poolclass=NullPool)
    with analyst.begin() as connection, ThreadPoolExecutor(1) as threads:
        connection.execute(text("SELECT * FROM v_results"))
        threads.submit(upgrade, url).result(timeout=10)


def test_views_that_differ_from_their_files_are_made_anew(new_database: NewDatabase) -> None:
    url = new_database()
    upgrade(url)
    engine = create_engine(url, poolclass=NullPool)
    with engine.begin() as connection:
        connection.execute(text("DROP VIEW v_results; CREATE VIEW v_results AS SELECT 1 AS old"))
        connection.execute(text("COMMENT ON TABLE alembic_version IS 'views of another version'"))
    upgrade(url)
    assert "old" not in columns_of(engine, "v_results")


# ---------------------------------------------------------------- who may read


def test_a_member_of_the_readers_sees_the_views_and_no_table(database_url: str, shared_engine: Engine) -> None:
    with shared_engine.begin() as connection:
        connection.execute(text(f"SET LOCAL ROLE {READER}"))
        for view in VIEWS:
            connection.execute(text(f"SELECT count(*) FROM {view}"))
        with pytest.raises(ProgrammingError, match="permission denied for table jobs"):
            connection.execute(text("SELECT count(*) FROM jobs"))


@pytest.mark.parametrize(
    "statement", ["DELETE FROM results", "CREATE TABLE mine (x int)", "CREATE VIEW mine AS SELECT 1"]
)
def test_a_reader_can_write_nothing(shared_engine: Engine, statement: str) -> None:
    with pytest.raises(ProgrammingError, match="permission denied"), shared_engine.begin() as connection:
        connection.execute(text(f"SET LOCAL ROLE {READER}"))
        connection.execute(text(statement))


def test_without_the_right_to_make_roles_the_upgrade_says_what_to_do(
    new_database: NewDatabase, database_server: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = new_database()
    name = make_url(url).database
    owner = f"owner_{name}"
    admin = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(text(f"ALTER ROLE {READER} RENAME TO {READER}_hidden"))
        connection.execute(text(f"CREATE ROLE {owner} LOGIN PASSWORD 'x'; ALTER DATABASE {name} OWNER TO {owner}"))
    try:
        with caplog.at_level(logging.WARNING, logger="docmill.migrate"):
            upgrade(make_url(url).set(username=owner, password="x").render_as_string(hide_password=False))
    finally:
        with admin.connect() as connection:
            connection.execute(text(f"ALTER ROLE {READER}_hidden RENAME TO {READER}"))
    assert f"CREATE ROLE {READER}" in caplog.text
    # Once the role is there, the next start grants it.
    upgrade(make_url(url).set(username=owner, password="x").render_as_string(hide_password=False))
    granted = rows(admin, f"SELECT has_table_privilege('{READER}', 'v_results', 'SELECT') AS may")
    with admin.connect() as connection:
        connection.execute(
            text(f"ALTER DATABASE {name} OWNER TO CURRENT_USER; REASSIGN OWNED BY {owner} TO CURRENT_USER")
        )
        connection.execute(text(f"DROP OWNED BY {owner}; DROP ROLE {owner}"))
    assert granted == [{"may": True}]


# ---------------------------------------------------------------- the views


def columns_of(engine: Engine, view: str) -> dict[str, str | None]:
    found = rows(
        engine,
        "SELECT attname AS name, col_description(attrelid, attnum) AS comment FROM pg_attribute"
        " WHERE attrelid = CAST(:view AS regclass) AND attnum > 0 AND NOT attisdropped",
        view=view,
    )
    return {row["name"]: row["comment"] for row in found}


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_and_every_column_is_documented(shared_engine: Engine, view: str) -> None:
    assert [name for name, comment in columns_of(shared_engine, view).items() if not comment] == []
    assert rows(shared_engine, f"SELECT obj_description('{view}'::regclass) AS said")[0]["said"]


@pytest.fixture
def store(engine: Engine) -> JobStore:
    return JobStore(engine)


def results_of(engine: Engine) -> dict[str, dict[str, Any]]:
    return {row["name"]: row for row in rows(engine, "SELECT * FROM v_results")}


def test_every_submitted_file_has_one_row_whatever_became_of_it(store: JobStore, engine: Engine) -> None:
    accept(store, b"read", name="read.pdf")
    accept(store, b"read", name="again.pdf", source=Source.API)
    store.refuse(submission_of(b"", name="empty.pdf"), code="empty_file", reason="0 bytes", sha256=None)
    accept(store, b"waits", name="waits.pdf")
    store.cancel(accepted(store, b"cancelled", name="cancelled.pdf"), tenant="acme")
    found = results_of(engine)
    assert {name: row["status"] for name, row in found.items()} == {
        "read.pdf": "received",
        "again.pdf": "duplicate",
        "empty.pdf": "failed",
        "waits.pdf": "received",
        "cancelled.pdf": "cancelled",
    }
    assert found["empty.pdf"]["reason"] == "empty_file: 0 bytes"
    assert "read.pdf" in found["again.pdf"]["reason"]


def test_a_result_shows_its_work_and_a_duplicate_shares_it_without_its_cost(store: JobStore, engine: Engine) -> None:
    job_id = accepted(store, b"one", name="first.pdf")
    accept(store, b"one", name="second.pdf")
    read = through_infer(store, job_id, result={"total": "5.2"}, cost=Decimal("0.000000125"))
    claim = claimed(store, job_id, Stage.VALIDATE)
    store.finish_validate(claim, verdict(Outcome.FLAG, finding("sums", Outcome.FLAG)), read, retry=None)
    found = results_of(engine)
    first, second = found["first.pdf"], found["second.pdf"]
    assert (first["status"], first["verdict"], first["findings"]) == ("done", "flag", 1)
    assert (first["heat"], first["length_class"], first["lane"], first["priority"]) == ("warm", "short", "cpu", 2)
    assert (first["pages"], first["tables"], first["tokens"]) == (1, 1, 300)
    assert (first["prompt_tokens"], first["cached_tokens"], first["output_tokens"]) == (100, 40, 10)
    times = ("parse_ms", "wait_ms", "infer_ms", "validate_ms", "total_ms")
    assert all(first[name] >= 0 for name in times)
    assert first["total_ms"] >= first["parse_ms"] + first["wait_ms"] + first["infer_ms"] + first["validate_ms"]
    assert (second["status"], second["verdict"], second["result"]) == ("duplicate", "flag", {"total": "5.2"})
    assert (first["cost_usd"], second["cost_usd"]) == (Decimal("0.000000125"), 0)
    assert [second[name] for name in ("prompt_tokens", "output_tokens", "parse_ms")] == [None] * 3


def test_a_second_reading_adds_its_tokens_and_its_cost_and_replaces_the_findings(
    store: JobStore, engine: Engine
) -> None:
    job_id = accepted(store, b"twice")
    first = through_infer(store, job_id, cost=Decimal("0.001"))
    claim = claimed(store, job_id, Stage.VALIDATE)
    store.finish_validate(claim, verdict(Outcome.REJECT, finding("made_up", Outcome.REJECT)), first, retry=route())
    waiting = rows(engine, "SELECT status, verdict, findings FROM v_results")
    assert waiting == [{"status": "queued", "verdict": None, "findings": 1}]
    again = through_infer(store, job_id, cost=Decimal("0.002"), model="better")
    claim = claimed(store, job_id, Stage.VALIDATE)
    store.finish_validate(claim, verdict(Outcome.PASS, fields=(value("/total", "5.2"),)), again, retry=None)
    found = rows(engine, "SELECT cost_usd, prompt_tokens, findings, verdict, reason FROM v_results")
    passed = {"findings": 0, "verdict": "pass", "reason": "all rules passed"}
    assert found == [{"cost_usd": Decimal("0.003"), "prompt_tokens": 200, **passed}]
    assert rows(engine, "SELECT model FROM v_fields") == [{"model": "better"}]


def test_a_field_shows_its_value_its_place_and_its_makers(store: JobStore, engine: Engine) -> None:
    job_id = accepted(store, b"fields", name="bank.pdf")
    read = through_infer(store, job_id, model="smollm2")
    claim = claimed(store, job_id, Stage.VALIDATE)
    kept = value("/rows/0/amount", "5.2", number=Decimal(52000), scale=Decimal(10000), unit="元", page=3)
    store.finish_validate(claim, verdict(Outcome.PASS, fields=(kept,)), read, retry=None)
    (found,) = rows(engine, 'SELECT *, "row" AS r FROM v_fields')
    assert (found["name"], found["path"], found["text"]) == ("bank.pdf", "/rows/0/amount", "5.2")
    assert (found["value"], found["scale"], found["unit"], found["page"]) == (52000, 10000, "元", 3)
    assert (found["bbox"], found["table_id"], found["r"], found["col"]) == ([1.0, 2.0, 3.0, 4.0], "t1", 0, 1)
    assert (found["model"], found["parser"], found["ruleset"]) == ("smollm2", "parser-1", "rules-1")
    assert (found["profile"], found["profile_version"]) == ("risk-report", "1")


def test_a_near_duplicate_names_the_document_that_it_repeats(store: JobStore, engine: Engine) -> None:
    like = Likeness((1, 2), bytes(range(128)), {"numbers": ["5.2"]})
    for data in (b"original", b"repeat"):
        job_id = accepted(store, data, name=data.decode())
        through_parse(store, job_id, likeness=like)
    found = results_of(engine)
    assert found["repeat"]["near_duplicate_of"] == found["original"]["document_id"]
    assert (found["repeat"]["similarity"], found["original"]["similarity"]) == (1.0, None)
    assert (found["repeat"]["differences"], found["repeat"]["same_template_as"]) == ({}, None)


def test_reading_a_view_gives_its_rows(store: JobStore, engine: Engine) -> None:
    accept(store, b"one")
    with engine.connect() as connection:
        assert [row["status"] for row in reading.view(connection, "v_results")] == ["received"]


def test_times_of_a_lost_try_are_not_counted_as_work(store: JobStore, engine: Engine) -> None:
    job_id = accepted(store, b"lost")
    store.claim(job_id, Stage.PARSE, worker="w", lease_s=-1)
    store.sweep(republish_after_s=60, max_lost=3)
    assert rows(engine, "SELECT parse_ms FROM v_results") == [{"parse_ms": None}]
