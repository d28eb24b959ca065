"""`docmill validate` as an outsider uses it: any PDF, any result, no stack, no database, no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pdfs import text_pdf

NOTICE = (
    "Transaction notice\nAccount number: ACC-100245\nCounterparty: Harbour Trading Ltd\n"
    "Transaction amount: USD 12,000.50\nTransaction date: 15 March 2024"
)
RIGHT = {
    "account": "ACC-100245",
    "counterparty": "Harbour Trading Ltd",
    "amount": "12,000.50",
    "currency": "USD",
    "date": "15 March 2024",
    "suspicious": "no",
}
KEYS = {"format", "outcome", "profile", "profile_version", "ruleset", "document", "findings", "fields"}
FINDING = {"rule", "severity", "message", "field", "value", "page", "bbox"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notice.pdf").write_bytes(text_pdf(NOTICE))
    return tmp_path


def validate(folder: Path, result: Any, *more: str, document: str = "notice.pdf", as_json: bool = True) -> Any:
    """The exit status, and the answer."""
    (folder / "result.json").write_bytes(result if isinstance(result, bytes) else json.dumps(result).encode())
    command = [sys.executable, "-m", "workers.cli", "validate", "--profile", "transaction-monitoring"]
    command += ["--document", document, "--result", "result.json", *(["--json"] if as_json else []), *more]
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=120, check=False)
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.returncode, json.loads(done.stdout) if as_json else done.stdout.decode()


def test_a_right_result_passes_with_the_place_of_every_value(folder: Path) -> None:
    status, answer = validate(folder, RIGHT)
    assert (status, answer["outcome"], answer["findings"]) == (0, "pass", [])
    assert set(answer) == KEYS
    amount = next(one for one in answer["fields"] if one["field"] == "/amount")
    assert (amount["value"], amount["page"], amount["verdict"]) == ("12000.50", 1, "pass")
    assert amount["confidence"] > 0.9
    assert len(amount["bbox"]) == 4


def test_a_wrong_value_is_a_finding_with_field_severity_and_both_languages(folder: Path) -> None:
    status, answer = validate(folder, RIGHT | {"amount": "12,000.51"})
    assert (status, answer["outcome"]) == (1, "reject")
    (finding,) = [one for one in answer["findings"] if one["rule"] == "number-ungrounded"]
    assert set(finding) == FINDING
    assert (finding["field"], finding["severity"], finding["value"]) == ("/amount", "reject", "12,000.51")
    assert "not in the document" in finding["message"]["en"]
    assert "文件中没有" in finding["message"]["zh"]


def test_a_result_that_is_cut_off_is_a_finding_and_rejected(folder: Path) -> None:
    status, answer = validate(folder, json.dumps(RIGHT).encode()[:70])
    assert (status, answer["outcome"]) == (1, "reject")
    assert [one["rule"] for one in answer["findings"]] == ["result-truncated"]


def test_a_custom_rule_set_is_used_in_the_place_of_the_profiles_own(folder: Path) -> None:
    (folder / "mine.yaml").write_text(
        "name: mine\nversion: '1'\nrules:\n  - id: small-only\n    severity: review\n    path: /amount\n"
        "    holds: result.amount == '1'\n    message: {en: 'not one: {text}', zh: '不是一：{text}'}\n",
        "utf-8",
    )
    status, answer = validate(folder, RIGHT, "--rules", "mine.yaml")
    assert (status, answer["outcome"], answer["ruleset"]) == (1, "review", "mine@1")
    assert answer["findings"][0]["message"] == {"en": "not one: 12,000.50", "zh": "不是一：12,000.50"}


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--profile", "tea-leaves"), "unknown_profile"),
        (("--document", "result.json"), "not_a_pdf"),
        (("--document", "nowhere.pdf"), "unusable"),
        (("--result", "nowhere.json"), "unusable"),
        (("--rules", "result.json"), "broken_rule"),
    ],
)
def test_what_cannot_be_used_is_an_error_with_its_own_exit_status(
    folder: Path, more: tuple[str, ...], code: str
) -> None:
    status, answer = validate(folder, RIGHT, *more)
    assert (status, answer["outcome"], answer["error"]["code"]) == (2, None, code)
    assert answer["error"]["message"]


def test_for_a_person_each_finding_is_a_line(folder: Path) -> None:
    status, shown = validate(folder, RIGHT | {"amount": "[bold]12[/]"}, as_json=False)
    assert status == 1
    assert "[bold]12[/]" in shown
    assert "reject: " in shown.splitlines()[-1]
