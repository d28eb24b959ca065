"""What a result or its document says twice, it says alike: in figures and in words, in two languages, in two fields."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from decimal import Decimal

from validation.case import Case, Hit, hit_at
from validation.dates import scan_dates
from validation.fields import Leaf, at
from validation.grounding import Ground
from validation.likeness import agree
from validation.numbers import Number, parse_number, readings, scan_numbers
from validation.places import Place
from validation.text import half

#: What the name of a field ends in that says the same as another in words, in capitals or in another language.
_SAME = re.compile(r"_(?:cn|zh|en|words?|in_words|capital|capitals|text|upper|大写|小写|中文|英文)$", re.IGNORECASE)
#: A figure and its capitals side by side: 200,000,000.00元（大写：贰亿元整）, 人民币壹佰万元整（¥1,000,000.00）.
_CAPITALS = "[零壹贰叁肆伍陆柒捌玖拾佰仟万亿两元圆角分整正]{3,}"
_FIGURES = r"[0-9][0-9,]*(?:\.[0-9]+)?\s?[万亿]?元?"
#: Characters to both sides of a value in which its twin may stand.
_REACH = 60
_BESIDE = re.compile(
    rf"(?P<figures>{_FIGURES})\s?[(]?\s?(?:大写|人民币|:|\s){{0,6}}(?P<capitals>{_CAPITALS})"
    rf"|(?P<words>{_CAPITALS})\s?[(]?\s?(?:小写|人民币|RMB|CNY|¥|:|\s){{0,6}}(?P<digits>{_FIGURES})"
)


def twins(case: Case) -> Iterator[Hit]:
    """Fields that say the same in two ways (amount and amount_cn, summary_zh and summary_en) and do not agree."""
    for one, other in _pairs(case):
        if _differ(one, other, case):
            yield Hit(path=one.path, text=one.text, detail=other.text)
            yield Hit(path=other.path, text=other.text, detail=one.text)


def words_and_figures(case: Case) -> Iterator[Hit]:
    """A value beside which the document prints it again, in capitals or figures, as another amount."""
    for grounding in case.standing("number"):
        if grounding.ground == Ground.FOUND:
            others = (other for place in grounding.places for other in _beside(place))
            yield from (hit_at(grounding, other) for other in list(others)[:1])


def _beside(place: Place) -> Iterator[str]:
    """Another amount that the document prints beside this one as the same."""
    plain = half(place.piece.printed.text)
    first = max(0, place.start - _REACH)
    for match in _BESIDE.finditer(plain, first, place.stop + _REACH):
        around = match.start() <= place.start and place.stop <= match.end() + 1
        other = _other_amount(match) if around else None
        if other:
            yield other


def currency(case: Case, *, amount: str, currency: str) -> Iterator[Hit]:
    """An amount that is printed in another currency than the field beside it says."""
    stated = at(case.extraction.result, currency)
    for grounding in case.standing("number"):
        if grounding.leaf.path == amount and stated and grounding.ground == Ground.FOUND:
            printed = [number.unit for number in grounding.meant.values() if number.unit]
            wanted = Number(Decimal(1), str(stated))
            if printed and not any(agree(wanted, Number(Decimal(1), unit)) for unit in printed):
                yield Hit(path=currency, text=str(stated), detail=printed[0])


def _other_amount(match: re.Match[str]) -> str | None:
    """The amount in words, if it is not the one in figures."""
    words, figures = match["capitals"] or match["words"], match["figures"] or match["digits"]
    spelled, printed = parse_number(words), parse_number(figures.strip())
    amount = re.search("[元圆万亿]", words)
    if spelled is None or printed is None or spelled.value == printed.value or not amount:
        return None
    return f"{words} = {spelled.value:,f}"


def _pairs(case: Case) -> Iterator[tuple[Leaf, Leaf]]:
    stems: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in case.leaves:
        stems[_SAME.sub("", leaf.path)].append(leaf)
    for leaves in stems.values():
        yield from ((leaves[0], other) for other in leaves[1:])


def _differ(one: Leaf, other: Leaf, case: Case) -> bool:
    """Two amounts that are not the same; or two texts of which each has a number or day that the other has not."""
    left, right = readings(one.text), readings(other.text)
    if left and right:
        return not {number.value for number in left} & {number.value for number in right}
    if not (one.prose and other.prose):
        return False
    mine, theirs = _said(one.text), _said(other.text)
    return bool(mine and theirs and mine != theirs)


def _said(text: str) -> frozenset[Decimal | date]:
    """The figures and days of a text; small counts may be words in one language."""
    dates = list(scan_dates(text))
    days = [day for dated in dates for day in dated.readings[:1]]
    inside = [(dated.start, dated.stop) for dated in dates]
    numbers = [
        abs(found.number.value)
        for found in scan_numbers(text)
        if not any(start <= found.start < stop for start, stop in inside) and abs(found.number.value) > 10
    ]
    return frozenset((*days, *numbers))
