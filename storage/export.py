"""Answers as files: Parquet, CSV or JSON lines, a batch of rows at a time, whatever their number.

Numbers keep every digit: Parquet has them as decimal(38, 12), JSON lines and CSV as they are written. A text in a CSV
that a spreadsheet would run as a formula is led by an apostrophe; the other formats hold it as it is.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import psycopg

from docmill.errors import BadQuery
from storage.queries import Answer, Column

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows in memory at a time; a Parquet row group has as many.
GROUP_ROWS: Final = 10_000
DECIMAL: Final = (38, 12)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class Format(StrEnum):
    PARQUET = "parquet"
    CSV = "csv"
    JSONL = "jsonl"


class Compression(StrEnum):
    """Of the file as a whole; Parquet compresses its columns itself (with zstd, or gzip if that is asked for)."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True)
class Written:
    """How much was exported."""

    rows: int
    bytes: int


def export(answer: Answer, target: BinaryIO, form: Format, compression: Compression = Compression.NONE) -> Written:
    """Write all rows of an answer. Raises BadQuery for a number that no decimal(38, 12) holds (Parquet)."""
    counted = _Counted(target)
    with ExitStack() as open_files:
        write = _WRITERS[form](answer.columns, counted, compression, open_files)
        rows = 0
        for group in _groups(answer):
            write(group)
            rows += len(group)
    return Written(rows, counted.bytes)


def _groups(answer: Answer) -> Iterator[list[tuple[Any, ...]]]:
    try:
        while group := list(islice(answer.rows, GROUP_ROWS)):
            yield group
    except psycopg.Error as error:
        raise BadQuery(f"the query ended while its rows were read: {' '.join(str(error).split())}") from error


Write = Callable[[list[tuple[Any, ...]]], object]


class _Counted(io.RawIOBase):
    """Passes bytes on and counts them; closing it leaves the target open."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._target.write(data)
        self.bytes += len(data)
        return len(data)


# ---------------------------------------------------------------- text


def _text_file(target: _Counted, compression: Compression, files: ExitStack) -> io.TextIOWrapper:
    import pyarrow as pa

    raw: Any = target
    if compression != Compression.NONE:
        raw = files.enter_context(pa.CompressedOutputStream(pa.PythonFile(target, "w"), compression.value))
    # Closed before what it writes to: the stack ends the last one first.
    return files.enter_context(io.TextIOWrapper(io.BufferedWriter(raw), encoding="utf-8", newline=""))


def _csv(columns: Sequence[Column], target: _Counted, compression: Compression, files: ExitStack) -> Write:
    writer = csv.writer(_text_file(target, compression, files), lineterminator="\n")
    writer.writerow([column.name for column in columns])
    return lambda group: writer.writerows([_csv_cell(value) for value in row] for row in group)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) and not _is_number(value) else value
    if isinstance(value, list | dict):
        return _json(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date | datetime) else value


def _is_number(text: str) -> bool:
    """A sign and figures: a spreadsheet takes it for the number that it is."""
    return text[1:2].isdigit() and text[1:].replace(",", "").replace(".", "", 1).rstrip("%").isdigit()


def _jsonl(columns: Sequence[Column], target: _Counted, compression: Compression, files: ExitStack) -> Write:
    names, file = [column.name for column in columns], _text_file(target, compression, files)
    return lambda group: file.writelines(_json(dict(zip(names, row, strict=True))) + "\n" for row in group)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=_plain, separators=(",", ":"))


def _plain(value: Any) -> str:
    """Decimals as strings: a reader that makes floats of JSON numbers would lose digits."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value.isoformat() if isinstance(value, date | datetime) else str(value)


# ---------------------------------------------------------------- parquet


def _parquet(columns: Sequence[Column], target: _Counted, compression: Compression, files: ExitStack) -> Write:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = _kinds()
    schema = pa.schema([(column.name, kinds.get(column.oid, pa.string())) for column in columns])
    packed = Compression.GZIP if compression == Compression.GZIP else Compression.ZSTD
    writer = files.enter_context(pq.ParquetWriter(pa.PythonFile(target, "w"), schema, compression=packed.value))
    return lambda group: writer.write_batch(_batch(group, schema))


def _batch(group: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    arrays = [_array(values, field) for values, field in zip(zip(*group, strict=True), schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def _array(values: Sequence[Any], field: pa.Field) -> pa.Array:
    import pyarrow as pa

    try:
        if pa.types.is_string(field.type):
            values = [value if value is None or isinstance(value, str) else _json_text(value) for value in values]
        return pa.array(values, field.type)
    except pa.ArrowInvalid as error:
        raise BadQuery(
            f"column {field.name} has a number that no decimal{DECIMAL} holds ({error}): round it or cast it to text"
        ) from error


def _json_text(value: Any) -> str:
    return _json(value) if isinstance(value, list | dict) else _plain(value)


def _kinds() -> Mapping[int, pa.DataType]:
    """PostgreSQL's types, by number, as Arrow's; any other is written as text."""
    import pyarrow as pa

    number, floating = pa.decimal128(*DECIMAL), pa.float64()
    types = psycopg.postgres.types
    plain: dict[str, pa.DataType] = {
        "bool": pa.bool_(),
        "int2": pa.int16(),
        "int4": pa.int32(),
        "int8": pa.int64(),
        "float4": floating,
        "float8": floating,
        "numeric": number,
        "text": pa.string(),
        "date": pa.date32(),
        "timestamptz": pa.timestamp("us", tz="UTC"),
    }
    lists = {types[name].array_oid: pa.list_(kind) for name, kind in plain.items()}
    return {**{types[name].oid: kind for name, kind in plain.items()}, **lists}


_WRITERS: Final[Mapping[Format, Callable[[Sequence[Column], _Counted, Compression, ExitStack], Write]]] = {
    Format.PARQUET: _parquet,
    Format.CSV: _csv,
    Format.JSONL: _jsonl,
}
