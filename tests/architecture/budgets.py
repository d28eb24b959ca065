"""The style budgets and how they are measured; `python -m tests.architecture.budgets` prints them as a table."""

from __future__ import annotations

import ast
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tests.architecture.source import modules, product

BODY_MEDIAN = 8
BODY_P95 = 30
BODY_MAX = 60
STORY_MAX = 40
MODULE_MAX = 400
NESTING_MAX = 3
MOCKS_PER_TEST = 0.2

#: The function that tells the story of a stage, by file.
STORIES = {
    "ingest/accept.py": "accept",
    "preprocess/prepare.py": "prepare",
    "inference/route.py": "route",
    "inference/extract.py": "extract",
    "validation/validate.py": "validate",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
#: Calls that put a made-up thing in the place of a real one.
MOCKS = frozenset({"Mock", "MagicMock", "AsyncMock", "NonCallableMock", "PropertyMock", "create_autospec", "patch"})
MOCK_METHODS = frozenset(
    {("monkeypatch", "setattr"), ("monkeypatch", "setitem"), ("patch", "object"), ("patch", "dict")}
)


@dataclass(frozen=True)
class Measured:
    """A number that was measured, and where."""

    where: str
    name: str
    value: int

    def against(self, limit: float, unit: str) -> str:
        """A line of a report: where, what, how much, and how much is allowed."""
        return f"{self.where} {self.name}: {self.value} {unit}, the budget is {limit}"


def over(measured: Sequence[Measured], limit: float) -> list[Measured]:
    """Those above the limit, largest first."""
    return sorted((one for one in measured if one.value > limit), key=lambda one: -one.value)


# ---------------------------------------------------------------- what is measured


@cache
def bodies() -> tuple[Measured, ...]:
    """Lines of each function's body: code only, no docstring, blank line or comment."""
    return tuple(
        Measured(f"{module.path}:{node.lineno}", node.name, body_lines(module.lines, node))
        for module in product()
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
    )


@cache
def lengths() -> tuple[Measured, ...]:
    """Lines of each module, all of them."""
    return tuple(Measured(f"{module.path}:1", "module", len(module.lines)) for module in product())


@cache
def depths() -> tuple[Measured, ...]:
    """How deep if, for, while, with, try and match stand in each other; `elif` is not deeper than `if`."""
    return tuple(
        Measured(f"{module.path}:{node.lineno}", node.name, depth_of(node))
        for module in product()
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
    )


@cache
def mocks() -> tuple[Measured, ...]:
    """Each use of a mock in the tests, one a line."""
    return tuple(
        Measured(f"{module.path}:{call.lineno}", "mock", 1)
        for module in modules("tests")
        for call in module.nodes(ast.Call)
        if is_mock(call.func)
    )


@cache
def tests() -> int:
    """How many test functions there are; a parametrised one counts once."""
    return sum(
        node.name.startswith("test_")
        for module in modules("tests")
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
    )


def median() -> float:
    return statistics.median(one.value for one in bodies())


def p95() -> int:
    """The length that 95 of 100 functions do not exceed."""
    ordered = sorted(one.value for one in bodies())
    return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)]


def mocks_per_test() -> float:
    return len(mocks()) / max(1, tests())


def stories() -> tuple[Measured, ...]:
    """The length of each stage's story, of those that exist."""
    return tuple(one for one in bodies() if STORIES.get(one.where.rpartition(":")[0]) == one.name)


# ---------------------------------------------------------------- how


def body_lines(lines: Sequence[str], node: Function) -> int:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if not body:
        return 0
    code = lines[body[0].lineno - 1 : node.end_lineno]
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in code)


def depth_of(function: Function) -> int:
    """The deepest nesting in a function's body."""
    return max((_depth(child) for child in function.body), default=0)


def _depth(node: ast.AST) -> int:
    """Blocks below and including this node; functions inside it are measured on their own."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return 0
    below = max((_depth(child) for child in _children(node)), default=0)
    return below + isinstance(node, BLOCKS)


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The children, with an `elif` in the place of its own branches."""
    for child in ast.iter_child_nodes(node):
        if isinstance(node, ast.If) and node.orelse == [child] and isinstance(child, ast.If):
            yield from _children(child)
        else:
            yield child


def is_mock(function: ast.expr) -> bool:
    match function:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="mock"), attr=name):
            return name in MOCKS
        case ast.Attribute(value=ast.Name(id=owner), attr=name):
            return owner == "mocker" or (owner, name) in MOCK_METHODS
        case _:
            return False


# ---------------------------------------------------------------- the table


def rows() -> list[tuple[str, str, str, str]]:
    """Figure, value, budget and where the worst stands."""
    return [
        ("functions", str(len(bodies())), "", ""),
        ("function body, median lines", f"{median():g}", str(BODY_MEDIAN), ""),
        ("function body, 95th percentile", str(p95()), str(BODY_P95), ""),
        ("function body, longest", *_worst(bodies, BODY_MAX)),
        ("story of a stage, longest", *_worst(stories, STORY_MAX)),
        ("module, most lines", *_worst(lengths, MODULE_MAX)),
        ("nesting, deepest", *_worst(depths, NESTING_MAX)),
        ("mocks per test", f"{mocks_per_test():.3f}", str(MOCKS_PER_TEST), f"{len(mocks())} in {tests()} tests"),
    ]


def _worst(measure: Callable[[], tuple[Measured, ...]], limit: int) -> tuple[str, str, str]:
    worst = max(measure(), key=lambda one: one.value, default=Measured("-", "", 0))
    return str(worst.value), str(limit), f"{worst.where} {worst.name}"


if __name__ == "__main__":
    table = [("figure", "value", "budget", "where"), *rows()]
    widths = [max(len(row[column]) for row in table) for column in range(4)]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
