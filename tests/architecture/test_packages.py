"""Imports point down only, and no package stands outside of the check."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.architecture.source import AROUND, PACKAGES, PYPROJECT, ROOT, files, product

FOUND = {path.parts[0] for path in files() if path.suffix == ".py" and len(path.parts) > 1} - set(AROUND)


def test_every_package_on_disk_is_on_the_linters_list() -> None:
    assert set(PACKAGES) == FOUND, "folders with Python code against [tool.importlinter] root_packages"


def test_every_package_on_disk_goes_into_the_wheel() -> None:
    included = {pattern.removesuffix("*") for pattern in PYPROJECT["tool"]["setuptools"]["packages"]["find"]["include"]}
    assert included == FOUND, "folders with Python code against [tool.setuptools.packages.find] include"


def test_every_package_on_disk_is_type_checked() -> None:
    assert set(PYPROJECT["tool"]["mypy"]["packages"]) == FOUND, "folders with Python code against [tool.mypy] packages"


def test_every_package_has_its_storey() -> None:
    (contract,) = [one for one in PYPROJECT["tool"]["importlinter"]["contracts"] if one["type"] == "layers"]
    placed = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
    assert sorted(placed) == sorted(FOUND)


def test_the_imports_keep_the_contracts() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_comes_from_here_and_not_from_a_namesake(package: str) -> None:
    spec = importlib.util.find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).resolve().is_relative_to(ROOT), (
        f"import {package} gives {spec.origin}, not {ROOT / package}"
    )


def test_the_product_imports_nothing_that_stands_around_it() -> None:
    offenders = [
        f"{module.path}:{node.lineno} imports {name}"
        for module in product()
        for node in module.nodes(ast.Import, ast.ImportFrom)
        for name in imported(node)
        if name.split(".")[0] in AROUND
    ]
    assert not offenders, "\n".join(offenders)


def imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


def test_every_data_file_of_a_package_goes_into_the_wheel() -> None:
    patterns = PYPROJECT["tool"]["setuptools"]["package-data"]
    missing = [
        str(path)
        for path in files()
        if path.parts[0] in PACKAGES and path.suffix != ".py"
        if not any(fnmatch("/".join(path.parts[1:]), pattern) for pattern in patterns.get(path.parts[0], []))
    ]
    assert not missing, f"{missing} match no pattern of [tool.setuptools.package-data]: an installed docmill lacks them"
