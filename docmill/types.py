"""The values that the stages hand to each other, in the order in which they flow.

Every value is frozen and pure: identity, keys and clocks belong to storage. A page counts from 1; a box is in PDF
points from the top left of the page as a reader sees it (after /Rotate); rows and columns count from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from docmill.printed import BBox, Printed, Region
from docmill.shown import Chunk, Omission, Part, Piece, Shown, Why
from docmill.words import TERMINAL, Heat, LengthClass, Source, Status

__all__ = [  # noqa: RUF022  # in flow order; the first eight are here so that callers need one module
    "BBox",
    "Printed",
    "Region",
    "TERMINAL",
    "Status",
    "Heat",
    "LengthClass",
    "Source",
    "Document",
    "BlockKind",
    "Cell",
    "Table",
    "Block",
    "Page",
    "Piece",
    "Chunk",
    "MissingPage",
    "PreparedDocument",
    "Part",
    "Why",
    "Omission",
    "Shown",
    "Route",
    "Citation",
    "Usage",
    "Extraction",
    "Outcome",
    "Finding",
    "FieldValue",
    "Verdict",
    "Record",
]

# ---------------------------------------------------------------- ingest


@dataclass(frozen=True, slots=True)
class Document:
    """A PDF that was accepted: its bytes are in the blob store, its name is its content.

    `document_id` is derived from tenant and sha256, so the same bytes through any door are the same document.
    """

    document_id: str
    tenant: str
    sha256: str
    size_bytes: int
    name: str
    source: Source


# ---------------------------------------------------------------- preprocess


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    TABLE = "table"
    CAPTION = "caption"
    HEADER = "header"
    FOOTER = "footer"
    FOOTNOTE = "footnote"
    FORM_FIELD = "form_field"
    ANNOTATION = "annotation"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table; `page` and `bbox` say where it stands, `also` where the rest of it does, if a page break
    parts it (the characters there have no box).
    """

    row: int
    col: int
    printed: Printed
    page: int
    bbox: BBox | None
    rowspan: int = 1
    colspan: int = 1
    header: bool = False
    also: tuple[Region, ...] = ()

    @property
    def text(self) -> str:
        return self.printed.text


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whole: joined over page breaks, its header kept once, its unit and scale tied to it.

    `scale` multiplies the printed numbers (万元: 10000, "in thousands": 1000); None means that none was printed.
    `reader` names the method that found the table; `confidence` is the share of its figures on which a second reading
    agrees with it (None: too few to tell).
    """

    table_id: str
    cells: tuple[Cell, ...]
    rows: int
    cols: int
    regions: tuple[Region, ...]
    reader: str
    header_rows: int = 0
    caption: str | None = None
    unit: str | None = None
    scale: Decimal | None = None
    confidence: float | None = None

    @property
    def pages(self) -> tuple[int, ...]:
        return tuple(dict.fromkeys(region.page for region in self.regions))


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a page in reading order. A table block holds its table and no text of its own.

    `source` is "text" (the PDF's own text layer), "ocr" (then with a `confidence`), or "ocr_layer" (a scan's own,
    unverified). `continues`: it goes on with the last paragraph of the page before. `label` names a field, or says the
    kind and author of an annotation.
    """

    kind: BlockKind
    page: int
    bbox: BBox
    printed: Printed
    table: Table | None = None
    source: str = "text"
    confidence: float | None = None
    continues: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A page as seen: width and height in points after /Rotate. `source`: that of its blocks, or "empty".

    `hidden` is text of the file that a reader of the page does not see (white, tiny, invisible): kept, and never shown
    to the model or taken as proof.
    """

    number: int
    width: float
    height: float
    blocks: tuple[Block, ...]
    source: str = "text"
    hidden: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class MissingPage:
    """A page that a document has and its reading has not; `code` is that of the error which would have told it."""

    page: int
    code: str
    reason: str


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A parsed document: pages with blocks and tables, the chunks that a prompt is made of, a MinHash signature.

    `tokens` is the length of all chunks; `signature` packs 128 little-endian uint32, empty for a text too short to
    compare; `warnings` says in words what is doubtful, `missing` which pages were not read.
    """

    document_id: str
    pages: tuple[Page, ...]
    chunks: tuple[Chunk, ...]
    tokens: int
    signature: bytes
    parser: str
    warnings: tuple[str, ...] = ()
    missing: tuple[MissingPage, ...] = ()

    @property
    def partial(self) -> bool:
        return bool(self.missing)

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(block.table for page in self.pages for block in page.blocks if block.table is not None)


