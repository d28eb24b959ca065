"""Loan papers with planted values and their look-alikes, half of them Chinese, the same for the same seed.

Every value that a document is asked for stands beside others of its kind that differ in one digit, in the scale or in a
word. One document in ten prints no date, so that the right answer is null; one Chinese document in five has full-width
digits. The sentence that is the evidence runs over a line break.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any, Final

from samples.drawing import Grid, Sheet

FULL_WIDTH: Final = str.maketrans("0123456789,.", "０１２３４５６７８９，．")
_FIRST: Final = "Harbour Meridian Northgate Silverline Crescent Oakfield Stanmore Pinecrest Redwood Kestrel".split()
_SECOND: Final = "Trading Holdings Logistics Pharma Capital Textiles Foods Energy".split()
_FORMS: Final = ("Limited", "(Cayman) Limited", "plc", "Inc")
_PLACES: Final = "苏州 无锡 宁波 长沙 佛山 青岛 武汉 昆明 厦门 合肥".split()
_BRANDS: Final = "启明 远航 恒信 瑞丰 中联 金桥 博雅 新和 永泰 嘉实".split()
_TRADES: Final = "贸易有限公司 置业股份有限公司 科技集团有限公司 医药股份有限公司 供应链管理有限公司".split()
_COLLATERAL: Final[Mapping[str, Sequence[str]]] = {
    "en": ("Office building", "Office building, annex", "Packing line", "Packing line, spare", "Delivery vans"),
    "zh": ("办公楼", "办公楼附属用房", "包装生产线", "包装生产线备件", "运输车辆"),
}
_MONTHS: Final = "January February March April May June July August September October November December".split()


@dataclass(frozen=True, slots=True)
class Planted:
    """A document: `truth` has the right value of each field that its profile asks for, None where none is printed."""

    name: str
    language: str
    profile: str
    data: bytes
    truth: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class _Facts:
    """What one document says. Amounts: the loan, then its look-alikes."""

    language: str
    companies: tuple[str, str]
    contracts: tuple[str, str]
    dates: tuple[str, str]
    amounts: tuple[str, ...]
    rates: tuple[str, str]
    collateral: tuple[str, ...]
    full_width: bool = False
    dated: bool = True
    order: tuple[int, ...] = field(default=())

    def show(self, text: str) -> str:
        return text.translate(FULL_WIDTH) if self.full_width else text


def documents(count: int, seed: int = 7) -> Iterator[Planted]:
    """The corpus: English and Chinese in turns, the two profiles in turns."""
    rng = random.Random(seed)
    for number in range(count):
        facts = _facts(rng, ("en", "zh")[number % 2], number)
        profile = ("loan-terms", "loan-parties")[number // 2 % 2]
        truth = _truth(facts)
        wanted = _ASKED[profile]
        asked = {name: truth[name] for name in wanted}
        name = f"{facts.language}-{number:04}"
        yield Planted(name, facts.language, profile, _draw(facts, profile, name), asked)


_ASKED: Final = {"loan-terms": ("amount", "date", "evidence"), "loan-parties": ("company", "contract", "rate", "item")}


def _truth(facts: _Facts) -> dict[str, str | None]:
    return {
        "amount": facts.show(facts.amounts[0]),
        "date": facts.show(facts.dates[0]) if facts.dated else None,
        "evidence": _evidence(facts),
        "company": facts.companies[0],
        "contract": facts.contracts[0],
        "rate": facts.show(facts.rates[0]),
        "item": facts.collateral[0],
    }


# ---------------------------------------------------------------- the values


def _facts(rng: random.Random, language: str, number: int) -> _Facts:
    cents = rng.randrange(1_000_000_00, 99_000_000_00)
    rate = rng.randrange(310, 690)
    signed = date(2024, 1, 1) + timedelta(rng.randrange(600))
    serial = rng.randrange(1000, 9999)
    order = list(range(6))
    rng.shuffle(order)
    items = rng.sample(_COLLATERAL[language], 3)
    return _Facts(
        language,
        _companies(rng, language),
        (f"LN-{signed.year}-{serial}", f"LN-{signed.year}-{_slip(rng, serial)}"),
        (_dated(signed, language), _dated(signed + timedelta(days=rng.choice((1, 10, 31))), language)),
        tuple(_money(value) for value in (cents, _slip(rng, cents), cents * 10, cents // 10, cents // 1000)),
        (f"{rate / 100:.2f}%", f"{_slip(rng, rate) / 100:.2f}%"),
        tuple(items),
        full_width=language == "zh" and number % 10 == 1,
        dated=number % 20 not in (0, 1),
        order=tuple(order),
    )


def _companies(rng: random.Random, language: str) -> tuple[str, str]:
    """Two names that share all but one word."""
    if language == "zh":
        brand, other = rng.sample(_BRANDS, 2)
        place, trade = rng.choice(_PLACES), rng.choice(_TRADES)
        return f"{place}{brand}{trade}", f"{place}{other}{trade}"
    lead = f"{rng.choice(_FIRST)} {rng.choice(_SECOND)}"
    one, two = rng.sample(_FORMS, 2)
    return f"{lead} {one}", f"{lead} {two}"


def _slip(rng: random.Random, number: int) -> int:
    """The number with one digit changed; the first stays, so that the length does."""
    digits = list(str(number))
    place = rng.randrange(1, len(digits))
    digits[place] = rng.choice([digit for digit in "0123456789" if digit != digits[place]])
    return int("".join(digits))


def _money(cents: int) -> str:
    return f"{cents / 100:,.2f}"


def _dated(day: date, language: str) -> str:
    if language == "zh":
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


# ---------------------------------------------------------------- the page

_WORDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "en": {
        "title": "Loan agreement",
        "loan-terms": ("Loan amount", "Previous amount", "Signing date", "Due date"),
        "loan-parties": (
            *("Borrower", "Guarantor", "Contract no.", "Previous contract no."),
            *("Annual rate", "Penalty rate"),
        ),
        "money": "USD {}",
        "evidence": "The lender pays the loan amount of USD {} in one sum once the guarantee of USD {} is in force.",
        "head": ("Collateral", "Value in USD"),
    },
    "zh": {
        "title": "借款合同",
        "loan-terms": ("借款金额", "原借款金额", "签署日期", "到期日期"),
        "loan-parties": ("借款人", "担保人", "合同编号", "原合同编号", "年利率", "罚息利率"),
        "money": "{}元",
        "evidence": "贷款人在担保限额人民币{1}元生效之后，将借款金额人民币{0}元一次性划入借款人账户。",
        "head": ("抵押物", "评估价值（元）"),
    },
}


def _evidence(facts: _Facts) -> str:
    sentence: str = _WORDS[facts.language]["evidence"]
    return sentence.format(facts.show(facts.amounts[0]), facts.show(facts.amounts[2]))


def _draw(facts: _Facts, profile: str, name: str) -> bytes:
    """What the profile asks for, its look-alikes, and no more: on a CPU, reading takes the time."""
    words = _WORDS[facts.language]
    sheet = Sheet(language=facts.language)
    sheet.title(words["title"])
    sheet.pairs(_pairs(facts, words, profile), label_width=150)
    if profile == "loan-terms":
        sheet.paragraph(_evidence(facts))
    else:
        rows = zip(facts.collateral, map(facts.show, facts.amounts[2:]), strict=True)
        sheet.table([words["head"], *rows], Grid((220, 140), "lr", strong_last=False))
    return sheet.to_bytes(title=name)


def _pairs(facts: _Facts, words: Mapping[str, Any], profile: str) -> list[tuple[str, str]]:
    """Labels and values, the same pairs in another order each time: often the look-alike comes first."""
    money = [facts.show(words["money"].format(amount)) for amount in facts.amounts[:2]]
    if profile == "loan-terms":
        values = [*money, *map(facts.show, facts.dates)] if facts.dated else money
    else:
        values = [*facts.companies, *facts.contracts, *map(facts.show, facts.rates)]
    shown = list(zip(words[profile], values, strict=False))
    return [shown[place] for place in facts.order if place < len(shown)]
