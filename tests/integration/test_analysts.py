"""The analysts' side of the database: the walk in docs/analysts.md, exports, search, and what they cannot do."""

from __future__ import annotations

import gzip
import io
import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pytest
from markdown_it import MarkdownIt
from sqlalchemy import Engine
from typer.testing import CliRunner

from docmill.errors import BadQuery
from docmill.likeness import LIKE_NOTHING
from docmill.types import BBox, Block, BlockKind, Cell, Outcome, Page, Printed, Region, Status, Table
from storage import review as queue
from storage.database import connect
from storage.export import Compression, Format, export
from storage.jobs import JobStore
from storage.ports import Stage
from storage.queries import asking, make_analyst, url_for
from storage.review import Reviewer
from tests.jobs import BOX, accepted, claimed, extraction, finding, prepared_of, route, value, verdict
from workers.cli import main
from workers.settings import settings

GUIDE = Path(__file__).parents[2] / "docs" / "analysts.md"
ENGLISH = "Transaction notice. The net profit attributable to shareholders grew; credit losses were small."
CHINESE = "交易通知书。本次交易金额为人民币５２０万元，归属于股东的净利润增长。"
AMOUNTS = {"a": ("12,000.50", Decimal("12000.50")), "b": ("5.2", Decimal(52000)), "c": ("99.10", Decimal("99.10"))}


@pytest.fixture
def filled(engine: Engine) -> Engine:
    """Three documents that were read, one of them in Chinese, one with a value that a reviewer corrected."""
    store = JobStore(engine)
    for name, (printed, amount) in AMOUNTS.items():
        _read(store, name, printed, amount, CHINESE if name == "b" else ENGLISH)
    with engine.begin() as connection:
        by = Reviewer("anna", "the notice says so", "acme")
        waiting = queue.review_of(connection, _job(engine, "c"), tenant="acme")
        fields = (value("/amount", "99.70", number=Decimal("99.70")),)
        corrected = verdict(Outcome.PASS, fields=fields)
        queue.correct(connection, waiting, by, result={"amount": "99.70"}, verdict=corrected)
    return engine


def _job(engine: Engine, name: str) -> str:
    with engine.connect() as connection:
        found = connection.exec_driver_sql("SELECT job_id FROM v_results WHERE name = %s", (f"{name}.pdf",))
        return str(found.scalar_one())


def _read(store: JobStore, name: str, printed: str, amount: Decimal, text: str) -> None:
    job_id = accepted(store, name.encode(), name=f"{name}.pdf")
    claim = claimed(store, job_id, Stage.PARSE)
    said = Block(BlockKind.PARAGRAPH, 1, BOX, Printed(text))
    grid = Block(BlockKind.TABLE, 1, BOX, Printed(""), _table(printed))
    prepared = replace(prepared_of(claim.document_id), pages=(Page(1, 595, 842, (said, grid)),))
    store.finish_parse(claim, prepared, route(), likeness=LIKE_NOTHING)
    read = extraction({"amount": printed})
    store.finish_infer(claimed(store, job_id, Stage.INFER), read)
    doubtful = name == "c"
    judged = verdict(
        Outcome.REVIEW if doubtful else Outcome.FLAG,
        finding("total-off", Outcome.REVIEW if doubtful else Outcome.FLAG),
        fields=(value("/amount", printed, number=amount),),
    )
    ended = store.finish_validate(claimed(store, job_id, Stage.VALIDATE), judged, read, retry=None)
    assert ended == (Status.NEEDS_REVIEW if doubtful else Status.DONE)


def _table(amount: str) -> Table:
    texts = {(0, 0): "Item", (0, 1): "Amount", (1, 0): "=cmd()", (1, 1): amount}
    cells = tuple(Cell(row, col, Printed(text), 1, BBox(1, 2, 3, 4)) for (row, col), text in texts.items())
    return Table("t1", cells, rows=2, cols=2, regions=(Region(1, BOX),), reader="lines", unit="元")


