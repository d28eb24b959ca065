"""Reading order: columns, rows and paragraphs of what is left of a page when its tables are taken out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Final

from docmill.types import BBox, Block, BlockKind, Printed, Table
from preprocess.glyphs import Line
from preprocess.headings import is_heading
from preprocess.join import is_cjk, joined, rows_of, rows_printed, text_seam

#: A column has at least so many lines, at the median so wide (in units of the font size) and so full.
COLUMN_LINES: Final = 5
COLUMN_EMS: Final = 11.0
COLUMN_FILL: Final = 0.5
#: Points between two columns of print.
GUTTER: Final = 8.0
_MAX_DEPTH: Final = 4
#: A number or a bullet set apart before its paragraph makes no column.
_LABEL: Final = re.compile(r"^\S{1,8}  (?=\S.{20})")
_LINE_END: Final = ".:;!?。：；！？"
#: Lines that reach this share of the mirrored left margin reach the right margin.
_FULL_LINE: Final = 0.8


@dataclass(frozen=True, slots=True)
class Row:
    """One printed row in reading order, its characters packed. `run` numbers the column or band it belongs to."""

    printed: Printed
    bbox: BBox
    size: float
    bold: bool
    run: int
    segments: int = 1
    confidence: float = 1.0

    @property
    def text(self) -> str:
        return self.printed.text


Item = Row | Table


def box_of(item: Line | Row | Table) -> BBox:
    """Where the item stands (a table: on its first page)."""
    return item.regions[0].bbox if isinstance(item, Table) else item.bbox


def in_reading_order(lines: Sequence[Line], tables: Sequence[Table]) -> list[Item]:
    """Rows and tables of a page in the order in which a reader takes them."""
    out: list[Item] = []
    for number, run in enumerate(_runs([*lines, *tables], 0)):
        out.extend(_run_items(run, number))
    return out


def _run_items(run: list[Line | Table], number: int) -> list[Item]:
    tables = [item for item in run if isinstance(item, Table)]
    lined = rows_of([item for item in run if isinstance(item, Line)])
    texts = rows_printed(lined, segment="  ")
    rows: list[Item] = [_row(lines, printed, number) for lines, printed in zip(lined, texts, strict=True)]
    return sorted([*rows, *tables], key=lambda item: _middle(box_of(item))) if tables else rows


def _row(lines: list[Line], printed: Printed, run: int) -> Row:
    box = lines[0].bbox
    for line in lines[1:]:
        box = box.union(line.bbox)
    bold = all(line.bold for line in lines)
    segments = _LABEL.sub("", printed.text).count("  ") + 1
    confidence = min(line.confidence for line in lines)
    return Row(printed, box, max(line.size for line in lines), bold, run, segments, confidence)


def _middle(box: BBox) -> float:
    return (box.y0 + box.y1) / 2


# ---------------------------------------------------------------- columns


def _runs(items: list[Line | Table], depth: int) -> list[list[Line | Table]]:
    """Split at gutters, again and again; each run is then read row by row."""
    gutter = find_gutter(items) if depth < _MAX_DEPTH else None
    if gutter is None:
        return [items] if items else []
    runs: list[list[Line | Table]] = []
    band: list[Line | Table] = []
    across: list[Line | Table] = []
    for item in sorted(items, key=lambda one: _middle(box_of(one))):
        crosses = box_of(item).x0 < gutter < box_of(item).x1
        if crosses and band:
            runs.extend(_sides(band, gutter, depth))
            band = []
        if not crosses and across:
            runs.append(across)
            across = []
        (across if crosses else band).append(item)
    return [*runs, *([across] if across else []), *_sides(band, gutter, depth)]


def _sides(band: list[Line | Table], gutter: float, depth: int) -> list[list[Line | Table]]:
    left = [item for item in band if box_of(item).x1 <= gutter]
    right = [item for item in band if box_of(item).x1 > gutter]
    return [*_runs(left, depth + 1), *_runs(right, depth + 1)]


def find_gutter(items: Sequence[Line | Table]) -> float | None:
    """The x at which the items part into columns of running text, or None.

    Rows of labels and values have gaps too; they are read across, so both sides must look like prose.
    """
    if len(items) < 2 * COLUMN_LINES:
        return None
    boxes = [box_of(item) for item in items]
    left, right = min(box.x0 for box in boxes), max(box.x1 for box in boxes)
    few = max(1, len(items) // 5)
    best: tuple[float, float] | None = None
    for start, stop in _gaps(boxes, left, right, few):
        middle = (start + stop) / 2
        if stop - start >= GUTTER and (best is None or stop - start > best[0]) and _parts_prose(items, middle):
            best = (stop - start, middle)
    return best[1] if best else None


def _gaps(boxes: Sequence[BBox], left: float, right: float, few: int) -> list[tuple[float, float]]:
    """Stretches of the width that no more than a few items cross."""
    cover = [0] * (int(right - left) + 2)
    for box in boxes:
        cover[int(box.x0 - left)] += 1
        cover[min(len(cover) - 1, int(box.x1 - left) + 1)] -= 1
    gaps, depth, start = [], 0, -1
    for position, change in enumerate(cover):
        depth += change
        if depth <= few and start < 0:
            start = position
        elif depth > few and start >= 0:
            gaps.append((left + start, left + position))
            start = -1
    return [gap for gap in gaps if gap[0] > left + 1]


def _parts_prose(items: Sequence[Line | Table], x: float) -> bool:
    left = [item for item in items if box_of(item).x1 <= x]
    right = [item for item in items if box_of(item).x0 >= x]
    if not (_is_prose(left) and _is_prose(right)):
        return False
    tops = max(min(box_of(item).y0 for item in side) for side in (left, right))
    bottoms = min(max(box_of(item).y1 for item in side) for side in (left, right))
    return bottoms - tops > 0


def _is_prose(side: Sequence[Line | Table]) -> bool:
    lines = [item for item in side if isinstance(item, Line)]
    if len(lines) < COLUMN_LINES:
        return False
    width = max(line.bbox.x1 for line in lines) - min(line.bbox.x0 for line in lines)
    fill = median(line.bbox.x1 - line.bbox.x0 for line in lines) / max(1.0, width)
    ems = median((line.bbox.x1 - line.bbox.x0) / max(1.0, line.size) for line in lines)
    return fill >= COLUMN_FILL and ems >= COLUMN_EMS


# ---------------------------------------------------------------- paragraphs


@dataclass(frozen=True, slots=True)
class Setting:
    """How a page is set, as far as blocks need it."""

    page: int
    width: float
    body_size: float
    source: str = "text"
    confidence: float | None = None


def blocks_of(items: Sequence[Item], setting: Setting) -> list[Block]:
    """Rows into headings and paragraphs, in place; tables as they are."""
    blocks: list[Block] = []
    margins = _right_margins(items, setting.width)
    for group in _groups(items):
        if isinstance(group, Table):
            box = box_of(group)
            blocks.append(
                Block(BlockKind.TABLE, setting.page, box, Printed(""), group, setting.source, setting.confidence)
            )
        else:
            blocks.append(_block(group, margins[group[0].run], setting))
    return blocks


def _right_margins(items: Sequence[Item], width: float) -> dict[int, float]:
    """Where the lines of each run end at the latest. A page of short lines only is taken to have equal margins."""
    rows = [item for item in items if isinstance(item, Row)]
    margins: dict[int, float] = {}
    for row in rows:
        margins[row.run] = max(margins.get(row.run, 0.0), row.bbox.x1)
    if len(margins) == 1:
        mirrored = width - min(row.bbox.x0 for row in rows)
        return {run: edge if edge > _FULL_LINE * mirrored else mirrored for run, edge in margins.items()}
    return margins


def _groups(items: Sequence[Item]) -> list[list[Row] | Table]:
    pitch = _pitches(items)
    groups: list[list[Row] | Table] = []
    for item in items:
        last = groups[-1] if groups else None
        if isinstance(item, Row) and isinstance(last, list) and _continues(last, item, pitch(item.run)):
            last.append(item)
        else:
            groups.append([item] if isinstance(item, Row) else item)
    return groups


def _pitches(items: Sequence[Item]) -> Callable[[int], float]:
    """The usual distance from row to row in each run."""
    steps: dict[int, list[float]] = {}
    for one, other in pairwise(items):
        if isinstance(one, Row) and isinstance(other, Row) and one.run == other.run:
            step = other.bbox.y1 - one.bbox.y1
            if 0 < step < 3 * other.size:
                steps.setdefault(other.run, []).append(step)
    usual = {run: median(values) for run, values in steps.items()}
    return lambda run: usual.get(run, 0.0)


def _continues(rows: list[Row], row: Row, pitch: float) -> bool:
    """Whether the row goes on with the paragraph."""
    last = rows[-1]
    if row.run != last.run or row.bold != last.bold or abs(row.size - last.size) > 0.1 * last.size:
        return False
    step = row.bbox.y1 - last.bbox.y1
    if step > max(1.3 * pitch, 1.15 * row.size) or step < 0:
        return False
    left = min(one.bbox.x0 for one in rows)
    return len(rows) == 1 or row.bbox.x0 <= left + 1.2 * row.size


def _block(rows: list[Row], margin: float, setting: Setting) -> Block:
    box = rows[0].bbox
    for row in rows[1:]:
        box = box.union(row.bbox)
    printed = _paragraph(rows, margin)
    size, bold = rows[0].size, rows[0].bold
    heading = is_heading(printed.text, rows=len(rows), size=size, bold=bold, body_size=setting.body_size)
    kind = BlockKind.HEADING if heading else BlockKind.PARAGRAPH
    confidence = min(row.confidence for row in rows) if setting.source == "ocr" else None
    return Block(kind, setting.page, box, printed, source=setting.source, confidence=confidence)


def _paragraph(rows: Sequence[Row], margin: float) -> Printed:
    """The rows' text with what joins them: a row that ends early, or has columns, ends a line."""
    parts: list[Printed | str] = [rows[0].printed]
    for last, row in pairwise(rows):
        glue = "\n" if _ends_line(last, row, margin) else text_seam(last.text, row.text)
        if glue is None:
            parts[-1] = Printed(last.text[:-1], last.printed.boxes[:-16])
        parts += [glue or "", row.printed]
    return joined(parts)


def _ends_line(row: Row, following: Row, margin: float) -> bool:
    """Whether the writer ended the line: the next row's first word would have had room."""
    if row.segments > 1 or following.segments > 1:
        return True
    if following.text[0].islower() and row.text[-1] not in _LINE_END:
        return False
    return margin - row.bbox.x1 > _first_word(following) + row.size


def _first_word(row: Row) -> float:
    """The width of what a line break could not part: a word, or a Chinese character with its punctuation."""
    stop = row.text.find(" ")
    stop = len(row.text) if stop < 0 else stop
    stop = next((index for index, char in enumerate(row.text[:stop]) if is_cjk(char)), stop)
    box = row.printed.box(0, max(1, stop))
    return (box.x1 - box.x0 if box else 0.0) + (row.size if is_cjk(row.text[0]) else 0.0)
