"""The tables that a result takes its values from add up, and so do the values that a rule names.

Found in a table: rows and columns that sum to a (sub)total, opening + in - out = closing, the identities of the
balance sheet and the cash flow, shares of a total. `validation/sums.py` says when a mismatch is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache, partial

from docmill.types import Cell
from validation.case import Case, Hit
from validation.fields import at, expand
from validation.grid import Grid
from validation.grounding import Ground
from validation.numbers import parse_number
from validation.sums import Lines, Relation, Slip, broken, one_slip, rounding

_TOTAL = re.compile(r"^\W*(合\s*计|总\s*计|共\s*计|grand\s+total|total|sum)\W*$", re.IGNORECASE)
_SUM = re.compile(r"合\s*计|总\s*计|共\s*计|小\s*计|总\s*额|\b(?:sub-?\s?)?totals?\b|^net\b|净额$|净值$", re.IGNORECASE)
_SUM_WORDS = ("计", "额", "值", "total", "net")
_NESTED = re.compile(r"小\s*计|其\s*中|减：|减:|加：|加:|sub-?\s?total|of which|less:|net |total", re.IGNORECASE)
#: So many rows above a total are tried as its parts.
_MOST_PARTS = 60
_FEWEST_ROWS = 2

#: Heads of columns that roll forward, with their factors.
_ROLL: Sequence[tuple[int, re.Pattern[str]]] = (
    (1, re.compile(r"^(?:期初|年初|上年年?末|opening|beginning|balance at beginning)", re.IGNORECASE)),
    (1, re.compile(r"^(?:本[期年])?(?:增加|计提|新增|additions?|increases?|in\b|inflows?|credits?)", re.IGNORECASE)),
    (-1, re.compile(r"^(?:本[期年])?(?:减少|转回|转销|disposals?|decreases?|out\b|outflows?|debits?)", re.IGNORECASE)),
    (-1, re.compile(r"^(?:期末|年末|closing|ending|balance at end)", re.IGNORECASE)),
)
#: Rows of statements that make another; an optional one may be missing.
_IDENTITIES: Sequence[tuple[tuple[int, bool, re.Pattern[str]], ...]] = tuple(
    tuple((factor, optional, re.compile(rf"^\W*(?:[一二三四五六七八九十]+、)?(?:{label})\W*$", re.IGNORECASE))
          for factor, optional, label in identity)
    for identity in (
        ((1, False, "负债合计|负债总计|total liabilities"),
         (1, False, "(?:所有者权益|股东权益|所有者权益（或股东权益）|所有者权益[(]或股东权益[)])(?:合计|总计)"
                    "|total (?:stockholders|shareholders|owners)['’]? ?equity|total equity"),
         (-1, False, "资产总计|资产合计|total assets")),
        ((1, False, "经营活动产生的现金流量净额"), (1, False, "投资活动产生的现金流量净额"),
         (1, False, "筹资活动产生的现金流量净额"), (1, True, "汇率变动对现金及现金等价物的影响"),
         (-1, False, "现金及现金等价物净增加额")),
        ((1, False, "(?:加[:：])?期初现金及现金等价物余额"), (1, False, "现金及现金等价物净增加额"),
         (-1, False, "期末现金及现金等价物余额")),
        ((1, False, "营业收入|revenues?|net sales|total revenues?"),
         (-1, False, "营业成本|cost of (?:sales|revenues?|goods sold)|total cost of (?:sales|revenues?)"),
         (-1, False, "毛利|gross (?:profit|margin)")),
    )
)  # fmt: skip
_SHARE = re.compile(r"占比|比例|比重|构成|share|% of|percent", re.IGNORECASE)


def totals(case: Case) -> Iterator[Hit]:
    """A table of the result whose rows or columns do not make the total that they stand for."""
    return _hits(case, "totals", lambda rows, columns: [*_slips(rows, _row_totals(rows)), *_column_slips(columns)])


def rolls(case: Case) -> Iterator[Hit]:
    """A row where opening + in - out is not closing."""
    return _hits(case, "rolls", lambda _, columns: _slips(columns, ((one, False) for one in _rolls(columns.grid))))


def identities(case: Case) -> Iterator[Hit]:
    """A balance sheet or cash flow whose identity does not hold."""
    return _hits(case, "identities", lambda rows, _: _slips(rows, ((one, True) for one in _identities(rows.grid))))


def shares(case: Case) -> Iterator[Hit]:
    """A percentage of a total that is not the amount beside it over the total, where the other rows' are."""
    for grid in _grids(case):
        for amounts, percents in _share_columns(grid):
            for cell, expected in _wrong_shares(grid, amounts, percents):
                yield _hit(case, cell, expected)


