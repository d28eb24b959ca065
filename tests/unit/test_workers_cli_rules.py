"""`docmill rules test`: built-in rule sets hold, a failing example and a broken rule say where they stand."""

from __future__ import annotations

from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from workers.cli import main

MINE = """\
name: mine
version: "1"
extends: [common]
rules:
  - id: one
    severity: flag
    holds: result.amount == '1'
    path: /amount
    message: {en: "{text} is not 1", zh: "{text} 不是 1"}
examples:
  schema: {type: object, properties: {amount: {type: string, x-source: number}}}
  cases:
    - name: one is fine
      document: ["Amount 1"]
      result: {amount: "1"}
      finds: []
    - name: two is not
      document: ["Amount 2"]
      result: {amount: "2"}
      finds: [one]
"""


def run(*files: Path) -> Result:
    return CliRunner().invoke(main, ["rules", "test", *map(str, files)])


def written(folder: Path, text: str, name: str = "mine.yaml") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


def test_the_built_in_rule_sets_hold() -> None:
    done = run()
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["ok"] * 4


def test_a_file_of_ones_own_is_tested_by_its_examples(tmp_path: Path) -> None:
    done = run(written(tmp_path, MINE))
    assert (done.exit_code, "2 of 2 examples hold" in done.stdout) == (0, True)


def test_an_example_that_fails_is_named_with_what_was_not_found(tmp_path: Path) -> None:
    done = run(written(tmp_path, MINE.replace("finds: []", "finds: [number-sign]")))
    assert done.exit_code == 1
    assert "one is fine" in done.stdout
    assert "number-sign" in done.stdout
    assert "two is not" not in done.stdout


def test_a_broken_rule_is_an_error_with_file_line_and_reason(tmp_path: Path) -> None:
    done = run(written(tmp_path, MINE.replace("result.amount == '1'", "result.amount ==")))
    assert done.exit_code == 2
    assert "mine.yaml, line 5, rule one: holds:" in done.stderr
    missing = run(tmp_path / "nowhere.yaml")
    assert (missing.exit_code, "nowhere.yaml" in missing.stderr) == (2, True)


def test_a_rule_set_may_extend_one_of_its_own_folder(tmp_path: Path) -> None:
    written(tmp_path, MINE)
    child = MINE.replace("name: mine", "name: child").replace("[common]", "[mine]").replace("id: one", "id: two")
    done = run(written(tmp_path, child.replace("finds: [one]", "finds: [one, two]"), "child.yaml"))
    assert done.exit_code == 0, done.output
    orphan = run(written(tmp_path, child.replace("[mine]", "[nobody]"), "orphan.yaml"))
    assert (orphan.exit_code, "nobody" in orphan.stderr) == (2, True)
