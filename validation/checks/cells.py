"""A number stands in the right cell: under the period that its field speaks of, in the row that its name speaks of.

"The number is somewhere in the document" lets last year's figure pass for this year's. What a field speaks of is said
by its name (net_profit_2024), by a field beside it (period, year), by its label, or by the date of the whole result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path

import yaml

from validation.aligned import heads_above
from validation.case import Case, Hit, hit_at
from validation.columns import Heading, heading_of
from validation.dates import parse_date
from validation.facts import Facts
from validation.fields import at
from validation.grid import Grid
from validation.grounding import Ground, Grounding
from validation.labels import labels_of, stands_beside, stands_with
from validation.places import Place
from validation.relative import document_date
from validation.text import half

GLOSSARY = Path(__file__).parent.parent / "rulesets" / "glossary.table.yaml"

_YEAR = re.compile(r"(?<![0-9])(?:FY)?((?:19|20)[0-9]{2})(?![0-9])", re.IGNORECASE)
#: Fields that say of which period their neighbours are.
_PERIOD_FIELDS = frozenset({"period", "year", "as_of", "fiscal_year", "quarter", "期间", "年度", "年份", "报告期"})
#: A value that is printed more often than this is not looked at everywhere.
_MOST_PLACES = 50
_WORD = re.compile(r"[a-z]+|[\u3400-\u9fff]+")


def period(case: Case, *, of: str | None = None) -> Iterator[Hit]:
    """A number under another period's column than the one that its field speaks of.

    `of` is the path of the date that every amount of the result is of, unless its own field speaks of another.
    """
    whole = _whole_period(case, of) if of else None
    judged: list[bool] = []
    for grounding in case.standing("number"):
        if grounding.ground != Ground.FOUND:
            continue
        own = _own_period(case, grounding)
        wanted = own or whole
        if wanted is None:
            continue
        places = _in_row(case, grounding) or grounding.places
        wrong = _wrong_column(case, places, wanted, strict=own is not None)
        judged.append(wrong is not None)
        if wrong is not None:
            yield hit_at(grounding, wrong)
    if of and whole and judged and all(judged):
        # Where every amount is of another period, it may as well be the date that is wrong.
        yield hit_at(case.by_path[of], " / ".join(str(year) for year in sorted(whole.years)))


def named(case: Case) -> Iterator[Hit]:
    """A number that stands in no row of its field's name, where the document has such a row in the same table.

    For fields without labels of their own: the name is looked up in the glossary, in both languages.
    """
    for grounding in case.standing("number"):
        if grounding.ground == Ground.FOUND and not grounding.leaf.labels:
            row = _other_row(case, grounding)
            if row:
                yield hit_at(grounding, row)


def _other_row(case: Case, grounding: Grounding) -> str | None:
    """The label of the row that the field's name speaks of, where the number stands in another."""
    terms = _terms(grounding.leaf.path)
    if not terms or _in_row(case, grounding):
        return None
    return next((row for place in grounding.places if (row := _row_named(case.facts.grid(place), terms))), None)


# ---------------------------------------------------------------- periods


def _in_row(case: Case, grounding: Grounding) -> list[Place]:
    """The places beside the field's labels, or what the glossary gives for its name, or the words beside it."""
    places = grounding.places[:_MOST_PLACES]
    labels = labels_of(grounding.leaf.labels or _terms(grounding.leaf.path))
    if labels:
        return [place for place in places if stands_beside(place, labels, case.facts)]
    beside = _beside(case, grounding).items()
    words = [text for name, text in beside if name.lower() not in _PERIOD_FIELDS and not _is_period(text)]
    return [place for place in places if any(stands_with(place, text, case.facts) for text in words)]


def _is_period(text: str) -> bool:
    return parse_date(text) is not None or _YEAR.fullmatch(text.strip()) is not None


def _beside(case: Case, grounding: Grounding) -> Mapping[str, str]:
    """The texts in the same object of a list, by their names: they say what the number is of."""
    parent, _, name = grounding.leaf.path.rpartition("/")
    fields = at(case.extraction.result, parent) if parent else None
    texts = fields.items() if isinstance(fields, dict) else ()
    return {key: value for key, value in texts if key != name and isinstance(value, str) and value.strip()}


