"""The commands that try rules out: `docmill validate` on any document and result, `docmill rules test` on rule files.

Neither needs a stack. Exit status: 0 all is well, 1 a verdict other than pass or an example that fails, 2 a file that
cannot be used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from docmill.errors import DocmillError
from workers.console import errors as _err
from workers.console import lines as _out

if TYPE_CHECKING:
    from validation.rules import Ruleset
    from workers.check_file import Checked

NOT_PASSED, UNUSABLE = 1, 2
_STYLES = {"pass": "green", "flag": "cyan", "review": "yellow", "reject": "red"}

rules = typer.Typer(help="Rule sets: test them by the examples that they carry.", no_args_is_help=True)


def validate(
    profile: Annotated[
        str, typer.Option("--profile", "-p", help="Name of a profile, or the path of a profile's YAML file.")
    ],
    document: Annotated[Path, typer.Option("--document", "-d", help="The PDF.")],
    result: Annotated[
        Path,
        typer.Option(
            "--result",
            "-r",
            help="The result as JSON: bare values of the profile's schema, or `{result, citations}`, or an answer of "
            "the API, or what a model said (`{finish_reason, content}`). What is no JSON is a finding.",
        ),
    ],
    rules_file: Annotated[
        Path | None, typer.Option("--rules", help="A rule set file to use instead of the profile's own.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, its form is in docs/review.md.")] = False,
) -> None:
    """Judge a result against its document: every finding with rule, severity, message, field, page and box.

    Needs no stack, no database and no model. Exit status: 0 outcome pass; 1 flag, review or reject; 2 a document,
    profile or rule set that cannot be used.

    JSON: {"format": 1, "outcome": "pass|flag|review|reject", "profile", "profile_version", "ruleset", "document",
    "findings": [{"rule", "severity", "message": {"en", "zh"}, "field": "/json/pointer", "value", "page", "bbox"}],
    "fields": [{"field", "text", "value", "date", "unit", "scale", "page", "bbox", "table", "row", "col", "verdict",
    "confidence"}]}; with exit status 2: {"outcome": null, "error": {"code", "message"}}.
    """
    from workers.check_file import check_file
    from workers.services import services

    try:
        checked = check_file(document, result, profile, rules_file, services())
    except (DocmillError, OSError, ValueError) as error:
        _refuse(error, as_json=as_json)
    _show(checked, as_json=as_json)
    raise typer.Exit(0 if checked.verdict.outcome == "pass" else NOT_PASSED)


@rules.command()
def test(
    files: Annotated[list[Path] | None, typer.Argument(help="Rule set files; none: the built-in ones.")] = None,
) -> None:
    """Run the examples that each rule set carries: which rules must speak, and that no other may.

    One line for a rule set, one for each example that fails. Exit status: 0 all hold, 1 an example fails, 2 a rule
    file that cannot be used (the message names file, line, rule and reason).
    """
    failed = 0
    try:
        for ruleset in _rulesets(files or ()):
            failed += _test(ruleset)
    except (DocmillError, OSError) as error:
        _refuse(error, as_json=False)
    raise typer.Exit(NOT_PASSED if failed else 0)


def _rulesets(files: Sequence[Path]) -> Iterator[Ruleset]:
    from validation.rules import load_ruleset, load_rulesets

    yield from map(load_ruleset, files) if files else load_rulesets().values()


def _test(ruleset: Ruleset) -> int:
    from validation.examples import run_examples

    outcomes = run_examples(ruleset)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    word = "FAIL" if failed else "ok" if outcomes else "no examples"
    _out.print(
        f"{word:12}{ruleset.label}: {len(ruleset.rules)} rules, {len(outcomes) - len(failed)} of {len(outcomes)}"
        " examples hold",
        markup=False,
    )
    for outcome in failed:
        _out.print(f"            {outcome}", markup=False)
    return len(failed)


def _refuse(error: Exception, *, as_json: bool) -> None:
    code = error.code if isinstance(error, DocmillError) else "unusable"
    if as_json:
        typer.echo(json.dumps({"outcome": None, "error": {"code": code, "message": str(error)}}, ensure_ascii=False))
    else:
        _err.print(f"[red]{code}[/]: {escape(str(error))}")
    raise typer.Exit(UNUSABLE)


def _show(checked: Checked, *, as_json: bool) -> None:
    from workers.check_file import as_json as answer_of

    answer = answer_of(checked)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False))
        return
    for finding in answer["findings"]:
        _out.print(_line(finding))
    outcome = answer["outcome"]
    _out.print(f"[{_STYLES[outcome]}]{outcome}[/]: {len(answer['findings'])} findings by {escape(answer['ruleset'])}")


def _line(finding: dict[str, Any]) -> str:
    place = f" (page {finding['page']})" if finding["page"] else ""
    severity, message = finding["severity"], finding["message"]
    said = f"{finding['field'] or '-'}: {message['en']} / {message['zh']}"
    return f"[{_STYLES[severity]}]{severity:7}[/]{finding['rule']} {escape(said)}{place}"
