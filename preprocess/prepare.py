"""Bytes in, a prepared document out. The parsing itself runs in a child process that may be killed; see `parse.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from docmill.types import PreparedDocument
from preprocess.process import ask_child
from preprocess.sniff import check_bytes


@dataclass(frozen=True, slots=True)
class PrepareConfig:
    """Limits of one document, and the tokenizer that lengths are counted with (a model's folder or tokenizer.json).

    `memory_bytes` bounds the child's address space (RLIMIT_AS), of which the layout and OCR models reserve about
    half; `child_documents` is how many documents a child reads before it is replaced.
    """

    tokenizer: Path
    max_pages: int = 2000
    wall_seconds: float = 120.0
    cpu_seconds: float = 240.0
    memory_bytes: int = 2 * 1024**3
    ocr: bool = True
    child_documents: int = 100

    def __post_init__(self) -> None:
        for name in ("max_pages", "wall_seconds", "cpu_seconds", "memory_bytes", "child_documents"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")


def prepare(data: bytes, document_id: str, config: PrepareConfig) -> PreparedDocument:
    """Parse a PDF within the limits. Raises the InputError that says what is wrong with the file, or ParserCrashed."""
    check_bytes(data)
    return ask_child(data, document_id, config)
