"""Bytes in, a prepared document out. The parsing itself runs in a child process that may be killed; see `parse.py`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from docmill.types import PreparedDocument
from preprocess.process import ask_child
from preprocess.sniff import check_bytes

_ABOVE_ZERO: Final = (
    "max_pages",
    "wall_seconds",
    "cpu_seconds",
    "memory_bytes",
    "child_documents",
    "page_cpu_seconds",
    "page_content_bytes",
)


@dataclass(frozen=True, slots=True)
class PrepareConfig:
    """Limits of one document, and the tokenizer that lengths are counted with (a model's folder or tokenizer.json).

    `memory_bytes` bounds the child's address space (RLIMIT_AS), of which the layout and OCR models reserve about
    half; `child_documents` is how many documents a child reads before it is replaced. A page that needs more than
    `page_cpu_seconds`, unpacks to more than `page_content_bytes` of drawing, or ends the child, is left out; with more
    than `bad_pages` of those the document is given up.
    """

    tokenizer: Path
    max_pages: int = 2000
    wall_seconds: float = 120.0
    cpu_seconds: float = 240.0
    memory_bytes: int = 2 * 1024**3
    ocr: bool = True
    child_documents: int = 100
    page_cpu_seconds: float = 40.0
    page_content_bytes: int = 64 * 1024**2
    bad_pages: int = 3

    def __post_init__(self) -> None:
        for name in _ABOVE_ZERO:
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")


def prepare(
    data: bytes, document_id: str, config: PrepareConfig, on_page: Callable[[int, int], object] | None = None
) -> PreparedDocument:
    """Parse a PDF within the limits. Raises the InputError that says what is wrong with the file, or ParserCrashed.

    `on_page` is told of each page as it is begun: its number, and how many there are.
    """
    check_bytes(data)
    return ask_child(data, document_id, config, on_page)
