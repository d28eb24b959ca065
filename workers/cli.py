"""The command line. Commands import what they need when they run, so that `docmill --help` is quick."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from docmill import __version__
from docmill.errors import DocmillError
from docmill.log import FORMAT
from workers import cli_analyst, cli_certificate, cli_holds, cli_report, cli_review, cli_rules, cli_tenants
from workers.console import PIPE_WIDTH
from workers.settings import export, settings

main = typer.Typer(
    help="docmill: PDFs to checked, cited rows, on your own GPUs.", no_args_is_help=True, pretty_exceptions_enable=False
)
out = Console(width=None if Console().is_terminal else PIPE_WIDTH)
err = Console(stderr=True)

Profile = Annotated[str, typer.Option("--profile", "-p", help="Name of the profile to read with.")]
Tenant = Annotated[str, typer.Option("--tenant", "-t", help="Tenant; default: that of the settings.")]


def use_running_stack() -> None:
    """Make this process use the stack that runs in this home, where no URL is set."""
    from workers.local import read_address

    address = read_address(settings())
    if address is not None:
        export(address.environment())
        settings.cache_clear()
    if not settings().database_url:
        err.print(f"no stack runs in {settings().home}: start one with `docmill up`, or set DOCMILL_DATABASE_URL")
        raise typer.Exit(1)


@main.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    """Options before the command."""
    if show:
        out.print(__version__)
        raise typer.Exit


@main.command()
def up() -> None:
    """Start the stack on this machine and keep it running (Ctrl-C ends it)."""
    import os

    from workers import local

    logging.basicConfig(format=FORMAT, level=settings().log_level)
    local.up(settings(), pid=os.getpid())


@main.command()
def down() -> None:
    """End the stack that runs in this home."""
    from workers.demo import stop_stack

    out.print("stopped" if stop_stack(settings()) else "nothing was running")


@main.command()
def demo(
    samples: Annotated[Path, typer.Option(help="Folder of sample PDFs, <tenant>/<profile>/NAME.pdf.")] = Path(
        "samples/inbox"
    ),
) -> None:
    """Start the stack, drop the samples into the bucket, show what becomes of them."""
    from workers.demo import run_demo

    run_demo(samples, settings(), out)


@main.command()
def submit(
    paths: Annotated[list[Path], typer.Argument(help="Files and folders.", exists=True)],
    profile: Profile,
    tenant: Tenant = "",
    ordering_key: Annotated[str | None, typer.Option(help="Files of one key are read one after the other.")] = None,
) -> None:
    """Submit PDF files, or every PDF below a folder."""
    use_running_stack()
    from workers.commands import submit_paths

    for path, receipt in submit_paths(paths, profile, tenant or settings().tenant, ordering_key=ordering_key):
        out.print(
            f"{receipt.outcome:10} {receipt.job_id or '-'} {path}" + (f"  {receipt.reason}" if receipt.reason else "")
        )


@main.command()
def status() -> None:
    """Jobs by status, and the processes of the stack."""
    use_running_stack()
    from workers.commands import status_lines

    for line in status_lines():
        out.print(line)


@main.command()
def results(
    tenant: Tenant = "",
    limit: Annotated[int, typer.Option(help="Rows at most.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
) -> None:
    """One row for each submitted file."""
    use_running_stack()
    from workers.commands import result_rows
    from workers.reports import results_table

    rows = result_rows(tenant, limit)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row, default=str, ensure_ascii=False))
    else:
        out.print(results_table(rows))


@main.command()
def parse(
    file: Annotated[Path, typer.Argument(help="The PDF.", exists=True, dir_okay=False)],
    as_json: Annotated[bool, typer.Option("--json", help="Pages, tables and cells as JSON.")] = False,
) -> None:
    """Parse one PDF and show what was read; needs no stack."""
    from workers.commands import parse_file, parsed_text

    prepared = parse_file(file)
    typer.echo(parse_json(prepared) if as_json else parsed_text(prepared))


def parse_json(prepared: object) -> str:
    """The table benchmark's form, with everything else that we know."""
    from docmill.types import PreparedDocument
    from preprocess.tables_form import tables_form

    assert isinstance(prepared, PreparedDocument)
    return json.dumps(tables_form(prepared), ensure_ascii=False)


@main.command()
def worker(kind: Annotated[str, typer.Argument(help="parse, parse-hot, gpu, validate or batch")]) -> None:
    """Run one worker process."""
    from preprocess.lazy_layout import leave_layout_for_later

    leave_layout_for_later()
    from workers import run

    if kind not in run.RUN:
        err.print(f"there is no worker {kind!r}: it is one of {', '.join(run.RUN)}")
        raise typer.Exit(2)
    run.worker(kind)


@main.command()
def beat() -> None:
    """Run the clock: dispatch, sweep and inbox scan."""
    from workers import run

    run.beat()


@main.command()
def api() -> None:
    """Run the HTTP API."""
    from workers import run

    run.api()


@main.command()
def migrate() -> None:
    """Bring the database up to date."""
    use_running_stack()
    from storage.migrate import upgrade

    upgrade(settings().database_url)
    out.print("the database is up to date")


cli_analyst.register(main)
cli_certificate.register(main)
cli_holds.register(main)
cli_tenants.register(main)
main.command()(cli_rules.validate)
main.add_typer(cli_rules.rules, name="rules")
main.add_typer(cli_review.review, name="review")
main.add_typer(cli_report.report, name="report")


def run_cli() -> None:
    """Entry point: our own errors are one line on stderr and exit status 1."""
    try:
        main()
    except DocmillError as error:
        err.print(f"[red]{error.code}[/]: {error}")
        raise SystemExit(1) from error


if __name__ == "__main__":
    run_cli()
