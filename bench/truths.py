"""Correct results, made from documents themselves: cells with their labels and periods, dates, names, quotations.

Nothing here uses the validator. A value is taken from where it stands, so what it is the value of is known; and it is
written in one of the many styles in which a correct answer may be written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, Final

from docmill.types import Cell, PreparedDocument, Table

_AMOUNT: Final = re.compile(r"[-−]?[(（]?[-−]?([1-9][0-9]{0,2}(?:,[0-9]{3})+|0|[1-9][0-9]*)(\.[0-9]+)?[)）]?%?")
_YEAR: Final = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})(?![0-9])")
_DATE: Final = re.compile(
    r"(?<![0-9])(?P<y>(?:19|20)[0-9]{2})年(?P<m>[0-9]{1,2})月(?P<d>[0-9]{1,2})日"
    r"|(?P<mon>January|February|March|April|May|June|July|August|September|October|November|December) "
    r"(?P<day>[0-9]{1,2}), (?P<year>(?:19|20)[0-9]{2})(?![0-9])"
)
_MONTHS: Final = (
    "January February March April May June July August September October November December".split()
)  # fmt: skip
_CODE: Final = re.compile(r"(?<![A-Za-z0-9./-])(?=[A-Z0-9-]*[0-9]{3})[A-Z]{1,4}[A-Z0-9-]{4,20}(?![A-Za-z0-9./-])")
_SENTENCE: Final = re.compile(r"(?:(?<=[.] )|(?<=[。；]))[A-Z\u4e00-\u9fff][^.。；\n]{30,110}(?:\. |。)")
_CAPITALS: Final = "零壹贰叁肆伍陆柒捌玖"

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "company": {"type": ["string", "null"], "x-source": "verbatim"},
        "date": {"type": ["string", "null"], "x-source": "date"},
        "reference": {"type": ["string", "null"], "x-source": "id"},
        "evidence": {"type": ["string", "null"], "x-source": "quote"},
        "items": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "label": {"type": "string", "x-source": "verbatim"},
                    "period": {"type": ["string", "null"]},
                    "amount": {"type": ["string", "number"], "x-source": "number"},
                },
            },
        },
        "level": {"enum": ["low", "medium", "high"]},
        "summary": {"type": "string", "description": "what the document says, in one sentence of your own"},
    },
}


@dataclass(frozen=True, slots=True)
class Truth:
    """An amount where it stands: the words of its row, the year of its column, its neighbours."""

    label: str
    period: str | None
    text: str
    table: Table
    cell: Cell
    right: tuple[str, ...]
    below: tuple[str, ...]
    others: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """What can be said rightly of a document."""

    name: str
    document: PreparedDocument
    chinese: bool
    text: str
    amounts: tuple[Truth, ...]
    dates: tuple[str, ...]
    names: tuple[str, ...]
    codes: tuple[str, ...]
    quotes: tuple[str, ...]


def paper_of(name: str, document: PreparedDocument) -> Paper:
    blocks = [block for page in document.pages for block in page.blocks if block.table is None]
    texts = [block.printed.text for block in blocks]
    text = "\n".join([*texts, *(cell.text for table in document.tables for cell in table.cells)])
    body = "\n".join(texts)
    return Paper(
        name,
        document,
        len(re.findall("[\u4e00-\u9fff]", text)) > len(re.findall("[A-Za-z]+", text)),
        text,
        tuple(truth for table in document.tables for truth in _truths(table)),
        tuple(dict.fromkeys(match.group() for match in _DATE.finditer(body))),
        tuple(dict.fromkeys(_names(texts))),
        tuple(dict.fromkeys(_CODE.findall(body))),
        tuple(match.group().strip() for text in texts for match in _SENTENCE.finditer(" ".join(text.split()))),
    )


def _names(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from re.findall("[\u4e00-\u9fff（）()]{4,24}(?:有限公司|股份有限公司|银行|事务所)", text)
        yield from re.findall(
            r"(?:[A-Z][A-Za-z&.-]+ ){1,4}(?:Inc\.|Ltd\.?|Corporation|Company|Corp\.|Authority|Commission)(?![A-Za-z])",
            text,
        )


def _truths(table: Table) -> Iterator[Truth]:
    """The amounts of a table of which every row has one label and every column one head."""
    grid = {(cell.row, cell.col): cell for cell in table.cells}
    if any(cell.rowspan > 1 or cell.colspan > 1 for cell in table.cells if cell.row >= table.header_rows):
        return
    labels = [grid[row, 0].text.strip() if (row, 0) in grid else "" for row in range(table.rows)]
    for cell in table.cells:
        label = labels[cell.row] if cell.row < len(labels) else ""
        plain = (
            label and "\n" not in label and labels.count(label) == 1 and re.search("[A-Za-z\u4e00-\u9fff]{2}", label)
        )
        if (
            cell.col == 0
            or cell.row < max(table.header_rows, 1)
            or not plain
            or len(label) > 60
            or not _telling(cell.text)
        ):
            continue
        yield Truth(
            label,
            _period(table, grid, cell.col),
            cell.text.strip(),
            table,
            cell,
            tuple(_amounts(grid.get((cell.row, col)) for col in range(1, table.cols) if col != cell.col)),
            tuple(_amounts(grid.get((row, cell.col)) for row in (cell.row + 1, cell.row - 1))),
            tuple(other for other in labels if other and other != label and len(other) <= 60 and "\n" not in other),
        )


def _period(table: Table, grid: Mapping[tuple[int, int], Cell], col: int) -> str | None:
    """The one year in the column's head, if every column with a year has another."""
    if not table.header_rows:
        return None
    heads = {
        c: " ".join(grid[r, c].text for r in range(table.header_rows) if (r, c) in grid) for c in range(table.cols)
    }
    years = {c: _YEAR.findall(head) for c, head in heads.items()}
    mine = years[col]
    several = len({year for found in years.values() for year in found}) > 1
    alone = several and len(mine) == 1 and sum(mine[0] in other for other in years.values()) == 1
    return mine[0] if alone else None


