"""The table of statutes: which exist, which articles they have, and since when."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from validation.chinese import chinese_number

TABLE = Path(__file__).parent / "rulesets" / "statutes.table.yaml"
#: A law is spoken of before it is in force.
_AHEAD = timedelta(days=366)
_COUNTRY = "中华人民共和国"
_ARTICLE = "第(?P<{0}>[0-9零〇一二三四五六七八九十百千]+)条(?:之[一二三四五六七八九十])?"

#: Statutes as they are cited, in text in half width.
CITATION = re.compile(
    r"《(?P<law>[^《》]{2,40})》(?:[^《》。;,]{0,12}?" + _ARTICLE.format("article") + ")?"
    r"|(?P<bare>[\u3400-\u9fff]{1,30}?(?:法典?|条例|办法|规定|细则))" + _ARTICLE.format("of") + ""
    r"|(?P<title>[0-9]+)\s?(?P<code>C\.?F\.?R\.?|U\.?S\.?C\.?)(?![A-Za-z])\s?(?:Part\s?|§{1,2}\s?)?"
    r"(?:(?P<part>[0-9]+)(?:\.(?P<section>[0-9]+))?(?:\([0-9A-Za-z]+\))*)?"
    r"|(?:Art(?:icle|\.)\s?(?P<before>[0-9]+)(?:\([0-9a-z]+\))*\s(?:of\s)?(?:the\s)?)?"
    r"(?:Regulation|Directive)\s(?:\((?:EU|EC)\)\s)?(?:No\.?\s)?(?P<act>[0-9]{2,4}/[0-9]{2,4})(?:/(?:EU|EC))?"
    r"(?:,?\s(?:Art(?:icle|\.))\s?(?P<after>[0-9]+))?"
)
_LAW_SUFFIX = re.compile("(法|条例|办法|规定|法典|决定|解释|准则|指引|细则)(（.*）|\\(.*\\))?$")
#: "This law", "the said measures": no name.
_POINTING = re.compile("(?:本|该|此|上述|前述|下列|有关|相关|依|按照?|根据|违反)(?:法律?|条例|办法|规定|细则)$")


@dataclass(frozen=True, slots=True)
class Version:
    """A law between two days."""

    articles: int
    since: date
    until: date | None = None


@dataclass(frozen=True)
class Statutes:
    laws: Mapping[str, Sequence[Version]] = field(default_factory=dict)
    codes: Mapping[str, int] = field(default_factory=dict)
    parts: Mapping[str, frozenset[int]] = field(default_factory=dict)
    sections: Mapping[str, frozenset[int]] = field(default_factory=dict)
    acts: Mapping[str, int] = field(default_factory=dict)

    def with_(self, other: Statutes) -> Statutes:
        """Both tables; where both speak of a statute, the other one counts."""
        return Statutes(
            {**self.laws, **other.laws},
            {**self.codes, **other.codes},
            {**self.parts, **other.parts},
            {**self.sections, **other.sections},
            {**self.acts, **other.acts},
        )

    def doubt(self, citation: re.Match[str], day: date | None) -> str | None:
        """What speaks against a citation, in a document of this day; None if nothing does."""
        if citation["law"] or citation["bare"]:
            return self._doubt_law(citation, day)
        return self._doubt_act(citation) if citation["act"] else self._doubt_code(citation)

    def _doubt_law(self, citation: re.Match[str], day: date | None) -> str | None:
        name = re.sub("[（(].*", "", (citation["law"] or citation["bare"]).removeprefix(_COUNTRY))
        if citation["bare"]:
            # What stands before the name of a law in running text cannot be told from it.
            name = next((law for law in self.laws if name.endswith(law)), name)
            if _POINTING.search(name):
                return None
        elif not _LAW_SUFFIX.search(name):
            return None  # the title of a report or a book
        versions = self.laws.get(name)
        if versions is None:
            return "not in the table of statutes"
        return _doubt_article(versions, _article(citation["article"] or citation["of"]), day)

    def _doubt_act(self, citation: re.Match[str]) -> str | None:
        last, article = self.acts.get(citation["act"]), citation["before"] or citation["after"]
        if last is None:
            return "not in the table of statutes"
        return f"it has {last} articles" if article and not 1 <= int(article) <= last else None

    def _doubt_code(self, citation: re.Match[str]) -> str | None:
        code, title = citation["code"].replace(".", "").upper(), int(citation["title"])
        if not 1 <= title <= self.codes[code]:
            return f"{code} has {self.codes[code]} titles"
        name, part = f"{title} {code}", citation["part"]
        if part and name in self.parts and int(part) not in self.parts[name]:
            return f"part {part} is not in the table of statutes"
        known = self.sections.get(f"{name} {part}")
        if citation["section"] and known is not None and int(citation["section"]) not in known:
            return f"section {part}.{citation['section']} is not in the table of statutes"
        return None


def statutes_in(text: str) -> Iterator[re.Match[str]]:
    """The citations of a text in half width."""
    return CITATION.finditer(text)


@cache
def known_statutes(own: Path | None = None) -> Statutes:
    """The table that ships with the rules, and a user's own. Raises ValueError with the reason if a file is none."""
    shipped = _load(TABLE)
    return shipped.with_(_load(own)) if own else shipped


