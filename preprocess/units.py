"""Unit and scale as printed with a table: 单位：万元, "in thousands", RMB'000, € million."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from docmill.types import Table


@dataclass(frozen=True, slots=True)
class UnitFact:
    """`unit` is a currency code where one is printed, else the word; `scale` multiplies the printed numbers."""

    unit: str | None
    scale: Decimal | None


_CJK_CURRENCY: Final = {
    "人民币": "CNY", "港币": "HKD", "港元": "HKD", "美元": "USD", "美金": "USD", "欧元": "EUR", "日元": "JPY",
    "英镑": "GBP", "澳门元": "MOP", "新台币": "TWD", "新加坡元": "SGD", "瑞士法郎": "CHF", "加元": "CAD", "澳元": "AUD",
}  # fmt: skip
_CJK_SCALE: Final = (
    ("千亿", 10**11), ("百亿", 10**10), ("十亿", 10**9), ("千万", 10**7), ("百万", 10**6), ("十万", 10**5),
    ("亿", 10**8), ("億", 10**8), ("万", 10**4), ("萬", 10**4), ("千", 10**3), ("仟", 10**3),
)  # fmt: skip
_CJK_AMOUNT: Final = (
    r"(?:(?:人民币|港币|美金|新台币)?\s*(?:千亿|百亿|十亿|千万|百万|十万|亿|億|万|萬|千|仟)?\s*"
    r"(?:美元|港元|欧元|日元|英镑|澳门元|新加坡元|瑞士法郎|加元|澳元|元|圆|股|吨|人|户|份|%|％)|人民币)"
)
#: 编制单位, 填报单位 and the like name who made the statement, not what it counts in.
_WHOSE: Final = "".join(f"(?<!{word})" for word in ("编制", "填制", "编报", "填报", "报送", "报告", "建设", "施工"))
_CJK_UNIT: Final = re.compile(rf"{_WHOSE}单\s*位\s*(?:为|均为|[:：])?\s*({_CJK_AMOUNT}|[^\s，,；;）)。:：]{{1,6}})")
_CJK_BRACKET: Final = re.compile(rf"[（(]\s*(?:以|均以)?({_CJK_AMOUNT})(?:计|列示|为单位)?\s*[)）]")
_CJK_CURRENCY_LINE: Final = re.compile(r"币\s*种\s*[:：]\s*(人民币|港币|美元|欧元|日元|英镑)")

_WORDS: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "m": 10**6, "mn": 10**6,
                 "bn": 10**9, "k": 10**3, "000": 10**3}  # fmt: skip
_CURRENCIES: Final = {
    "rmb": "CNY", "cny": "CNY", "cn¥": "CNY", "¥": "CNY", "￥": "CNY", "renminbi": "CNY", "yuan": "CNY",
    "hk$": "HKD", "hkd": "HKD", "us$": "USD", "usd": "USD", "$": "USD", "u.s. dollars": "USD", "us dollars": "USD",
    "dollars": "USD", "eur": "EUR", "€": "EUR", "euro": "EUR", "euros": "EUR", "gbp": "GBP", "£": "GBP",
    "pounds": "GBP", "jpy": "JPY", "yen": "JPY", "chf": "CHF", "sgd": "SGD", "s$": "SGD", "aud": "AUD", "a$": "AUD",
    "cad": "CAD", "c$": "CAD", "inr": "INR", "brl": "BRL", "r$": "BRL",
}  # fmt: skip
_MONEY: Final = "|".join(sorted(map(re.escape, _CURRENCIES), key=len, reverse=True))
_SCALED: Final = r"(thousand|million|billion|trillion)s?"
_IN_SCALE: Final = re.compile(
    rf"\b(?:in|of)\s+(?:({_MONEY})\s*)?{_SCALED}(?:\s+of\s+({_MONEY}))?(?![a-z])|[(\[]\s*{_SCALED}\s+of\s+({_MONEY})",
    re.IGNORECASE,
)
_MONEY_SCALE: Final = re.compile(
    rf"(?<![A-Za-z])({_MONEY})\s*['’`]?\s*(000|thousand|million|billion|mn|bn|m|k)s?(?![A-Za-z\d])", re.IGNORECASE
)
_BARE_THOUSANDS: Final = re.compile(r"(?<!\d)['’`]000s?\b")
_IN_MONEY: Final = re.compile(rf"\b(?:in|expressed in|amounts in|stated in)\s+({_MONEY})(?![A-Za-z])", re.IGNORECASE)


def unit_of(text: str) -> UnitFact | None:
    """The unit and scale that a caption line or a header states, or None."""
    return _chinese(text) or _western(text)


def _chinese(text: str) -> UnitFact | None:
    found = _CJK_UNIT.search(text) or _CJK_BRACKET.search(text)
    currency = _CJK_CURRENCY_LINE.search(text)
    if found is None:
        return UnitFact(_CJK_CURRENCY[currency[1]], None) if currency else None
    amount = re.sub(r"\s", "", found[1])
    scale = next((Decimal(factor) for word, factor in _CJK_SCALE if word in amount), Decimal(1))
    code = next((code for word, code in _CJK_CURRENCY.items() if word in amount), None)
    if code is None and currency is not None:
        code = _CJK_CURRENCY[currency[1]]
    if code is None and amount.endswith(("元", "圆")):
        code = "CNY"
    if code is None:
        code = amount
        for word, _ in _CJK_SCALE:
            code = code.removeprefix(word)
    return UnitFact(code or None, None if code in ("%", "％") else scale)


def _western(text: str) -> UnitFact | None:
    found = _IN_SCALE.search(text)
    if found:
        money = next((found[group] for group in (1, 3, 5) if found[group]), None) or _loose_currency(text)
        word = found[2] or found[4]
        return UnitFact(_CURRENCIES[money.lower()] if money else None, Decimal(_WORDS[word.lower()]))
    found = _MONEY_SCALE.search(text)
    if found:
        return UnitFact(_CURRENCIES[found[1].lower()], Decimal(_WORDS[found[2].lower()]))
    if _BARE_THOUSANDS.search(text):
        return UnitFact(None, Decimal(1000))
    found = _IN_MONEY.search(text)
    return UnitFact(_CURRENCIES[found[1].lower()], Decimal(1)) if found else None


def _loose_currency(text: str) -> str | None:
    """A currency named beside "in millions": "(RMB, in millions)", "(dollars in thousands)"."""
    found = re.search(rf"(?<![A-Za-z])({_MONEY})(?![A-Za-z\d])", text, re.IGNORECASE)
    return found[1] if found else None


def table_unit(table: Table, above: Iterable[str]) -> UnitFact | None:
    """The unit of a table: from the lines above it, else from its header if all that is stated there agrees."""
    for text in above:
        fact = unit_of(text)
        if fact is not None:
            return fact
    header = [cell.text for cell in table.cells if cell.row < max(1, table.header_rows)]
    stated = {fact for fact in map(unit_of, header) if fact is not None}
    return stated.pop() if len(stated) == 1 else None