def _amounts(cells: Iterator[Cell | None]) -> Iterator[str]:
    return (cell.text.strip() for cell in cells if cell is not None and _telling(cell.text))


def _telling(text: str) -> bool:
    """An amount of three digits or more that is no year."""
    text = text.strip()
    digits = re.sub("[^0-9]", "", text).strip("0")
    return bool(_AMOUNT.fullmatch(text)) and len(digits) >= 3 and not re.fullmatch("(19|20)[0-9]{2}", text)


def value_of(text: str) -> Decimal:
    """The value of an amount that `_AMOUNT` matches."""
    digits = re.sub("[^0-9.]", "", text)
    return -Decimal(digits) if re.match("[-−(（]", text) else Decimal(digits)


# ---------------------------------------------------------------- a result, in many styles


def result_of(paper: Paper, random: Random) -> tuple[dict[str, Any], list[Truth]]:
    """A correct result on the document, and the truths that its items are of."""
    chosen = random.sample(paper.amounts, min(len(paper.amounts), random.randint(1, 3)))
    dates = random.choice(paper.dates) if paper.dates else None
    return {
        "company": random.choice(paper.names) if paper.names else None,
        "date": styled_date(dates, random) if dates else None,
        "reference": random.choice(paper.codes) if paper.codes else None,
        "evidence": random.choice(paper.quotes) if paper.quotes else None,
        "items": [{"label": one.label, "period": one.period, "amount": styled_amount(one, random)} for one in chosen],
        "level": random.choice(["low", "medium", "high"]),
        "summary": random.choice(_SUMMARIES[paper.chinese]),
    }, chosen


_SUMMARIES: Final = {
    True: ["公司经营情况稳定，需关注负债变化。", "主要指标较上年有所变动。", "文件列示了主要财务数据，未见重大异常。"],
    False: [
        "The figures changed from year to year and call for attention.",
        "The document sets out the main figures of the period.",
        "Liquidity is sound, though costs have risen.",
    ],
}


def styled_date(text: str, random: Random) -> str:
    """The same day in another style."""
    match = _DATE.fullmatch(text)
    if match is None or random.random() < 0.4:
        return text
    year = int(match["y"] or match["year"])
    month = int(match["m"]) if match["m"] else _MONTHS.index(match["mon"]) + 1
    day = int(match["d"] or match["day"])
    return random.choice(
        [
            f"{year}-{month:02}-{day:02}",
            f"{year}年{month}月{day}日",
            f"{day} {_MONTHS[month - 1]} {year}",
            f"{_MONTHS[month - 1]} {day}, {year}",
            f"{year}/{month:02}/{day:02}",
        ]
    )