def sums(case: Case, *, total: str, plus: Sequence[str], minus: Sequence[str] = ()) -> Iterator[Hit]:
    """The value at `total` is what the values at `plus` less those at `minus` make; `*` stands for every item."""
    whole = _value(case, total)
    parts = [(factor, _value(case, path)) for factor, paths in ((1, plus), (-1, minus)) for path in _paths(case, paths)]
    if whole is None or not parts or any(value is None for _, value in parts):
        return
    made = sum((factor * value for factor, value in parts if value is not None), Decimal(0))
    if abs(made - whole) > rounding([whole, *(value for _, value in parts if value is not None)]):
        yield Hit(path=total, text=str(at(case.extraction.result, total)), detail=f"{made:,f}")


def total_left_out(case: Case, *, each: str, value: str) -> Iterator[Hit]:
    """A list that holds every row of a table's column but its total."""
    entries = at(case.extraction.result, each)
    count = len(entries) if isinstance(entries, list) else 0
    places = [case.places.get(f"{each}/{index}/{value}") for index in range(count)]
    cells = [(p.piece.table_id, p.piece.row, p.piece.col) for p in places if p and p.piece.table_id]
    for identity, col in {(table, col) for table, _, col in cells}:
        grid = case.facts.grids[identity or ""]
        taken = {row for table, row, at_col in cells if (table, at_col) == (identity, col)}
        rows = [row for row in range(grid.head_rows, grid.table.rows) if grid.number(row, col or 0)]
        totals_of = [row for row in rows if _TOTAL.match(_label(grid, row))]
        if len(rows) > _FEWEST_ROWS and totals_of and {*rows} - taken == {*totals_of}:
            yield Hit(path=each, text=_label(grid, totals_of[-1]), detail=grid.text(totals_of[-1], col or 0))


# ---------------------------------------------------------------- relations


def _row_totals(lines: Lines) -> Iterator[tuple[Relation, bool]]:
    """For each total row the rows that make it: those of a plain table surely, else the run that fits a column."""
    grid = lines.grid
    labels = [_label(grid, row) for row in range(grid.table.rows)]
    first = next((row for row in range(grid.head_rows, len(labels)) if _TOTAL.match(labels[row])), None)
    plain = first is not None and not any(_NESTED.search(label) for label in labels[grid.head_rows : first])
    for row in (row for row in range(grid.head_rows + _FEWEST_ROWS, len(labels)) if _is_sum(labels[row])):
        if row == first and plain:
            # More than one column must bear it out where a column might be an average.
            yield {part: 1 for part in range(grid.head_rows, row)} | {row: -1}, True
            continue
        fitting = _fitting(grid, lines, labels, row)
        if fitting:
            yield fitting, False


@lru_cache(1024)
def _is_sum(label: str) -> bool:
    """Whether a label is that of a total; the words are looked for first, as the pattern is slow to fail."""
    lower = label.lower()
    return any(word in lower for word in _SUM_WORDS) and _SUM.search(label) is not None


def _fitting(grid: Grid, lines: Lines, labels: Sequence[str], row: int) -> Relation | None:
    """The run of rows above that makes the row in some column: with all rows, or without the totals among them."""
    lowest = max(grid.head_rows, row - _MOST_PARTS)
    above = [part for part in range(row - 1, lowest - 1, -1)]
    others = [part for part in above if _is_sum(labels[part])]
    leaves = [part for part in above if part not in others]
    for place in lines.places:
        for run in (leaves, others, above):
            found = _run(lines, run, row, place)
            if found:
                return found
    return None


def _run(lines: Lines, run: Sequence[int], row: int, place: int) -> Relation | None:
    """The shortest beginning of a run that makes the row at a place, of at least two numbers."""
    here = lines.at(place)
    whole = here[row]
    if whole is None or whole.cell is None or not whole.value:
        return None
    total, printed = Decimal(0), 0
    for length, part in enumerate(run, 1):
        one = here[part]
        if one is None:
            continue
        total, printed = total + one.value, printed + bool(one.cell)
        if printed >= _FEWEST_ROWS and total == whole.value:
            return dict.fromkeys(sorted(run[:length]), 1) | {row: -1}
    return None


def _column_totals(grid: Grid) -> Iterator[Relation]:
    heads = [" ".join(grid.heads(grid.head_rows, col)) for col in range(grid.table.cols)]
    for col in range(_FEWEST_ROWS + 1, grid.table.cols):
        if _TOTAL.match(heads[col]):
            yield dict.fromkeys(range(1, col), 1) | {col: -1}


def _rolls(grid: Grid) -> Iterator[Relation]:
    """The columns that roll forward: opening and closing, and what comes in and goes out between them."""
    heads = [(col, head) for col in range(1, grid.table.cols) for head in grid.heads(grid.head_rows, col)[-1:]]
    found: dict[int, int] = {}
    for factor, pattern in _ROLL:
        found |= {col: factor for col, head in heads if col not in found and pattern.search(head)}
    opening = any(_ROLL[0][1].search(head) for col, head in heads if col in found)
    closing = next((col for col, head in heads if col in found and _ROLL[3][1].search(head)), None)
    if opening and closing is not None and len(found) >= 3:
        yield {col: factor for col, factor in found.items() if col != closing} | {closing: -1}