# ---------------------------------------------------------------- inference


@dataclass(frozen=True, slots=True)
class Route:
    """Where a job is read and how soon. `priority` is 0 (P0, at once) to 3 (P3, when idle)."""

    heat: Heat
    length_class: LengthClass
    priority: int
    lane: str
    queue: str
    hot_score: float


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a value of a result is printed. `path` is a JSON pointer into the result."""

    path: str
    text: str
    page: int
    bbox: BBox
    table_id: str | None = None
    row: int | None = None
    col: int | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one attempt used: tokens, milliseconds by phase, its share of the GPU's time, its price in dollars."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    queue_ms: float = 0.0
    prefill_ms: float = 0.0
    decode_ms: float = 0.0
    cost_usd: Decimal = Decimal(0)
    gpu_seconds: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Extraction:
    """What the model read: the result as JSON (values as printed), where each grounded value stands, what it took.

    `findings` are what reading itself has to say (parts that disagree); `omitted` is what no prompt showed, each text
    by its beginning; `longest_output` is the longest answer to one prompt, in tokens.
    """

    result: dict[str, Any]
    citations: tuple[Citation, ...]
    usage: Usage
    engine: str
    model: str
    precision: str
    prompt_sha256: str
    seed: int
    finish_reason: str
    raw: str
    parts: int = 1
    findings: tuple[Finding, ...] = ()
    omitted: tuple[Omission, ...] = ()
    longest_output: int = 0


# ---------------------------------------------------------------- validation


class Outcome(StrEnum):
    """What a rule or a whole validation says, mildest first."""

    PASS = "pass"
    FLAG = "flag"
    REVIEW = "review"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a rule found; `path` is a JSON pointer into the result."""

    rule: str
    outcome: Outcome
    message: str
    path: str | None = None
    page: int | None = None
    bbox: BBox | None = None


@dataclass(frozen=True, slots=True)
class FieldValue:
    """One value of a result for analysts: as printed, and normalised where it is a number or a date.

    `value` is the printed number with sign, `scale` applied once (5.2 with scale 10000 has value 52000). `confidence`
    is how sure it is that this is the right value, 0 to 1; None where nothing tells.
    """

    path: str
    text: str
    value: Decimal | None = None
    date: date | None = None
    unit: str | None = None
    scale: Decimal | None = None
    page: int | None = None
    bbox: BBox | None = None
    table_id: str | None = None
    row: int | None = None
    col: int | None = None
    verdict: Outcome = Outcome.PASS
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The judgement on an extraction: the worst outcome of its findings, and its values normalised."""

    outcome: Outcome
    findings: tuple[Finding, ...]
    fields: tuple[FieldValue, ...]
    ruleset: str


# ---------------------------------------------------------------- storage


@dataclass(frozen=True, slots=True)
class Record:
    """A job as storage keeps it: what a door may show of it."""

    job_id: str
    document_id: str
    tenant: str
    profile: str
    profile_version: str
    status: Status
    attempt: int
    reason: str | None
    heat: Heat | None
    length_class: LengthClass | None
    priority: int | None
    lane: str | None
    hot_score: float | None
    pages: int | None
    tables: int | None
    tokens: int | None
    created_at: datetime
    finished_at: datetime | None
    result: dict[str, Any] | None = None
    findings: tuple[Finding, ...] = field(default=())