def styled_amount(truth: Truth, random: Random) -> Any:
    """The same amount in another style, as printed in four of ten."""
    if random.random() < 0.4:
        return truth.text
    styles = [style for style in _STYLES if style(truth) is not None]
    return random.choice(styles)(truth)


def _plain(truth: Truth) -> str | None:
    return None if truth.text.endswith("%") else f"{value_of(truth.text):f}"


def _grouped(truth: Truth) -> str | None:
    return None if truth.text.endswith("%") else f"{value_of(truth.text):,f}"


def _wide(truth: Truth) -> str | None:
    return truth.text.translate({ord(c): ord(c) + 0xFEE0 for c in "0123456789,.%()-"})


def _json(truth: Truth) -> float | None:
    value = value_of(truth.text)
    exact = Decimal(repr(float(value))) == value
    return float(value) if exact and not truth.text.endswith("%") else None


def _brackets(truth: Truth) -> str | None:
    value = value_of(truth.text)
    return f"({-value:,f})" if value < 0 and not truth.text.endswith("%") else None


def _spaces(truth: Truth) -> str | None:
    return _swap(truth, " ")


def _apostrophes(truth: Truth) -> str | None:
    return _swap(truth, "'")


def _swap(truth: Truth, mark: str) -> str | None:
    grouped = _grouped(truth)
    return grouped.replace(",", mark) if grouped and "," in grouped else None


def _fraction(truth: Truth) -> str | None:
    if not truth.text.endswith("%"):
        return None
    return f"{value_of(truth.text.rstrip('%')) / 100:f}"


def _in_full(truth: Truth) -> str | None:
    """The printed number times its table's scale, where no label of the cell speaks of another unit."""
    scale = scale_of(truth)
    return f"{value_of(truth.text) * scale:,.0f}" if scale and scale > 1 else None


def _with_scale(truth: Truth) -> str | None:
    words = {Decimal(10**4): "万元", Decimal(10**8): "亿元", Decimal(10**6): " million", Decimal(1000): " thousand"}
    scale = scale_of(truth)
    return f"{truth.text}{words[scale]}" if scale in words and value_of(truth.text) > 0 else None


def _capitals(truth: Truth) -> str | None:
    """壹佰贰拾叁元肆角伍分, for amounts of a table in 元 that fit below 10,000."""
    value = value_of(truth.text)
    whole = truth.table.unit == "CNY" and scale_of(truth) == 1 and 0 < value < 10_000 and value == round(value, 2)
    return capitals(value) if whole else None


def capitals(value: Decimal) -> str:
    """An amount below 10,000 as a cheque has it."""
    yuan, cents = divmod(int(value * 100), 100)
    text, gap = "", False
    for unit, size in (("仟", 1000), ("佰", 100), ("拾", 10), ("", 1)):
        digit = yuan // size % 10
        if digit:
            text += ("零" if gap and text else "") + _CAPITALS[digit] + unit
        gap = not digit
    jiao, fen = divmod(cents, 10)
    tail = (_CAPITALS[jiao] + "角" if jiao else "零" if fen and text else "") + (_CAPITALS[fen] + "分" if fen else "整")
    return (text + "元" if text else "") + (tail if cents else "整")


_STYLES: Final[Sequence[Callable[[Truth], Any]]] = (
    _plain, _grouped, _wide, _json, _brackets, _spaces, _apostrophes, _fraction, _in_full, _with_scale, _capitals,
)  # fmt: skip
_OTHER_UNITS: Final = re.compile(
    r"[%％率比]|每股|per |股|户|人|数量|rate|ratio|margin|share|yield|number|（|\(|employees|days|年限|倍",
    re.IGNORECASE,
)


def scale_of(truth: Truth) -> Decimal | None:
    """The table's scale, where no label speaks of another unit."""
    table, col = truth.table, truth.cell.col
    heads = [cell.text for cell in table.cells if cell.row < table.header_rows and cell.col in (0, col)]
    if table.scale is None or truth.text.endswith("%") or any(map(_OTHER_UNITS.search, [truth.label, *heads])):
        return None
    return table.scale
