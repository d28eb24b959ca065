"""The cells of a table's column as candidates of a field: `x-source: enum-of-table-column`.

`x-column` has the words of the column's head, in any language of the documents. The head is looked for in the topmost
row of each table that has one of the words; what stands below it may be taken, a whole cell at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from docmill.types import Piece
from inference.candidates import Candidate
from inference.text import Plain

SOURCE = "enum-of-table-column"


def key_of(schema: Mapping[str, Any]) -> str:
    """The name under which a grounded field's candidates are kept: its kind, or its column's words."""
    source: str = schema["x-source"]
    return source if source != SOURCE else f"{SOURCE}:{'|'.join(schema['x-column'])}"


def find_columns(
    schema: Mapping[str, Any], pieces: Sequence[Piece], plains: Sequence[Plain]
) -> Mapping[str, tuple[Candidate, ...]]:
    """The candidates of every field of the schema that takes a cell of a column."""
    return {key_of(wanted): tuple(_cells(wanted["x-column"], pieces, plains)) for wanted in _wanting(schema)}


def _wanting(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if schema.get("x-source") == SOURCE:
        yield schema
    for inner in schema.get("properties", {}).values():
        yield from _wanting(inner)
    if "items" in schema:
        yield from _wanting(schema["items"])


def _cells(words: Sequence[str], pieces: Sequence[Piece], plains: Sequence[Plain]) -> Iterator[Candidate]:
    heads = _heads([word.casefold() for word in words], pieces, plains)
    for number, (piece, plain) in enumerate(zip(pieces, plains, strict=True)):
        row, columns = heads.get(piece.table_id, (None, set()))
        text = plain.text.strip()
        if text and row is not None and piece.row is not None and piece.row > row and piece.col in columns:
            start = plain.text.index(text)
            yield Candidate(text, number, start, start + len(text))


def _heads(
    words: Sequence[str], pieces: Sequence[Piece], plains: Sequence[Plain]
) -> dict[str | None, tuple[int, set[int | None]]]:
    """The row and the columns of the head in each table; a cell that is the word alone counts before one with more."""
    found: dict[str | None, dict[bool, dict[int, set[int | None]]]] = {}
    for piece, plain in zip(pieces, plains, strict=True):
        text = plain.text.casefold().strip()
        if piece.table_id is not None and piece.row is not None and any(word in text for word in words):
            rows = found.setdefault(piece.table_id, {}).setdefault(text in words, {})
            rows.setdefault(piece.row, set()).add(piece.col)
    likeliest = {table: whole.get(True) or whole[False] for table, whole in found.items()}
    return {table: min(rows.items()) for table, rows in likeliest.items()}
