"""Words that must or must not stand in a result, and statutes that exist.

The table of statutes is a small starting point for the team that uses it to check and extend; a statute that the
document itself cites needs no table. What is in neither is a finding for a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from validation.case import Case, Hit
from validation.chinese import chinese_number
from validation.fields import at
from validation.text import fold, half

TABLE = Path(__file__).parent.parent / "rulesets" / "statutes.table.yaml"

CITATION = re.compile(
    r"《(?P<law>[^《》]{2,40})》(?:\s?第(?P<article>[0-9零〇一二三四五六七八九十百千]+)条)?"
    r"|(?P<title>[0-9]+)\s?(?P<code>C\.?F\.?R\.?|U\.?S\.?C\.?)(?![A-Za-z])\s?(?:Part\s?|§{1,2}\s?)?"
    r"(?:(?P<part>[0-9]+)(?:\.[0-9]+)?(?:\([0-9A-Za-z]+\))*)?"
)
_LAW_SUFFIX = re.compile("(法|条例|办法|规定|法典|决定|解释|准则|指引)(（.*）|\\(.*\\))?$")
#: So many of a list of terms stand in a message.
_SHOWN = 3
_COUNTRY = "中华人民共和国"


@dataclass(frozen=True, slots=True)
class Statutes:
    """`articles`: how many a Chinese law has; `titles`: how many a code has; `parts`: the known ones of a title."""

    articles: Mapping[str, int]
    titles: Mapping[str, int]
    parts: Mapping[str, frozenset[int]]


def required(case: Case, *, any_of: Sequence[str], path: str = "") -> Iterator[Hit]:
    """One of the terms stands in the value at `path` (the whole result by default)."""
    text = fold(_text_of(at(case.extraction.result, path))).lower()
    if not any(fold(term).lower() in text for term in any_of):
        yield Hit(path=path or None, text=_some(any_of))


def _some(terms: Sequence[str]) -> str:
    """The first terms and how many there are besides."""
    others = len(terms) - _SHOWN
    return ", ".join(terms[:_SHOWN]) + (f" … +{others}" if others > 0 else "")


def forbidden(case: Case, *, any_of: Sequence[str]) -> Iterator[Hit]:
    """None of the terms stands in what the model wrote itself."""
    for leaf in case.prose:
        text = fold(leaf.text).lower()
        for term in any_of:
            if fold(term).lower() in text:
                yield Hit(path=leaf.path, text=term)


def statutes(case: Case) -> Iterator[Hit]:
    """A statute that the model cites is cited by the document, or is in the table and has such an article."""
    for leaf in case.prose:
        for citation in CITATION.finditer(half(leaf.text)):
            reason = _doubt(citation, known_statutes())
            if reason and not case.facts.find(citation.group()):
                yield Hit(path=leaf.path, text=citation.group(), detail=reason)


@cache
def known_statutes() -> Statutes:
    """The table that ships with the rules."""
    table = yaml.safe_load(TABLE.read_text("utf-8"))
    parts = {title: frozenset(numbers) for title, numbers in table["parts"].items()}
    return Statutes(table["articles"], table["titles"], parts)


def _doubt(citation: re.Match[str], known: Statutes) -> str | None:
    return _doubt_of_law(citation, known) if citation["law"] else _doubt_of_code(citation, known)


def _doubt_of_law(citation: re.Match[str], known: Statutes) -> str | None:
    name = citation["law"].removeprefix(_COUNTRY)
    if not _LAW_SUFFIX.search(name):
        return None  # the title of a report or a book
    last = known.articles.get(re.sub("[（(].*", "", name))
    if last is None:
        return "not in the table of statutes"
    article = _article(citation["article"])
    return f"it has {last} articles" if article is not None and not 1 <= article <= last else None


def _article(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isascii() else int(chinese_number(text) or 0)


def _doubt_of_code(citation: re.Match[str], known: Statutes) -> str | None:
    code, title = citation["code"].replace(".", "").upper(), int(citation["title"])
    if not 1 <= title <= known.titles[code]:
        return f"{code} has {known.titles[code]} titles"
    parts = known.parts.get(f"{title} {code}")
    if parts is not None and citation["part"] and int(citation["part"]) not in parts:
        return f"part {citation['part']} is not in the table of statutes"
    return None


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(map(_text_of, value.values()))
    if isinstance(value, list):
        return " ".join(map(_text_of, value))
    return "" if value is None else str(value)
