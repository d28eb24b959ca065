"""A model that has lost its way says the same again."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from validation.case import Case, Hit
from validation.fields import step
from validation.text import half

#: A word, or one character of a script without spaces.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
#: The same words on both sides of "or"; between figures and short words a slash may part a date or a code.
_DOUBLED = re.compile(
    r"(?<![^\W_])(?P<said>[^\W\d_][^\n,.;:|/]{1,60}?)\s*(?:,?\s+(?:or|and/or|versus|vs\.?)\s+|\s*[/|]\s*)(?P=said)(?![^\W_])"
    r"|(?P<zh>[\u3400-\u9fff]{2,20})(?:或者?|还是|/)(?P=zh)(?![\u3400-\u9fff])",
    re.IGNORECASE,
)
#: What stands between two alternatives: without it the slow pattern is not tried.
_EITHER = re.compile(r"[/|或还]|\s(?:or|and/or|versus|vs)\b", re.IGNORECASE)
#: Below this many n-grams, one natural repetition is a large share.
_FEWEST = 20
#: A loop is looked for in the last characters: this many are enough for three turns of a long sentence.
_TAIL = 900
#: Turns of a short unit (ha ha ha) must make up this many characters to be a loop.
_LOOP_LENGTH = 12
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=False)


def ngrams(case: Case, *, share: float = 0.1, n: int = 4) -> Iterator[Hit]:
    """Prose of which more than `share` of the n-grams were said before."""
    for leaf in case.prose:
        tokens = _TOKEN.findall(leaf.text.lower())
        grams = list(zip(*(tokens[start:] for start in range(n)), strict=False))
        if len(grams) < _FEWEST:
            continue
        repeated = 1 - len(set(grams)) / len(grams)
        if repeated > share:
            yield Hit(path=leaf.path, text=leaf.text[:80], detail=f"{repeated:.0%}")


def tail(case: Case, *, times: int = 3) -> Iterator[Hit]:
    """Prose that ends with the same unit `times` times over."""
    for leaf in case.prose:
        unit = _loop(leaf.text.rstrip()[-_TAIL:], times)
        if unit:
            yield Hit(path=leaf.path, text=leaf.text[-80:], detail=unit.strip())


def alternatives(case: Case) -> Iterator[Hit]:
    """Two alternatives that are one: "high or high", "low / low", 高或高."""
    for leaf in case.leaves:
        text = half(leaf.text) if isinstance(leaf.value, str) and leaf.source != "number" else ""
        match = _DOUBLED.search(text) if _EITHER.search(text) else None
        if match and not (leaf.grounded and case.facts.find(match.group())):
            yield Hit(path=leaf.path, text=match.group(), detail=match["said"] or match["zh"])


def items(case: Case, *, times: int = 3) -> Iterator[Hit]:
    """A list that holds the same object `times` times."""
    for path, entries in _lists(case.extraction.result, ""):
        counts = Counter(map(_ENCODER.encode, filter(None, entries if len(entries) >= times else ())))
        for entry, count in counts.items():
            if count >= times:
                yield Hit(path=path, text=entry[:80], detail=str(count))


def _loop(text: str, times: int) -> str | None:
    """The unit that the text ends with `times` times or more; the last turn may be cut short."""
    folded = re.sub(r"\s+", " ", text)
    for length in range(1, len(folded) // times + 1):
        unit = folded[-length:]
        turns = _turns(folded, unit)
        if turns >= times and turns * length >= _LOOP_LENGTH and any(map(str.isalnum, unit)):
            return unit
    return None


def _turns(text: str, unit: str) -> int:
    turns, stop = 0, len(text)
    while stop >= len(unit) and text.endswith(unit, 0, stop):
        turns, stop = turns + 1, stop - len(unit)
    return turns


def _lists(value: Any, path: str) -> Iterator[tuple[str, list[Any]]]:
    if isinstance(value, list):
        yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from _lists(member, step(path, key))
