"""A disk that is full and a database that is away are named as such, and are no document's fault."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection, Engine, create_engine, text

from docmill.errors import BlobsUnavailable, DatabaseUnavailable, NotFound
from storage import database
from storage.blobs import Blobs
from storage.database import transactional

#: Beyond this limit a write fails as it does on a full disk; the signal that goes with it is not for Python.
FULL_DISK = """
import resource, sys
from storage.blobs import Blobs
from docmill.errors import BlobsUnavailable
blobs = Blobs.at(sys.argv[1])
blobs.put("small", b"fits")
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    blobs.put("large", bytes(100_000))
except BlobsUnavailable as error:
    sys.exit(f"{error.code}: {error}")
"""


def test_a_full_disk_is_a_fault_of_the_machine_that_leaves_no_half_blob(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path.as_uri()], capture_output=True, text=True)
    assert told.returncode == 1
    assert told.stderr.startswith("blobs_unavailable: the store of bytes did not take or give large")
    blobs = Blobs.at(tmp_path.as_uri())
    assert blobs.get("small") == b"fits"
    assert not blobs.exists("large")


def test_a_folder_that_cannot_be_used_is_a_fault_of_the_machine(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder should be")
    blobs = Blobs.at(tmp_path.as_uri())
    for ask in (
        lambda: blobs.put("taken/key", b"x"),
        lambda: blobs.get("taken/key"),
        lambda: blobs.exists("taken/key"),
    ):
        with pytest.raises(BlobsUnavailable, match="DOCMILL_BLOB_URL"):
            ask()
    with pytest.raises(NotFound):
        blobs.get("nothing")


class Asking:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @transactional
    def ask(self, connection: Connection) -> None:
        connection.execute(text("SELECT 1"))


def test_a_database_that_stays_away_is_waited_for_and_then_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(database, "PATIENCE_S", 0.5)
    nobody = create_engine(f"postgresql+psycopg://nobody@/none?host={tmp_path}")
    with pytest.raises(DatabaseUnavailable, match="DOCMILL_DATABASE_URL"):
        Asking(nobody).ask()
