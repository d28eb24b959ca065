"""Rules written as CEL expressions over `result`, `facts` and, for each entry of a list, `item`.

CEL, by the package common-expression-language: it is the language that Kubernetes and cloud policies are written in, so
compliance officers meet it elsewhere; it has no loops, no assignment and no way to Python (an unknown function is an
error, attributes of Python objects are out of reach); the package is Rust beneath and Apache-2.0. What it does not
bound is work: four nested comprehensions over forty entries took a minute when tried. So an expression has a longest
length and at most two comprehensions.

Numbers reach an expression as printed text, or in `facts.numbers` as binary floats: fit for "more than a million", not
for a check to the cent. That is what the named checks are for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import cel

from validation.case import Case, Hit, Judge
from validation.facts import Facts
from validation.fields import at, step

_MOST_COMPREHENSIONS = 2
_COMPREHENSION = re.compile(r"\.\s*(all|exists|exists_one|map|filter)\s*\(")
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_KNOWN = frozenset({"result", "facts"})
_FUNCTIONS = frozenset(
    "size contains startsWith endsWith matches int uint double string bool type duration timestamp min max".split()
)

#: What evaluation raises; none of them is a fault of the document.
_FAULTS = (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError)


def expression(source: str, *, each: str | None = None, path: str | None = None) -> Judge:
    """The rule that this expression is true of the result, or of each entry of the list at `each`.

    Raises ValueError with the reason if it is no expression, names something unknown or could run for long.
    """
    program = cel.compile(source)
    _refuse_unknown_names(source, program, _KNOWN | ({"item"} if each else set()))
    _refuse_much_work(source)
    if each is None:
        return lambda case: _ask(program, case, path, source)
    return lambda case: _ask_each(program, case, each, source)


def _ask_each(program: cel.Program, case: Case, each: str, source: str) -> Iterator[Hit]:
    entries = at(case.extraction.result, each)
    for index, item in enumerate(entries if isinstance(entries, list) else []):
        yield from _ask(program, case, step(each, index), source, item)


def _ask(program: cel.Program, case: Case, path: str | None, source: str, item: Any = None) -> Iterator[Hit]:
    about = at(case.extraction.result, path) if path else None
    text = "" if about is None else str(about)
    try:
        answer = program.execute(_context(program, case, source, item))
    except _FAULTS as fault:
        yield Hit(path=path, text=text, detail=f"{source}: {fault}", broken=True)
        return
    if not isinstance(answer, bool):
        yield Hit(path=path, text=text, detail=f"{source}: gives {answer!r}, not true or false", broken=True)
    elif not answer:
        yield Hit(path=path, text=text, detail=source)


def _context(program: cel.Program, case: Case, source: str, item: Any) -> dict[str, Any]:
    """Only what the expression names: the facts of a long document are not handed over for nothing."""
    context = {"result": case.extraction.result, "item": item}
    return context | {"facts": _shown(case.facts, source)} if "facts" in program.variables() else context


#: What an expression sees of a document.
_SHOWN: Mapping[str, Callable[[Facts], Any]] = {
    "language": lambda facts: facts.language,
    "pages": lambda facts: len(facts.pages),
    "tables": lambda facts: len(facts.tables),
    "text": lambda facts: list(facts.page_texts.values()),
    "numbers": lambda facts: [float(value) for value in facts.numbers],
    "dates": lambda facts: sorted(day.isoformat() for day in facts.days),
}


def _shown(facts: Facts, source: str) -> dict[str, Any]:
    """The facts that the expression names."""
    return {name: show(facts) for name, show in _SHOWN.items() if name in source}


def _refuse_unknown_names(source: str, program: cel.Program, known: frozenset[str]) -> None:
    bound = set(re.findall(r"\.\s*(?:all|exists|exists_one|map|filter)\s*\(\s*(\w+)\s*,", _QUOTED.sub("''", source)))
    functions = {name for name in program.functions() if name[0].isalpha()} - _FUNCTIONS
    unknown = {name for name in program.variables() if not name.startswith("@")} - known - bound | functions
    if unknown:
        raise ValueError(f"unknown name {', '.join(sorted(unknown))}: an expression knows {', '.join(sorted(known))}")


def _refuse_much_work(source: str) -> None:
    count = len(_COMPREHENSION.findall(_QUOTED.sub("''", source)))
    if count > _MOST_COMPREHENSIONS:
        raise ValueError(f"{count} comprehensions, the limit is {_MOST_COMPREHENSIONS}: use `each`, or write two rules")
