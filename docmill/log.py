"""Log lines with an action and facts, in logfmt: `action=claimed job_id=job_1 attempt=2`."""

from __future__ import annotations

import logging
from typing import Any

FORMAT = "%(asctime)s %(levelname)s %(processName)s %(name)s %(message)s"


def logger(name: str) -> logging.Logger:
    """The logger of a module, below `docmill` so that one level rules all of ours."""
    return logging.getLogger(f"docmill.{name}")


def say(log: logging.Logger, action: str, *, level: int = logging.INFO, error: bool = False, **facts: Any) -> None:
    """Log one action with its facts; `error` adds the present exception's traceback."""
    if log.isEnabledFor(level):
        words = " ".join(f"{key}={_quoted(value)}" for key, value in facts.items() if value is not None)
        log.log(level, "action=%s %s", action, words, exc_info=error)


def _quoted(value: Any) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    return '"' + text.replace('"', "'").replace("\n", " ") + '"' if " " in text or not text else text
