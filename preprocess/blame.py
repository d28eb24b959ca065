"""Why a parser child ended, and what follows: the document again without the page that did it, or an error.

A page is blamed only in a child that read nothing before it; in another the reason may be what earlier documents left.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from docmill.errors import CorruptPdf, DocmillError, ParserCrashed, ParserLimit
from docmill.types import MissingPage
from preprocess.running import Child, Overrun, Task

if TYPE_CHECKING:
    from preprocess.prepare import PrepareConfig

#: What a fault in the parser's own code looks like from outside. SIGKILL is not among them: it comes from others.
_FAULTS: Final = frozenset({signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL})
#: With less than this left of its time, a document is not begun again.
_LEAST_SECONDS: Final = 1.0


def next_try(task: Task, limits: PrepareConfig, child: Child, stop: Exception, took: float) -> Task:
    """End the child and say how to go on; raises the error that ends the document if there is no way."""
    words = child.end()
    fault = _fault(child, stop, words, limits)
    left = _left(task, child, took)
    if isinstance(fault, ParserCrashed) or left is None or not (child.turn.page or child.served > 1):
        raise fault from stop
    if child.served > 1 and child.returncode != -signal.SIGXCPU:
        return replace(task, config=left)
    if not child.turn.page or len(task.left_out) >= limits.bad_pages:
        raise fault from stop
    blamed = MissingPage(child.turn.page, fault.code, _reason(child, words, limits))
    return replace(task, config=left, left_out=(*task.left_out, blamed))


def _left(task: Task, child: Child, took: float) -> PrepareConfig | None:
    """The document's limits less what the last try used; None if too little is left for another."""
    wall, cpu = task.config.wall_seconds - took, task.config.cpu_seconds - child.turn.cpu_seconds
    if child.returncode == -signal.SIGXCPU:
        cpu -= task.config.page_cpu_seconds
    if min(wall, cpu) < _LEAST_SECONDS:
        return None
    return replace(task.config, wall_seconds=wall, cpu_seconds=cpu)


def _fault(child: Child, stop: Exception, words: str, limits: PrepareConfig) -> DocmillError:
    """The error that the end of the child stands for."""
    if isinstance(stop, Overrun) or child.returncode == -signal.SIGALRM:
        return _limit(f"took over {limits.wall_seconds:g} s", "wall_seconds")
    if child.returncode == -signal.SIGXCPU:
        return _cpu_limit(child, limits)
    if child.out_of_memory:
        return _limit(f"needed over {limits.memory_bytes // 1024**2} MiB of memory", "memory_bytes")
    if -child.returncode in _FAULTS and child.turn.page:
        return CorruptPdf(f"page {child.turn.page} ends the parser ({words}); export the PDF again")
    return ParserCrashed(f"the parser process ended without an answer ({words}); it is tried again in a new process")


def _cpu_limit(child: Child, limits: PrepareConfig) -> ParserLimit:
    if child.turn.cpu_seconds + limits.page_cpu_seconds < limits.cpu_seconds:
        part = f"page {child.turn.page}" if child.turn.page else "opening the file"
        return _limit(f"used over {limits.page_cpu_seconds:g} s of CPU on {part}", "page_cpu_seconds")
    return _limit(f"used over {limits.cpu_seconds:g} s of CPU", "cpu_seconds")


def _limit(what: str, setting: str) -> ParserLimit:
    return ParserLimit(f"parsing {what} and was stopped; split the file or raise {setting}")


def _reason(child: Child, words: str, limits: PrepareConfig) -> str:
    if child.returncode == -signal.SIGXCPU:
        return f"used over {limits.page_cpu_seconds:g} s of CPU; raise page_cpu_seconds"
    if child.out_of_memory:
        return f"needed over {limits.memory_bytes // 1024**2} MiB of memory; raise memory_bytes"
    return f"ends the parser ({words}); export the PDF again"
