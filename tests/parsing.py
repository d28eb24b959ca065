"""What the parsing tests share: a tiny tokenizer, a parse in this process, and the lines that a model would read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from docmill.types import PreparedDocument


def tiny_tokenizer(folder: Path) -> Path:
    """A tokenizer with a token for each word, each single sign and each line break."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[a-zA-Z]+|\d|[^\sa-zA-Z\d]|\n"), "isolated")
    file = folder / "tokenizer.json"
    tokenizer.save(str(file))
    return file


def parsed(data: bytes, folder: Path, *, ocr: bool = False, **limits: Any) -> PreparedDocument:
    """The document, parsed in this process."""
    from preprocess.parse import parse
    from preprocess.prepare import PrepareConfig

    return parse(data, "doc", PrepareConfig(tiny_tokenizer(folder), ocr=ocr, **limits))


def shown(prepared: PreparedDocument) -> str:
    """The text of all chunks, as a model reads it."""
    return "".join(chunk.text for chunk in prepared.chunks)


def rows(prepared: PreparedDocument, table: int = 0) -> list[list[str]]:
    """The cells of a table as text, row by row."""
    found = prepared.tables[table]
    grid = [[""] * found.cols for _ in range(found.rows)]
    for cell in found.cells:
        grid[cell.row][cell.col] = cell.text
    return grid
