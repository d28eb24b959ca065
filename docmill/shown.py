"""What of a document a model is shown: pieces that can be cited, the chunks that prompts are made of, the parts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from docmill.printed import Printed


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of the document that can be cited: a block's text or a cell, where it stands."""

    printed: Printed
    page: int
    table_id: str | None = None
    row: int | None = None
    col: int | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A block as the model reads it, with its length in the model's own tokens and the pieces that it shows.

    For a table, `text` is the whole rendering; `head` its first lines (caption, unit, header) and `foot` its last,
    repeated when the table must be split; `rows` what stands between, each a chunk of its own. Text has no head; a long
    text has sentences as rows.
    """

    text: str
    tokens: int
    page: int
    pieces: tuple[Piece, ...]
    head: str = ""
    head_tokens: int = 0
    head_pieces: tuple[Piece, ...] = ()
    rows: tuple[Chunk, ...] = ()
    foot: str = ""
    foot_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Part:
    """What one prompt shows of a document: within the limit; a table is cut only at a row, its head repeated.

    `referred` are the pages from which text was pulled in because this part refers to it; that text stands at the end.
    """

    text: str
    tokens: int
    pieces: tuple[Piece, ...]
    number: int = 1
    of: int = 1
    referred: tuple[int, ...] = ()


class Why(StrEnum):
    """Why text was left out, in the order in which it goes."""

    TAIL = "tail"
    OLDER_TURNS = "older_turns"
    TEXT = "text"


@dataclass(frozen=True, slots=True)
class Omission:
    """Text of one page that no prompt shows, because the profile's budget had no room for it."""

    page: int
    tokens: int
    text: str
    why: Why


@dataclass(frozen=True, slots=True)
class Shown:
    """A document as it is read: its parts in order, and what they leave out."""

    parts: tuple[Part, ...]
    omitted: tuple[Omission, ...] = ()
