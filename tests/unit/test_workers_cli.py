"""What commands say of what they cannot use, before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from workers.cli import main


@pytest.mark.parametrize("words", [["parse", "."], ["parse", "none.pdf"], ["submit", "none.pdf", "--profile", "x"]])
def test_a_path_that_cannot_be_used_is_told_by_name(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert "'.' is a directory" in done.output or "'none.pdf' does not exist" in done.output
    assert not isinstance(done.exception, OSError)
