"""Tables for the terminal, read from the database's views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

#: Column of `v_results` → heading, in the order shown.
COLUMNS = {
    "name": "document",
    "profile": "profile",
    "status": "status",
    "heat": "heat",
    "length_class": "length",
    "lane": "lane",
    "pages": "pages",
    "tables": "tables",
    "prompt_tokens": "tok in",
    "output_tokens": "tok out",
    "cost_usd": "cost $",
    "findings": "findings",
    "parse_ms": "parse",
    "wait_ms": "wait",
    "infer_ms": "read",
    "validate_ms": "check",
}
NUMBERS = {"pages", "tables", "prompt_tokens", "output_tokens", "cost_usd", "findings"}
STYLES = {
    "done": "green",
    "needs_review": "yellow",
    "failed": "red",
    "duplicate": "cyan",
    "cancelled": "dim",
}


def results_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """One row a document; stages in seconds."""
    table = Table(title=f"{len(rows)} documents", header_style="bold", pad_edge=False)
    for column, heading in COLUMNS.items():
        number = column in NUMBERS or column.endswith("_ms")
        table.add_column(heading, justify="right" if number else "left", overflow="fold", no_wrap=column != "name")
    for row in rows:
        table.add_row(*(_cell(column, row[column]) for column in COLUMNS))
    return table


def reasons_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Why each document ended as it did."""
    table = Table(title="why", header_style="bold", pad_edge=False)
    for heading in ("document", "status", "reason"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(row["name"], _cell("status", row["status"]), row["reason"] or "")
    return table


def fields_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Values with the place where each is printed."""
    table = Table(title="values, each with the place where it is printed", header_style="bold", pad_edge=False)
    for heading in ("document", "field", "as printed", "value", "page", "box (points)"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        box = ", ".join(f"{edge:.0f}" for edge in row["bbox"] or ())
        value = row["value"] if row["value"] is not None else row["date"]
        table.add_row(row["name"], row["path"], row["text"], _plain(value), _plain(row["page"]), box)
    return table


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if column == "status":
        return f"[{STYLES.get(value, 'white')}]{value}[/]"
    if column.endswith("_ms"):
        return f"{value / 1000:.1f} s"
    return f"{value:.6f}" if column == "cost_usd" else str(value)


def _plain(value: Any) -> str:
    return "" if value is None else str(value)
