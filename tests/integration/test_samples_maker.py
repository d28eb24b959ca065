"""The committed samples are what their maker makes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pymupdf

from tests.unit.test_samples import ENTRIES, INBOX, MANIFEST, ROOT


def test_the_maker_makes_the_committed_bytes_again(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "samples.make_samples", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    made = {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in tmp_path.rglob("*.pdf")}
    assert set(made) == {entry["file"] for entry in ENTRIES if entry["made"]}
    changed = [name for name, data in made.items() if data != (INBOX / name).read_bytes()]
    hint = f"made with {MANIFEST['made_with']}, here is {pymupdf.__version__}"
    assert not changed, f"{changed} differ ({hint}): run `python -m samples.make_samples`, look at them, commit"