def _load(path: Path) -> Statutes:
    try:
        table = yaml.safe_load(path.read_text("utf-8"))
    except (OSError, yaml.YAMLError) as fault:
        raise ValueError(f"{path.name}: {' '.join(str(fault).split())}") from fault
    error = best_match(Draft202012Validator(_FORMAT).iter_errors(_plain(table)))
    if error is not None:
        raise ValueError(f"{path.name}: {'/'.join(map(str, error.absolute_path))} {error.message}")
    return Statutes(
        {name: tuple(_version(one) for one in versions) for name, versions in table.get("laws", {}).items()},
        table.get("codes", {}),
        {name: frozenset(numbers) for name, numbers in table.get("parts", {}).items()},
        {name: frozenset(numbers) for name, numbers in table.get("sections", {}).items()},
        table.get("acts", {}),
    )


def _plain(value: Any) -> Any:
    """Days as the text that a schema can judge."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return (
        [_plain(one) for one in value] if isinstance(value, list) else str(value) if isinstance(value, date) else value
    )


def _version(entry: Mapping[str, Any]) -> Version:
    return Version(entry["articles"], entry["from"], entry.get("until"))


def _doubt_article(versions: Sequence[Version], article: int | None, day: date | None) -> str | None:
    """Held against the version of the day, or one that comes soon after; without a day against the last."""
    if day is None:
        chosen = versions[-1:]
    else:
        chosen = [one for one in versions if one.since <= day + _AHEAD]
        current = [one for one in chosen if one.since <= day][-1:]
        chosen = [*current, *(one for one in chosen if one.since > day)] or versions[:1]
    last = max(one.articles for one in chosen)
    if article is not None and not 1 <= article <= last:
        return f"it has {last} articles" + (f" ({day:%Y})" if day and len(versions) > 1 else "")
    ended = next((one.until for one in chosen if one.until), None)
    return f"it was repealed on {ended}" if ended and day and day >= ended else None


def _article(text: str | None) -> int | None:
    if text is None:
        return None
    return int(text) if text.isascii() else int(chinese_number(text) or 0)


_COUNT = {"type": "integer", "minimum": 1}
_NUMBERS = {"type": "object", "additionalProperties": {"type": "array", "items": _COUNT}}
_DAY = {"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}
_FORMAT = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "laws": {"type": "object", "additionalProperties": {"type": "array", "minItems": 1, "items": {
            "type": "object", "required": ["articles", "from"], "additionalProperties": False,
            "properties": {"articles": _COUNT, "from": _DAY, "until": _DAY}}}},
        "codes": {"type": "object", "additionalProperties": _COUNT},
        "parts": _NUMBERS,
        "sections": _NUMBERS,
        "acts": {"type": "object", "additionalProperties": _COUNT},
    },
}  # fmt: skip
