"""A batch with every kind of outcome has a certificate that holds, until one byte, row or file is changed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from sqlalchemy import Engine, insert, text
from typer.testing import CliRunner

from docmill.codec import pack
from docmill.errors import BrokenCertificate, DocmillError, NotFound
from docmill.likeness import LIKE_NOTHING
from docmill.types import MissingPage, Outcome, PreparedDocument, Source
from storage import reading
from storage.batch_schema import batch_lines, batch_runs, files
from storage.blobs import Blobs, prepared_key
from storage.certificate import note_input
from storage.jobs import JobStore
from storage.ports import Receipt, Stage
from tests.jobs import (
    accept,
    accepted,
    claimed,
    extraction,
    finding,
    prepared_of,
    route,
    submission_of,
    value,
    verdict,
)
from workers import cli
from workers.cli_certificate import PRIVATE, PUBLIC
from workers.services import _made, services
from workers.settings import settings

BATCH = "batch_1"


@dataclass
class System:
    """A database, a store of files, and commands that use both."""

    engine: Engine
    store: JobStore
    blobs: Blobs
    folder: Path

    def command(self, *arguments: str) -> Result:
        try:
            return CliRunner().invoke(cli.main, list(arguments))
        finally:
            services().database.dispose()
            _made.clear()

    def certificate(self) -> Path:
        done = self.command("certificate", BATCH)
        assert done.exit_code == 0, done.output
        (self.folder / "manifest").write_bytes(done.stdout.encode())
        return self.folder / "manifest"

    def verify(self, *more: str) -> str:
        """What the command prints, or the error that it ends with."""
        done = self.command("verify", str(self.folder / "manifest"), *more)
        if isinstance(done.exception, DocmillError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.stdout

    def sql(self, statement: str) -> None:
        with self.engine.begin() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            assert connection.execute(text(statement)).rowcount > 0, "nothing to change"

    def hand_in(self, data: bytes, receipt: Receipt, name: str = "report.pdf") -> None:
        with self.engine.begin() as connection:
            told = {"tenant": "acme", "name": name, "sha256": hashlib.sha256(data).hexdigest()}
            note_input(connection, BATCH, receipt, **told)


@pytest.fixture
def system(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[System]:
    monkeypatch.setenv("DOCMILL_DATABASE_URL", engine.url.render_as_string(hide_password=False))
    monkeypatch.setenv("DOCMILL_BLOB_URL", f"file://{tmp_path / 'blobs'}")
    monkeypatch.setenv("DOCMILL_HOME", str(tmp_path / "home"))
    settings.cache_clear()
    _made.clear()
    made = System(engine, JobStore(engine), Blobs.at(f"file://{tmp_path / 'blobs'}"), tmp_path)
    every_outcome(made)
    yield made
    settings.cache_clear()
    _made.clear()


def every_outcome(system: System) -> None:
    """Files that were read, doubted, failed, cancelled, repeated and refused; lines of an API batch likewise."""
    with system.engine.begin() as connection:
        reading.new_batch(connection, BATCH, "acme", label="test")
    for name, outcome in (("done", Outcome.PASS), ("doubtful", Outcome.REVIEW)):
        read(system, name, outcome)
    failed = hand_in(system, "failed")
    system.store.fail(claimed(system.store, failed, Stage.PARSE), code="corrupt_pdf", reason="no page")
    system.store.cancel(hand_in(system, "cancelled"), tenant="acme")
    repeat = accept(system.store, b"done", name="again.pdf", source=Source.API, batch_id=BATCH)
    system.hand_in(b"done", repeat, "again.pdf")
    refusal = system.store.refuse(submission_of(b""), code="empty_file", reason="0 bytes", sha256=None)
    system.hand_in(b"", refusal, "empty.pdf")
    lines(system, failed)


def hand_in(system: System, name: str) -> str:
    data = name.encode()
    receipt = accept(system.store, data, name=f"{name}.pdf", batch_id=BATCH)
    system.blobs.put(f"blob-{hashlib.sha256(data).hexdigest()}", data)
    system.hand_in(data, receipt, f"{name}.pdf")
    assert receipt.job_id is not None
    return receipt.job_id


def read(system: System, name: str, outcome: Outcome) -> None:
    job_id = hand_in(system, name)
    claim = claimed(system.store, job_id, Stage.PARSE)
    prepared = parsed(claim.document_id)
    system.blobs.put(prepared_key(claim.document_id), pack(prepared))
    system.store.finish_parse(claim, prepared, route(), likeness=LIKE_NOTHING)
    result = extraction()
    system.store.finish_infer(claimed(system.store, job_id, Stage.INFER), result)
    doubts = [] if outcome == Outcome.PASS else [finding("sums", outcome)]
    judged = verdict(outcome, *doubts, fields=(value("/total", "5.2"),))
    system.store.finish_validate(claimed(system.store, job_id, Stage.VALIDATE), judged, result, retry=None)


def parsed(document_id: str) -> PreparedDocument:
    """One page that was read and one that was not."""
    return replace(prepared_of(document_id), missing=(MissingPage(2, "parser_limit", "over its time"),))


def lines(system: System, job_id: str) -> None:
    file = {"tenant": "acme", "filename": "in.jsonl", "purpose": "batch", "kind": "other", "bytes": 1, "sha256": "x"}
    run: dict[str, Any] = {
        "batch_id": BATCH,
        "tenant": "acme",
        "endpoint": "/v1/documents",
        "input_file_id": "file_1",
        "completion_window": "24h",
        "output_keep_s": 1,
        "request_sha256": "x",
        "status": "completed",
        "total": 2,
        "expires_at": text("now()"),
    }
    states = (("completed", job_id, None), ("failed", None, "file_not_found"))
    with system.engine.begin() as connection:
        connection.execute(insert(files).values(file_id="file_1", blob_key="k", **file))
        connection.execute(insert(batch_runs).values(run))
        for number, (state, job, code) in enumerate(states, start=1):
            line = {"batch_id": BATCH, "line_no": number, "custom_id": f"c{number}", "profile": "risk-report"}
            connection.execute(insert(batch_lines).values(**line, state=state, job_id=job, code=code))


def rows_of(manifest: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in manifest.read_text("utf-8").splitlines()]


def test_every_object_of_a_batch_is_on_its_certificate_with_its_end_and_reason(system: System) -> None:
    rows = rows_of(system.certificate())
    kinds = {"batch": 1, "run": 1, "input": 6, "line": 2, "job": 4, "file": 4, "page": 4, "table": 2, "seal": 1}
    assert Counter(row["kind"] for row in rows) == kinds
    jobs = {row["status"]: row for row in rows if row["kind"] == "job"}
    assert set(jobs) == {"done", "needs_review", "failed", "cancelled"}
    assert (jobs["failed"]["reason"], jobs["done"]["fields"]) == ("corrupt_pdf: no page", 1)
    inputs = {row["name"]: row for row in rows if row["kind"] == "input"}
    assert (inputs["empty.pdf"]["outcome"], inputs["empty.pdf"]["code"]) == ("refused", "empty_file")
    assert (inputs["again.pdf"]["outcome"], inputs["again.pdf"]["job_id"]) == ("duplicate", jobs["done"]["job_id"])
    pages = [(row["page"], row["state"]) for row in rows if row["kind"] == "page"]
    assert pages == [(1, "text"), (2, "missing")] * 2
    assert {row["state"] for row in rows if row["kind"] == "file"} == {"stored"}
    told = [(row["line_no"], row["state"], row["code"]) for row in rows if row["kind"] == "line"]
    assert told == [(1, "completed", None), (2, "failed", "file_not_found")]
    assert rows[-1]["complete"] is True


def test_the_certificate_holds_and_is_what_the_system_has(system: System) -> None:
    system.certificate()
    shown = system.verify("--against")
    assert "whole and as signed" in shown
    assert "complete: yes" in shown
    assert "signed by the trusted key" in shown
    assert "the same as what the database and the store of files have now" in shown


def test_one_changed_byte_of_the_manifest_is_noticed(system: System) -> None:
    manifest = system.certificate()
    whole = manifest.read_bytes()
    for place in range(0, len(whole) - 1, 397):
        manifest.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises((BrokenCertificate, UnicodeDecodeError)):
            system.verify()


CHANGES: dict[str, Callable[[System], None]] = {
    "a result": lambda system: system.sql('UPDATE results SET result = \'{"total": "5.3"}\''),
    "a value": lambda system: system.sql("UPDATE fields SET text = '5.3'"),
    "a finding": lambda system: system.sql("DELETE FROM findings"),
    "a state": lambda system: system.sql("UPDATE jobs SET status = 'done' WHERE status = 'failed'"),
    "a reason": lambda system: system.sql("UPDATE jobs SET reason = 'ok' WHERE status = 'failed'"),
    "a line": lambda system: system.sql("UPDATE batch_lines SET state = 'completed'"),
    "a table": lambda system: system.sql("UPDATE tables SET cells = 'x'"),
    "an input": lambda system: system.sql("DELETE FROM events WHERE kind = 'batch_input' AND job_id IS NULL"),
    "a byte of a file": lambda system: system.blobs.put(f"blob-{hashlib.sha256(b'failed').hexdigest()}", b"failes"),
    "a file that is gone": lambda system: system.blobs.delete(f"blob-{hashlib.sha256(b'failed').hexdigest()}"),
    "a page": lambda system: system.blobs.put(
        prepared_key(document_of_done(system)), pack(prepared_of(document_of_done(system)))
    ),
    "a job more": lambda system: print(accepted(system.store, b"late", batch_id=BATCH)),
}


def document_of_done(system: System) -> str:
    with system.engine.connect() as connection:
        return str(connection.execute(text("SELECT document_id FROM jobs WHERE status = 'done'")).scalar_one())


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_changed_in_the_system_is_noticed(system: System, change: Callable[[System], None]) -> None:
    system.certificate()
    change(system)
    assert "whole and as signed" in system.verify()
    with pytest.raises(BrokenCertificate, match="rows differ from what was signed"):
        system.verify("--against")


def test_a_batch_that_is_under_way_has_a_certificate_that_says_so(system: System) -> None:
    accepted(system.store, b"late", batch_id=BATCH)
    system.certificate()
    assert "complete: NO" in system.verify()


def test_an_auditor_needs_the_public_key_alone(system: System, monkeypatch: pytest.MonkeyPatch) -> None:
    system.certificate()
    home = system.folder / "home"
    assert (home / PRIVATE).stat().st_mode & 0o777 == 0o600
    (home / PUBLIC).rename(system.folder / "given.pem")
    assert "a key that nobody vouched for" in system.verify()
    assert "the trusted key" in system.verify("--key", str(system.folder / "given.pem"))
    monkeypatch.setenv("DOCMILL_HOME", str(system.folder / "another"))
    settings.cache_clear()
    system.certificate()
    with pytest.raises(BrokenCertificate, match="was signed with the key"):
        system.verify("--key", str(system.folder / "given.pem"))


def test_a_batch_that_does_not_exist_has_no_certificate(system: System) -> None:
    done = system.command("certificate", "batch_none")
    assert isinstance(done.exception, NotFound)