def _identities(grid: Grid) -> Iterator[Relation]:
    labels = {row: _label(grid, row) for row in range(grid.head_rows, grid.table.rows)}
    for identity in _IDENTITIES:
        rows = [(factor, optional, _only(pattern, labels)) for factor, optional, pattern in identity]
        if all(optional or row is not None for _, optional, row in rows):
            relation = {row: factor for factor, _, row in rows if row is not None}
            if len(relation) >= 3:
                yield relation


def _only(pattern: re.Pattern[str], labels: Mapping[int, str]) -> int | None:
    rows = [row for row, label in labels.items() if pattern.match(label)]
    return rows[0] if len(rows) == 1 else None


# ---------------------------------------------------------------- shares


def _share_columns(grid: Grid) -> Iterator[tuple[int, int]]:
    """A column of percentages, and the column to its left that they may be shares of."""
    for col in range(2, grid.table.cols):
        head = " ".join(grid.heads(grid.head_rows, col))
        if _SHARE.search(head):
            yield col - 1, col


def _wrong_shares(grid: Grid, amounts: int, percents: int) -> Iterator[tuple[Cell, Decimal]]:
    rows = range(grid.head_rows, grid.table.rows)
    total_row = next((row for row in rows if _TOTAL.match(_label(grid, row))), None)
    lines = Lines(grid)
    total = lines.amount(total_row, amounts) if total_row is not None else None
    if total is None or not total.value:
        return
    judged = []
    for row in rows:
        amount, share = lines.amount(row, amounts), lines.amount(row, percents)
        if amount and share and amount.cell and share.cell and row != total_row:
            judged.append((share, amount.value / total.value * 100))
    wrong = [
        (share, expected) for share, expected in judged if abs(share.value - expected) > rounding([share.value]) * 2
    ]
    if len(judged) - len(wrong) >= 3 and len(wrong) == 1:
        share, exact = wrong[0]
        expected = exact.quantize(share.value)
        if share.cell and one_slip(share.value, expected):
            yield share.cell, expected


# ---------------------------------------------------------------- hits


def _grids(case: Case) -> list[Grid]:
    """The tables that values of the result stand in."""
    tables = {place.piece.table_id: None for place in case.places.values() if place.piece.table_id}
    tables |= {citation.table_id: None for citation in case.extraction.citations if citation.table_id}
    return [case.facts.grids[identity] for identity in tables if identity in case.facts.grids]


def _hits(case: Case, kind: str, find: Callable[[Lines, Lines], list[Slip]]) -> Iterator[Hit]:
    """The slips of the result's tables; a table's are the document's, and found once."""
    for grid in _grids(case):
        lines = case.facts.once(("lines", grid.table.table_id), partial(_lines, grid))
        for slip in case.facts.once((kind, grid.table.table_id), partial(find, *lines)):
            yield _hit(case, slip.cell, slip.expected, slip)


def _lines(grid: Grid) -> tuple[Lines, Lines]:
    """Its rows, and its columns."""
    return Lines(grid), Lines(grid, across=True)


def _slips(lines: Lines, relations: Iterator[tuple[Relation, bool]]) -> list[Slip]:
    """The slips of all relations, one for each cell."""
    found = (slip for relation, sure in relations for slip in broken(lines, relation, sure=sure))
    return list({id(slip.cell): slip for slip in found}.values())


def _column_slips(columns: Lines) -> list[Slip]:
    return _slips(columns, ((relation, False) for relation in _column_totals(columns.grid)))


def _hit(case: Case, cell: Cell, expected: Decimal, slip: Slip | None = None) -> Hit:
    path = _path(case, [cell]) or (_path(case, slip.cells) if slip else None)
    return Hit(path=path, text=cell.text, detail=f"{expected:,f}", page=cell.page, bbox=cell.bbox)


def _path(case: Case, cells: Sequence[Cell]) -> str | None:
    """The field whose value stands in one of the cells."""
    printed = {id(cell.printed) for cell in cells}
    return next((path for path, place in case.places.items() if id(place.piece.printed) in printed), None)


def _label(grid: Grid, row: int) -> str:
    return grid.text(row, 0)


def _paths(case: Case, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield from expand(case.extraction.result, path)


def _value(case: Case, path: str) -> Decimal | None:
    for grounding in case.grounded:
        if grounding.leaf.path == path and grounding.ground == Ground.FOUND:
            number = grounding.number_at(case.cited(path))
            return number.value if number else None
    number = parse_number(str(at(case.extraction.result, path) or ""))
    return number.value if number else None
