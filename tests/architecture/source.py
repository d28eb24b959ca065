"""The repository as the architecture tests see it: its files, its packages, and their syntax trees."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
#: The product, in import order from the bottom up.
PACKAGES: tuple[str, ...] = tuple(PYPROJECT["tool"]["importlinter"]["root_packages"])
#: Folders with Python code that is not part of the product and that the product never imports.
AROUND = ("tests", "bench", "samples")


@dataclass(frozen=True)
class Module:
    """A Python file of the repository; `path` is relative to its root."""

    path: Path

    @cached_property
    def text(self) -> str:
        return (ROOT / self.path).read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def comments(self) -> Iterator[tuple[int, str]]:
        """Line number and text of each comment."""
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string

    def nodes(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))


@cache
def files() -> tuple[Path, ...]:
    """Every file that is committed or about to be, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=60).stdout.decode()
    return tuple(sorted(Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()))


def modules(*folders: str) -> tuple[Module, ...]:
    """The Python files of these top-level folders."""
    return tuple(_module(path) for path in files() if path.suffix == ".py" and path.parts[0] in folders)


@cache
def _module(path: Path) -> Module:
    return Module(path)


def product() -> tuple[Module, ...]:
    """The Python files of the product."""
    return modules(*PACKAGES)
