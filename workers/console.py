"""Where commands write: rows to stdout, what is said about them to stderr."""

from __future__ import annotations

from typing import Final

from rich.console import Console

#: Wide enough for a row where there is no terminal to ask.
PIPE_WIDTH: Final = 220

#: Tables: as wide as the terminal.
tables: Final = Console(width=None if Console().is_terminal else PIPE_WIDTH, highlight=False)
#: Lines: never folded, whatever reads them.
lines: Final = Console(soft_wrap=True, highlight=False)
errors: Final = Console(stderr=True, soft_wrap=True, highlight=False)