@pytest.fixture
def stack(filled: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Commands use this database, and write where the test may."""
    url = filled.url.render_as_string(hide_password=False)
    monkeypatch.setenv("DOCMILL_DATABASE_URL", url)
    monkeypatch.setenv("DOCMILL_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    settings.cache_clear()
    yield url
    settings.cache_clear()


def command(*words: str) -> str:
    done = CliRunner().invoke(main, list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def rows_of(database: Engine, statement: str) -> list[tuple[Any, ...]]:
    with asking(database, statement) as answer:
        return list(answer.rows)


# ---------------------------------------------------------------- the guide


def test_the_walk_through_of_the_guide_runs_as_it_is_printed(stack: str, tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    blocks = [token for token in MarkdownIt().parse(GUIDE.read_text("utf-8")) if token.type == "fence"]
    assert {block.info for block in blocks} == {"sh", "sql", "python"}
    for block in blocks:
        if block.info == "sh":
            _run_command(block.content, names)
        elif block.info == "sql":
            with psycopg.connect(names["analyst_url"]) as connection:
                assert connection.execute(block.content.encode()).fetchall(), block.content
        else:
            exec(compile(block.content, str(GUIDE), "exec"), names)
    assert [(path, text, page) for _, path, text, _, _, page, *_ in names["amounts"]] == [
        ("/amount", "5.2", 1),
        ("/amount", "12,000.50", 1),
    ]
    assert {path.name for path in tmp_path.iterdir()} >= {"amounts.parquet", "results.csv.gz", "tables.jsonl.zst"}


def _run_command(line: str, names: dict[str, Any]) -> None:
    program, *words = shlex.split(line)
    assert program == "docmill"
    output = command(*words)
    if words[0] == "analyst":
        names["analyst_url"] = output.strip()


def test_why_a_value_changed_is_told_with_who_and_what_for(stack: str, filled: Engine) -> None:
    told = rows_of(filled, "SELECT previous_text, text, changed_by, note FROM v_lineage WHERE no > 1")
    assert told == [("99.10", "99.70", ["reviewer"], "the notice says so")]
    story = command("history", _job(filled, "c"), "/amount")
    assert "first reading" in story
    assert "the notice says so" in story


def test_a_reading_with_another_model_and_profile_says_so(filled: Engine) -> None:
    store = JobStore(filled)
    job_id = accepted(store, b"a", name="a.pdf", version="2")
    claim = claimed(store, job_id, Stage.PARSE)
    store.finish_parse(claim, prepared_of(claim.document_id), route(), likeness=LIKE_NOTHING)
    read = extraction({"amount": "12,000.80"}, model="larger")
    store.finish_infer(claimed(store, job_id, Stage.INFER), read)
    judged = verdict(Outcome.PASS, fields=(value("/amount", "12,000.80", number=Decimal("12000.80")),))
    store.finish_validate(claimed(store, job_id, Stage.VALIDATE), judged, read, retry=None)
    told = rows_of(filled, "SELECT previous_text, text, changed_by FROM v_lineage WHERE name = 'a.pdf' AND no = 2")
    assert told == [("12,000.50", "12,000.80", ["profile", "model"])]


# ---------------------------------------------------------------- search and tables


#: What is looked for, and the documents that have it.
SEARCHES = {
    "净利润": ["b.pdf"],
    "交易金额为": ["b.pdf"],
    "520万元": ["b.pdf"],
    "金额交易": [],
    "shareholder": ["a.pdf", "c.pdf"],
    '"net profit" losses': ["a.pdf", "c.pdf"],
    '"profit net"': [],
    "12,000.50": ["a.pdf"],
    "净利润 通知书": ["b.pdf"],
    "": [],
}


def test_pages_are_found_by_words_in_english_and_by_characters_in_chinese(filled: Engine) -> None:
    statement = "SELECT name FROM v_pages WHERE terms @@ docmill_query(%(words)s) ORDER BY name"
    found = {}
    for words in SEARCHES:
        with asking(filled, statement, {"words": words}) as answer:
            found[words] = [name for (name,) in answer.rows]
    assert found == SEARCHES


def test_a_search_shows_where_the_words_stand(stack: str) -> None:
    assert "净利润" in command("search", "净利润").replace("[", "").replace("]", "")


def test_a_tables_texts_are_a_grid(filled: Engine) -> None:
    ((grid,),) = rows_of(filled, "SELECT grid FROM v_tables WHERE name = 'a.pdf'")
    assert grid == [["Item", "Amount"], ["=cmd()", "12,000.50"]]


def test_costs_add_up_to_the_ledger(filled: Engine) -> None:
    ((shown,),) = rows_of(filled, "SELECT sum(used_usd + held_usd) FROM v_costs")
    with filled.connect() as connection:
        assert shown == connection.exec_driver_sql("SELECT sum(amount_usd) FROM ledger").scalar_one()
    assert shown == Decimal("0.003")


# ---------------------------------------------------------------- files


def written(
    database: Engine, statement: str, form: Format, compression: Compression = Compression.NONE
) -> tuple[bytes, int]:
    target = io.BytesIO()
    with asking(database, statement) as answer:
        done = export(answer, target, form, compression)
    assert done.bytes == len(target.getvalue())
    return target.getvalue(), done.rows


def test_every_type_comes_back_from_parquet_as_it_was(filled: Engine, tmp_path: Path) -> None:
    statement = """
        SELECT 1::int AS number, 12345678901234567890.123456789012::numeric AS exact, '=1+1' AS text,
            DATE '2024-12-31' AS day, TIMESTAMPTZ '2024-12-31 23:59:59.123456+00' AS moment,
            ARRAY[1.5, 2.5]::float8[] AS box, '{"a": ["一", 2]}'::jsonb AS json, true AS yes, NULL::numeric AS nothing
    """
    data, rows = written(filled, statement, Format.PARQUET)
    (tmp_path / "all.parquet").write_bytes(data)
    (back,) = duckdb.sql(f"SELECT * EXCLUDE (moment) FROM '{tmp_path}/all.parquet'").fetchall()
    assert rows == 1
    assert back[:3] == (1, Decimal("12345678901234567890.123456789012"), "=1+1")
    assert (str(back[3]), back[4], json.loads(back[5]), back[6], back[7]) == (
        "2024-12-31",
        [1.5, 2.5],
        {"a": ["一", 2]},
        True,
        None,
    )


@pytest.mark.parametrize("form", list(Format))
def test_many_rows_are_written_in_groups_and_none_is_missing(filled: Engine, tmp_path: Path, form: Format) -> None:
    data, rows = written(filled, "SELECT n, 'row ' || n AS name FROM generate_series(1, 25001) AS n", form)
    path = tmp_path / f"rows.{form}"
    path.write_bytes(data)
    assert rows == 25001
    assert duckdb.sql(f"SELECT count(*), sum(n) FROM '{path}'").fetchall() == [(25001, 25001 * 25002 // 2)]


def test_a_number_that_parquet_cannot_hold_is_an_error_and_no_other_number(filled: Engine) -> None:
    with pytest.raises(BadQuery, match="column tiny"):
        written(filled, "SELECT 0.00000000000001::numeric AS tiny", Format.PARQUET)
    data, _ = written(filled, "SELECT 0.00000000000001::numeric AS tiny", Format.JSONL)
    assert data == b'{"tiny":"0.00000000000001"}\n'


def test_a_formula_is_a_text_in_a_csv_and_a_negative_number_stays_one(filled: Engine) -> None:
    statement = "SELECT * FROM (VALUES ('=cmd()', -5.20), ('-1,234.50', 0), ('-x', 1)) AS rows (text, number)"
    data, _ = written(filled, statement, Format.CSV)
    assert data.decode().splitlines() == ["text,number", "'=cmd(),-5.20", '"-1,234.50",0', "'-x,1"]


def test_files_are_packed_as_their_name_says(filled: Engine) -> None:
    packed, _ = written(filled, "SELECT '净利润' AS name", Format.JSONL, Compression.GZIP)
    assert gzip.decompress(packed).decode() == '{"name":"净利润"}\n'
    packed, _ = written(filled, "SELECT 1 AS n", Format.CSV, Compression.ZSTD)
    assert pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read() == b"n\n1\n"


def test_an_answer_without_rows_is_a_file_with_its_columns(filled: Engine, tmp_path: Path) -> None:
    data, rows = written(filled, "SELECT 1 AS n WHERE false", Format.PARQUET)
    (tmp_path / "none.parquet").write_bytes(data)
    assert rows == 0
    assert duckdb.sql(f"DESCRIBE SELECT * FROM '{tmp_path}/none.parquet'").fetchall()[0][0] == "n"


# ---------------------------------------------------------------- what they cannot do

#: Each would change or read what an analyst must not.
FORBIDDEN = (
    "DELETE FROM results",
    "UPDATE jobs SET status = 'done'",
    "INSERT INTO events (kind) VALUES ('x')",
    "DROP VIEW v_results",
    "CREATE TABLE mine (n int)",
    "SELECT * FROM api_keys",
    "SELECT * FROM jobs",
    "SELECT 1; DELETE FROM results",
    "COMMIT; DELETE FROM results",
    "SELECT pg_read_file('/etc/passwd')",
    "COPY (SELECT 1) TO PROGRAM 'true'",
    "COPY v_results TO '/tmp/stolen'",
    "SELECT set_config('transaction_read_only', 'off', false), nextval('events_event_id_seq')",
)


def test_a_query_changes_nothing_and_reads_views_only(filled: Engine) -> None:
    for statement in FORBIDDEN:
        with pytest.raises(BadQuery):
            rows_of(filled, statement)
    assert rows_of(filled, "SELECT count(*) FROM v_fields") == [(3,)]


def test_an_analysts_own_login_can_do_no_more(filled: Engine) -> None:
    with filled.begin() as connection:
        make_analyst(connection, "docmill_test_analyst", "a'b%c")
    own = connect(url_for(filled, "docmill_test_analyst", "a'b%c").replace("postgresql:", "postgresql+psycopg:", 1))
    try:
        for statement in FORBIDDEN:
            with pytest.raises(psycopg.Error), own.connect() as connection:
                connection.connection.driver_connection.execute(statement, prepare=True)
    finally:
        own.dispose()


def test_a_slow_query_is_ended(filled: Engine) -> None:
    with (
        pytest.raises(BadQuery, match="add a WHERE or a LIMIT"),
        asking(filled, "SELECT pg_sleep(30)", timeout_s=0.2) as answer,
    ):
        list(answer.rows)


def test_a_mistake_is_told_in_the_databases_words(filled: Engine) -> None:
    with pytest.raises(BadQuery, match=r'column "nonsense" does not exist .*42703'):
        rows_of(filled, "SELECT nonsense FROM v_results")
