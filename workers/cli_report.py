"""`docmill report cost`: what was spent, on what, and what of it was wasted."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

if TYPE_CHECKING:
    from storage.costs import CostReport
    from storage.ledger import Imbalance

report = typer.Typer(help="What the system has done and what it has cost.", no_args_is_help=True)

WEEK = timedelta(days=7)
#: The exit status when the books do not balance.
UNBALANCED = 1
_COLUMNS = {
    "tenant": "tenant",
    "profile": "profile",
    "length_class": "length",
    "calls": "calls",
    "retries": "retries",
    "prompt_tokens": "tok in",
    "cached_tokens": "cached",
    "output_tokens": "tok out",
    "gpu_seconds": "GPU s",
    "used_usd": "used $",
    "wasted_usd": "of it wasted $",
    "held_usd": "held $",
}
_WORDS = ("tenant", "profile", "length_class")


@report.callback()
def _group() -> None:
    """Keeps `cost` a command of its own."""


@report.command()
def cost(
    week: Annotated[bool, typer.Option("--week", help="Of the last seven days; else of all time.")] = False,
    tenant: Annotated[str, typer.Option("--tenant", "-t", help="Of one tenant; else of all.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="As JSON, amounts as strings with every digit.")] = False,
) -> None:
    """Costs by tenant, profile and length class; long tail, cache hits, idle time, waste. Exact to the last digit."""
    found, uneven = _read(datetime.now(UTC) - WEEK if week else None, tenant or None)
    if as_json:
        typer.echo(json.dumps(as_values(found, uneven), default=str, ensure_ascii=False))
    else:
        _show(found, uneven)
    if uneven or not found.adds_up:
        raise typer.Exit(UNBALANCED)


def _read(since: datetime | None, tenant: str | None) -> tuple[CostReport, list[Imbalance]]:
    from storage.costs import cost_report
    from storage.ledger import check
    from workers.cli import use_running_stack
    from workers.services import services

    use_running_stack()
    whole = services().database.execution_options(isolation_level="REPEATABLE READ")
    with whole.connect() as connection:
        return cost_report(connection, since=since, tenant=tenant), check(connection)


def as_values(found: CostReport, uneven: list[Imbalance]) -> dict[str, Any]:
    """The report for JSON; decimals are strings."""
    return {
        "lines": [_exact(asdict(line)) for line in found.lines],
        "waste": [_exact(asdict(one)) for one in found.wasted],
        "idle": [_exact(asdict(gap)) for gap in found.gaps],
        **_exact({"used_usd": found.used_usd, "held_usd": found.held_usd, "wasted_usd": found.wasted_usd}),
        **_exact({"ledger_usd": found.ledger_usd, "p90_usd": found.p90_usd, "tail_usd": found.tail_usd}),
        "ledger_entries": found.entries,
        "adds_up": found.adds_up,
        "long_tail_share": str(found.tail_share),
        "prefix_cache_hit_rate": str(found.cache_hit_rate),
        "idle_gap": str(found.idle_share),
        "imbalances": [_exact(asdict(one)) for one in uneven],
    }


def _exact(values: dict[str, Any]) -> dict[str, Any]:
    return {name: f"{value:f}" if isinstance(value, Decimal) else value for name, value in values.items()}


def _show(found: CostReport, uneven: list[Imbalance]) -> None:
    from workers.cli import out

    out.print(_lines_table(found))
    if found.wasted:
        out.print(_waste_table(found))
    for line in summary(found, uneven):
        out.print(line, soft_wrap=True, highlight=False)


def summary(found: CostReport, uneven: list[Imbalance]) -> list[str]:
    """What the tables come to, a line each."""
    wasted = _percent(found.wasted_usd / found.used_usd) if found.used_usd else "0 %"
    lines = [
        f"long tail          {_percent(found.tail_share)} of the cost is of calls over the 90th percentile"
        f" ({_plain(found.p90_usd)} $)",
        f"prefix cache       {_percent(found.cache_hit_rate)} of the prompt tokens were cached",
        f"idle gap           {_percent(found.idle_share)} of the time of {len(found.gaps)} batches nothing was read",
        f"wasted             {_plain(found.wasted_usd)} $ ({wasted})",
        f"used               {_plain(found.used_usd)} $",
        f"held               {_plain(found.held_usd)} $",
        f"ledger             {_plain(found.ledger_usd)} $ in {found.entries} entries"
        f" ({'the same' if found.adds_up else 'NOT THE SAME'})",
        "balance            every job that is over has its cost on the ledger" if not uneven else "",
    ]
    for one in uneven:
        lines.append(
            f"NOT BALANCED       {one.job_id} attempt {one.attempt or '-'}: {one.what}"
            f" (ledger {_plain(one.ledger_usd)}, cost {_plain(one.actual_usd)})"
        )
    return [line for line in lines if line]


def _lines_table(found: CostReport) -> Table:
    table = Table(title="cost", header_style="bold", pad_edge=False)
    for column, heading in _COLUMNS.items():
        table.add_column(heading, justify="left" if column in _WORDS else "right", no_wrap=True)
    for line in found.lines:
        values = asdict(line)
        table.add_row(*(_plain(values[column]) for column in _COLUMNS))
    return table


def _waste_table(found: CostReport) -> Table:
    table = Table(title="waste", header_style="bold", pad_edge=False)
    for heading in ("kind", "attempts", "GPU s", "$"):
        table.add_column(heading, justify="left" if heading == "kind" else "right")
    for one in found.wasted:
        table.add_row(one.waste, str(one.attempts), _plain(one.gpu_seconds), _plain(one.usd))
    return table


def _plain(value: Any) -> str:
    """A decimal with every digit that it has, and no more."""
    if not isinstance(value, Decimal):
        return str(value)
    text = f"{value:f}"
    return (text.rstrip("0").rstrip(".") or "0") if "." in text else text


def _percent(value: Decimal) -> str:
    return f"{value * 100:.1f} %"
