"""The review queue on the command line: `docmill review list | show | accept | correct | reject | reopen | …`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from workers.console import errors as _err
from workers.console import lines as _out
from workers.console import tables as _tables

if TYPE_CHECKING:
    from storage.review import Reviewer
    from workers.review import Evidence, Shown
    from workers.services import Services

review = typer.Typer(help="Results that wait for a person: look, then accept, correct or reject.", no_args_is_help=True)
_STYLES = {"pass": "green", "flag": "cyan", "review": "yellow", "reject": "red"}

By = Annotated[str, typer.Option("--by", help="Who decides; it is kept with the decision.")]
Note = Annotated[str, typer.Option("--note", help="Why.")]
Tenant = Annotated[str, typer.Option("--tenant", "-t", help="Only this tenant's; default: everybody's.")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, as the API answers.")]


@review.command("list")
def list_waiting(
    profile: Annotated[str, typer.Option("--profile", "-p", help="Only results of this profile.")] = "",
    tenant: Tenant = "",
    limit: Annotated[int, typer.Option(help="Rows at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """What waits for a person, longest first."""
    from storage.review import queue

    with _services().database.begin() as connection:
        found = queue(connection, tenant=tenant or None, profile=profile or None, limit=limit)
    if as_json:
        for one in found:
            row = {name: getattr(one, name) for name in ("job_id", "tenant", "name", "profile", "verdict", "reason")}
            typer.echo(json.dumps({**row, "opened_at": one.opened_at.isoformat()}, ensure_ascii=False))
        return
    table = Table(title=f"{len(found)} results wait for a person", header_style="bold", pad_edge=False)
    for heading in ("job", "document", "profile", "since", "why"):
        table.add_column(heading, overflow="fold", no_wrap=heading in ("job", "since"))
    for one in found:
        since = f"{one.opened_at:%Y-%m-%d %H:%M}"
        table.add_row(one.job_id, escape(one.name), one.profile, since, escape(one.reason or ""))
    _tables.print(table)


@review.command()
def show(job: str, tenant: Tenant = "", as_json: AsJson = False) -> None:
    """A result with its evidence: value, as printed, page, box, surrounding text, findings."""
    from workers.review import show as look

    shown = look(job, _services(), tenant=tenant or None)
    if as_json:
        from workers.api.reviews import answer_of

        typer.echo(answer_of(shown).model_dump_json())
        return
    _print_shown(shown)


@review.command()
def accept(job: str, by: By, note: Note = "", tenant: Tenant = "") -> None:
    """The result is right as it stands."""
    from workers import review as acts

    acts.accept(job, _reviewer(by, note, tenant), _services())
    _out.print(f"accepted {job}")


@review.command()
def correct(
    job: str,
    changes: Annotated[
        list[str],
        typer.Argument(help="path=value for a text, path:=JSON for anything else (path:=null: not in the document)."),
    ],
    by: By,
    note: Annotated[str, typer.Option("--note", help="Why. It is kept with each corrected value.")],
    confirm: Annotated[bool, typer.Option("--confirm", help="Take values that the rules doubt.")] = False,
    tenant: Tenant = "",
) -> None:
    """Put other values into the result; what stood there before is kept as its own version."""
    from workers import review as acts

    corrections = dict(_change(change) for change in changes)
    acts.correct(job, _reviewer(by, note, tenant), corrections, _services(), confirmed=confirm)
    _out.print(f"corrected {job}: {', '.join(corrections)}")


@review.command()
def reject(job: str, by: By, note: Annotated[str, typer.Option("--note", help="Why.")], tenant: Tenant = "") -> None:
    """The result is of no use: the job has failed; what was read is kept."""
    from workers import review as acts

    acts.reject(job, _reviewer(by, note, tenant), _services())
    _out.print(f"rejected {job}")


@review.command()
def reopen(job: str, by: By, note: Annotated[str, typer.Option("--note", help="Why.")], tenant: Tenant = "") -> None:
    """Put a result that is done before a person (again)."""
    from workers import review as acts

    acts.reopen(job, _reviewer(by, note, tenant), _services())
    _out.print(f"{job} waits for a review")


@review.command()
def examples(
    profile: Annotated[str, typer.Option("--profile", "-p", help="Corrections of this profile's results.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File to write; default: print.")] = None,
    tenant: Tenant = "",
) -> None:
    """Corrections as a rule set file with examples, for `docmill rules test FILE`.

    It holds text of the documents: keep it where they may be kept.
    """
    from workers.review_examples import export_examples

    exported = export_examples(profile, _services(), tenant=tenant or None)
    if out is None:
        typer.echo(exported.text, nl=False)
    else:
        out.write_text(exported.text, encoding="utf-8")
    _err.print(f"{exported.corrections} corrections")
    for name in exported.unseen:
        _err.print(f"no rule tells the fault from the correction: {escape(name)}")


def _services() -> Services:
    """Those of the stack that runs in this home, or of the database that the settings name."""
    from workers.cli import use_running_stack
    from workers.services import services

    use_running_stack()
    return services()


def _reviewer(by: str, note: str, tenant: str) -> Reviewer:
    from storage.review import Reviewer

    if not by.strip():
        raise typer.BadParameter("it is blank: say who decides", param_hint="--by")
    return Reviewer(by.strip(), note.strip(), tenant or None)


def _change(text: str) -> tuple[str, Any]:
    """`path=value` or `path:=JSON`."""
    from workers.review import pointer

    path, mark, value = text.partition("=")
    if not mark or not path.strip(":"):
        raise typer.BadParameter(f"{text!r} is no change: write path=value or path:=JSON", param_hint="CHANGES")
    if not path.endswith(":"):
        return pointer(path), value
    try:
        return pointer(path[:-1]), json.loads(value)
    except json.JSONDecodeError as error:
        raise typer.BadParameter(f"{value!r} is no JSON ({error})", param_hint="CHANGES") from error


def _print_shown(shown: Shown) -> None:
    one = shown.review
    said = f"{one.decision} by {one.reviewer}: {one.note}" if one.decision else "waits for a person"
    _out.print(f"[bold]{escape(one.name)}[/] {one.profile} {one.job_id}\n{escape(said)}\n{escape(one.reason or '')}\n")
    for evidence in shown.evidence:
        _print_evidence(evidence)
    whole = [finding for finding in shown.findings if finding.path is None]
    for finding in whole:
        _out.print(f"[{_STYLES[finding.outcome]}]{finding.outcome:7}[/]{finding.rule} {escape(finding.message)}")


def _print_evidence(one: Evidence) -> None:
    sure = "" if one.confidence is None else f", confidence {one.confidence:.2f}"
    _out.print(f"[bold]{escape(one.path)}[/] = {escape(one.text) or '(nothing)'}  [dim]version {one.version}{sure}[/]")
    if one.page is not None:
        box = ", ".join(f"{edge:.0f}" for edge in one.bbox or ())
        value = f"  value {one.value} {one.unit or ''}" if one.value is not None else ""
        _out.print(f"    printed “{escape(one.printed or '')}” on page {one.page} at ({box}){escape(value)}")
        _out.print(f"    [dim]{escape(one.surrounding)}[/]")
    for finding in one.findings:
        _out.print(f"    [{_STYLES[finding.outcome]}]{finding.outcome:7}[/]{finding.rule} {escape(finding.message)}")
