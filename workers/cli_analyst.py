"""`docmill query|export|search|history|analyst`: the results database for those who read it."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from rich.table import Table
from rich.text import Text

from storage.export import Compression, Format, Written
from workers.console import errors as _err
from workers.console import tables as _out

if TYPE_CHECKING:
    from sqlalchemy import Engine

#: What a CSV or JSON line may be packed with, by the end of its name.
_PACKED = {".gz": Compression.GZIP, ".zst": Compression.ZSTD}
_FOUND = ("name", "document_id", "page", "text")
_STORY = ("no", "text", "changed_by", "valid_from", "profile_version", "model", "parser", "ruleset", "reviewer", "note")

Statement = Annotated[str, typer.Argument(help='One SQL statement on the views: "SELECT … FROM v_fields …"')]
Timeout = Annotated[float, typer.Option(help="Seconds after which the database gives up.")]
Limit = Annotated[int, typer.Option(help="Rows shown at most.")]


def query(statement: Statement, limit: Limit = 1000, timeout: Timeout = 60.0) -> None:
    """Run a read-only query on the analysts' views and print its answer as a table."""
    from storage.queries import asking

    with _database() as database, asking(database, statement, timeout_s=timeout) as answer:
        rows = list(islice(answer.rows, limit + 1))
        _show([column.name for column in answer.columns], rows[:limit])
    if len(rows) > limit:
        _err.print(f"only the first {limit} rows are shown: raise --limit, or use `docmill export`")


def export(
    source: Annotated[str, typer.Argument(help="A view (v_fields) or a SELECT on the views.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="NAME.parquet, NAME.csv, NAME.jsonl, the last two also .gz or .zst; - .")
    ],
    form: Annotated[Format | None, typer.Option("--format", "-f", help="Else by the file's name.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", "-t", help="Rows of one tenant only (of a view).")] = "",
    timeout: Annotated[float, typer.Option(help="Seconds after which the database gives up.")] = 3600.0,
) -> None:
    """Write the rows of a view or a query to a file, a few thousand at a time, however many there are."""
    from storage.export import export as write
    from storage.queries import asking

    kind, packed = form or _format_of(out), _PACKED.get(out.suffix, Compression.NONE)
    statement, values = _statement(source, tenant)
    with _database() as database, asking(database, statement, values, timeout_s=timeout) as answer:
        written = _into(out, lambda target: write(answer, target, kind, packed))
    _err.print(f"{written.rows} rows, {written.bytes} bytes in {out}")


def search(
    words: Annotated[str, typer.Argument(help='Words that a page must have; "a phrase"; 净利润.')],
    tenant: Annotated[str, typer.Option("--tenant", "-t", help="Of one tenant only.")] = "",
    limit: Limit = 20,
) -> None:
    """Find pages by what is printed on them, in Chinese and English."""
    from storage.queries import asking

    statement = """
        SELECT name, document_id, page,
            ts_headline('english', docmill_apart(text), docmill_query(%(words)s), 'MaxWords=24, MinWords=12') AS text
        FROM v_pages
        WHERE terms @@ docmill_query(%(words)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)
        ORDER BY ts_rank(terms, docmill_query(%(words)s)) DESC, document_id, page
        LIMIT %(limit)s
    """
    with (
        _database() as database,
        asking(database, statement, {"words": words, "tenant": tenant or None, "limit": limit}) as answer,
    ):
        _show(_FOUND, [(*row[:-1], _marked(row[-1])) for row in answer.rows])


def history(
    job_id: Annotated[str, typer.Argument(help="The job.")],
    path: Annotated[str, typer.Argument(help="The value, as a JSON pointer: /amount.")],
) -> None:
    """What a value was and is over all readings of its document, and why it changed."""
    from storage.queries import asking

    statement = f"""
        SELECT {", ".join(_STORY)} FROM v_lineage
        WHERE path = %(path)s
            AND (document_id, profile) = (SELECT document_id, profile FROM v_latency WHERE job_id = %(job_id)s)
        ORDER BY no
    """
    with _database() as database, asking(database, statement, {"job_id": job_id, "path": path}) as answer:
        rows = list(answer.rows)
    if not rows:
        _err.print(f'{job_id} has no value at {path}; `docmill query "SELECT path FROM v_fields"` lists them')
        raise typer.Exit(1)
    _show(_STORY, rows)


def analyst(name: Annotated[str, typer.Argument(help="Login name; an existing one gets a new password.")]) -> None:
    """Make a database login that reads the views and nothing else; prints its URL, with the password, once."""
    from storage.queries import make_analyst, url_for

    password = secrets.token_urlsafe(24)
    with _database() as database:
        with database.begin() as connection:
            make_analyst(connection, name, password)
        typer.echo(url_for(database, name, password))


def register(main: typer.Typer) -> None:
    """Add the commands."""
    for command in (query, export, search, history, analyst):
        main.command()(command)


@contextmanager
def _database() -> Iterator[Engine]:
    from storage.database import connect
    from workers.cli import use_running_stack
    from workers.settings import settings

    use_running_stack()
    database = connect(settings().database_url)
    try:
        yield database
    finally:
        database.dispose()


def _format_of(out: Path) -> Format:
    suffixes = [suffix for suffix in out.suffixes if suffix not in _PACKED]
    kind = suffixes[-1].removeprefix(".") if suffixes else ""
    if kind not in set(Format):
        raise typer.BadParameter(f"{out} says no format: end it in .parquet, .csv or .jsonl, or give --format")
    return Format(kind)


def _statement(source: str, tenant: str) -> tuple[str, dict[str, Any] | None]:
    """A view's rows in its own order, or the query as it stands."""
    if not source.isidentifier():
        if tenant:
            raise typer.BadParameter("--tenant is for a view: write WHERE tenant = '…' in the query")
        return source, None
    if tenant:
        return f'SELECT * FROM "{source}" WHERE tenant = %(tenant)s', {"tenant": tenant}
    return f'SELECT * FROM "{source}"', None


def _into(out: Path, write: Callable[[BinaryIO], Written]) -> Written:
    """To stdout for `-`; else to a file that has its name only once it is whole."""
    if str(out) == "-":
        return write(sys.stdout.buffer)
    part = out.with_name(f".{out.name}.part")
    try:
        with part.open("wb") as target:
            written = write(target)
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    return written


def _show(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(title=f"{len(rows)} rows", header_style="bold", pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    _out.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(_cell(one) for one in value)
    return f"{value:f}" if hasattr(value, "as_tuple") else str(value)


def _marked(headline: str) -> str:
    """The headline with its marks as brackets, and Chinese without the spaces that parted its characters."""
    shown = headline.replace("<b>", "[").replace("</b>", "]")
    return "".join(_closed_up(shown)).replace("][", "")


def _closed_up(text: str) -> list[str]:
    out: list[str] = []
    for place, char in enumerate(text):
        around = text[max(0, place - 2) : place + 3]
        if char != " " or not any("\u3400" <= one <= "\u9fff" for one in around):
            out.append(char)
    return out
