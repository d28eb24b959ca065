"""How every benchmark ends: a table, a line of figures with PASS or FAIL, a JSON file, an exit status."""

from __future__ import annotations

import json
import operator
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil
from rich.console import Console
from rich.table import Table

RESULTS: Final = Path(__file__).parent / "results"
_WIDTH: Final = 200
_TESTS: Final[dict[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number; with `aim` (such as `">= 0.95"`) it decides about PASS or FAIL."""

    name: str
    value: float
    aim: str = ""

    @property
    def holds(self) -> bool:
        """Whether the value meets its aim; a figure without one always does."""
        if not self.aim:
            return True
        test, limit = self.aim.split()
        return _TESTS[test](self.value, float(limit))

    def __str__(self) -> str:
        aim = f" ({'' if self.holds else 'MISSED, '}aim {self.aim})" if self.aim else ""
        return f"{self.name}={self.value:.6g}{aim}"


def show(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print one table; numbers stand to the right."""
    table = Table(*columns, title=title, title_justify="left")
    filled = [[_cell(value) for value in row] for row in rows]
    for index, column in enumerate(table.columns):
        numeric = all(not row[index].strip("-") or row[index][-1:].isdigit() for row in filled)
        column.justify = "right" if numeric else "left"
    for row in filled:
        table.add_row(*row)
    Console(width=_WIDTH).print(table)


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def finish(name: str, figures: Sequence[Figure], details: Any = None) -> int:
    """Write the JSON file and print the last line; returns the exit status."""
    passed = all(figure.holds for figure in figures)
    RESULTS.mkdir(exist_ok=True)
    written = {
        "bench": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpus": psutil.cpu_count(), "memory_bytes": psutil.virtual_memory().total, "os": platform.system()},
        "passed": passed,
        "figures": [asdict(figure) | {"holds": figure.holds} for figure in figures],
        "details": details,
    }
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(written, ensure_ascii=False, indent=1, default=str))
    print(f"{name}: {', '.join(map(str, figures))}: {'PASS' if passed else 'FAIL'}")
    return 0 if passed else 1