def _own_period(case: Case, grounding: Grounding) -> Heading | None:
    """The period that the field's name, a field beside it or the label beside it speaks of."""
    year = _YEAR.search(grounding.leaf.path.rpartition("/")[2].replace("_", " "))
    if year:
        return Heading(years=frozenset({int(year[1])}))
    beside = _beside(case, grounding)
    period = next((value for key, value in beside.items() if key.lower() in _PERIOD_FIELDS), None)
    if period:
        return heading_of(period)
    labels = [value for value in beside.values() if not parse_date(value)]
    years = {int(match[1]) for label in labels for match in _YEAR.finditer(half(label))}
    return Heading(years=frozenset(years)) if len(years) == 1 else None


def _whole_period(case: Case, path: str) -> Heading | None:
    """The period of the whole result: that of its date, if the document prints it."""
    grounding = case.by_path.get(path)
    dated = parse_date(grounding.leaf.text) if grounding and grounding.ground == Ground.FOUND else None
    days = dated.days(case.facts.day_first) if dated else ()
    return heading_of(dated.text) if dated and (len(days) == 1 or dated.period) else None


def _wrong_column(case: Case, places: Sequence[Place], wanted: Heading, *, strict: bool) -> str | None:
    """The head of the column that the number stands under instead of the one that is wanted; None if it may be right.

    A period of the whole result is only held against a table that has a column for exactly that period.
    """
    wrong: list[str] = []
    for place in places:
        grid = case.facts.grid(place)
        if grid is None or place.piece.col is None:
            head = _typed_under(place, wanted, case) if strict else None
            if head is None:
                return None
            wrong.append(head)
            continue
        headings = case.facts.once(("headings", grid.table.table_id), partial(_headings, grid, case.facts))
        mine = headings.get(place.piece.col)
        right = [col for col, heading in headings.items() if heading.meets(wanted)]
        if not mine or not right or place.piece.col in right or _unlike(headings, right, strict):
            return None
        wrong.append(" / ".join(grid.heads(place.piece.row or 0, right[0])))
    return wrong[0] if wrong else None


def _typed_under(place: Place, wanted: Heading, case: Case) -> str | None:
    """For figures in lines of text: the year of the line above that is wanted, where they stand under another."""
    found = heads_above(place, case.facts)
    if found is None or found[0].heading.meets(wanted):
        return None
    return next((head.text for head in found[1] if head.heading.meets(wanted)), None)


def _unlike(headings: Mapping[int, Heading], right: Sequence[int], strict: bool) -> bool:
    return not strict and len(right) == len(headings)


def _headings(grid: Grid, facts: Facts) -> Mapping[int, Heading]:
    """The periods of a table's columns, of those that name one."""
    found = {
        col: heading_of(" ".join(grid.heads(grid.head_rows, col)), partial(document_date, facts))
        for col in range(1, grid.table.cols)
    }
    return {col: heading for col, heading in found.items() if heading is not None}


# ---------------------------------------------------------------- names


@cache
def glossary() -> tuple[frozenset[str], ...]:
    """Terms of statements that mean the same, in both languages."""
    return tuple(
        frozenset(half(term).lower() for term in terms) for terms in yaml.safe_load(GLOSSARY.read_text("utf-8"))
    )


@cache
def _terms(path: str) -> tuple[str, ...]:
    """What the document may print for a field of this name."""
    name = " ".join(_WORD.findall(path.rpartition("/")[2].lower()))
    same = [terms for terms in glossary() if name in terms]
    return tuple(sorted({term for terms in same for term in terms}))


def _row_named(grid: Grid | None, terms: tuple[str, ...]) -> str | None:
    """The label of the row that has this name."""
    for row in range(grid.head_rows, grid.table.rows) if grid else ():
        label = grid.text(row, 0) if grid else ""
        if re.sub(r"^\W+|\W+$", "", label.lower()) in terms:
            return label
    return None
