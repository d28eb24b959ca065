"""What a reading has to say of itself, as findings: parts that disagree, lists that were cut, text left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from docmill.types import Citation, Extraction, Finding, Omission, Outcome
from inference.merge import Conflict, Dropped, Merged, Origin

PARTS_DISAGREE: Final = "parts-disagree"
LIST_CUT: Final = "list-cut"
TEXT_LEFT_OUT: Final = "text-left-out"

#: A message is a cell of a table: of each value so much, and so many values.
_SHOWN: Final = 16
_VALUES: Final = 3
#: Of what was left out a record keeps the beginning; the document has the rest.
_BEGINNING: Final = 80

#: The citation of a value in the reading that it came from.
Cited = Callable[[Origin], Citation | None]


def remarks(merged: Merged, cited: Cited) -> tuple[Finding, ...]:
    """What merging had to decide; what only the order of the parts decided is for a person to look at."""
    return (*(_disagree(one, cited) for one in merged.conflicts), *(_cut(one) for one in merged.dropped))


def left_out(omitted: Sequence[Omission]) -> tuple[Finding, ...]:
    """One finding for all that no prompt showed; none where nothing was left out."""
    if not omitted:
        return ()
    tokens, pages = sum(one.tokens for one in omitted), _pages(omitted)
    message = (
        f"the model was not shown {tokens} tokens of text on p. {pages}"
        f" / 第 {pages} 页约 {tokens} 个词元的正文未提供给模型"
    )
    return (Finding(TEXT_LEFT_OUT, Outcome.FLAG, message, page=omitted[0].page),)


def with_omissions(extraction: Extraction, omitted: Sequence[Omission]) -> Extraction:
    """The extraction with what its prompts did not show."""
    if not omitted:
        return extraction
    findings = (*extraction.findings, *left_out(omitted))
    return replace(extraction, findings=findings, omitted=beginnings(omitted))


def beginnings(omitted: Sequence[Omission]) -> tuple[Omission, ...]:
    """Omissions as they are kept with a result."""
    return tuple(Omission(one.page, one.tokens, one.text[:_BEGINNING], one.why) for one in omitted)


def _disagree(conflict: Conflict, cited: Cited) -> Finding:
    places = [cited(origin) for origin in (conflict.kept, *conflict.others)]
    told = "; ".join(
        _valued(value, place) for value, place in zip(conflict.values[:_VALUES], places[:_VALUES], strict=True)
    )
    message = f"parts differ, the first is kept: {told} / 各部分取值不一，取第一个：{told}"
    outcome = Outcome.REVIEW if conflict.tied else Outcome.FLAG
    kept = places[0]
    return Finding(
        PARTS_DISAGREE, outcome, message, conflict.path, kept.page if kept else None, kept.bbox if kept else None
    )


def _valued(value: Any, place: Citation | None) -> str:
    text = " ".join(str(value).split())
    short = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    return f"{short} (p. {place.page})" if place else short


def _cut(dropped: Dropped) -> Finding:
    message = f"{dropped.items} more items had no room in the list / 列表已满，另有 {dropped.items} 项未列出"
    return Finding(LIST_CUT, Outcome.FLAG, message, dropped.path)


def _pages(omitted: Sequence[Omission]) -> str:
    pages = sorted({one.page for one in omitted})
    return str(pages[0]) if len(pages) == 1 else f"{pages[0]}-{pages[-1]}"
