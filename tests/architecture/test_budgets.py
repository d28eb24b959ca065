"""Functions and modules stay small, flat and documented; each offender is named with its number and the budget."""

from __future__ import annotations

import ast
import re

from tests.architecture import budgets
from tests.architecture.source import AROUND, PACKAGES, Module, modules, product

#: The one module that reads the environment.
SETTINGS = "workers/settings.py"
BROAD = {"Exception", "BaseException"}
#: Calls that put a caught error on record.
LOGS = {"say", "debug", "info", "warning", "error", "exception", "critical", "log"}
IGNORE = re.compile(r"#\s*(type:\s*ignore|noqa|ruff:|mypy:|pragma:)")
#: An ignore names its rule and is followed by a comment that gives the reason.
GOOD_IGNORE = re.compile(r"#\s*(type:\s*ignore\[[\w, -]+\]|noqa:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*)\s+#?\s*\w.{7,}")
EMPTY_NAMES = re.compile(r"(Manager|Helpers?|Utils?|Utilities|Base)$")


def listed(offenders: list[str], rule: str) -> str:
    return f"{len(offenders)} against the rule: {rule}\n" + "\n".join(offenders)


def test_half_of_the_functions_are_short() -> None:
    assert budgets.median() <= budgets.BODY_MEDIAN, f"median {budgets.median()} lines, budget {budgets.BODY_MEDIAN}"


def test_nearly_all_functions_fit_a_glance() -> None:
    longest = [one.against(budgets.BODY_P95, "lines") for one in budgets.over(budgets.bodies(), budgets.BODY_P95)]
    assert budgets.p95() <= budgets.BODY_P95, listed(longest, f"95 of 100 functions have {budgets.BODY_P95} lines")


def test_no_function_is_longer_than_the_hard_limit() -> None:
    too_long = [one.against(budgets.BODY_MAX, "lines") for one in budgets.over(budgets.bodies(), budgets.BODY_MAX)]
    assert not too_long, listed(too_long, "function body length")


def test_the_story_of_each_stage_is_told_in_forty_lines() -> None:
    told = {one.where.rpartition(":")[0] for one in budgets.stories()}
    assert told == set(budgets.STORIES), f"no story in {sorted(set(budgets.STORIES) - told)}"
    too_long = [one.against(budgets.STORY_MAX, "lines") for one in budgets.over(budgets.stories(), budgets.STORY_MAX)]
    assert not too_long, listed(too_long, "length of a story")


def test_no_module_is_longer_than_the_limit() -> None:
    too_long = [one.against(budgets.MODULE_MAX, "lines") for one in budgets.over(budgets.lengths(), budgets.MODULE_MAX)]
    assert not too_long, listed(too_long, "module length")


def test_blocks_do_not_stand_deep_in_each_other() -> None:
    deep = [one.against(budgets.NESTING_MAX, "levels") for one in budgets.over(budgets.depths(), budgets.NESTING_MAX)]
    assert not deep, listed(deep, "nesting of if, for, while, with, try and match")


def test_tests_use_real_things_rather_than_mocks() -> None:
    where = [one.where for one in budgets.mocks()]
    limit = budgets.MOCKS_PER_TEST
    assert budgets.mocks_per_test() <= limit, listed(
        where, f"{budgets.mocks_per_test():.3f} mocks per test, {limit} allowed"
    )


def test_a_broad_except_stands_in_workers_only_and_leaves_a_record() -> None:
    offenders = [
        f"{module.path}:{handler.lineno} "
        + ("is silent" if module.path.parts[0] == "workers" else "is outside workers/")
        for module in product()
        for handler in module.nodes(ast.ExceptHandler)
        if is_broad(handler.type) and (module.path.parts[0] != "workers" or not leaves_a_record(handler))
    ]
    assert not offenders, listed(offenders, "broad except: 0 outside workers/, and each logs or raises again")


def is_broad(caught: ast.expr | None) -> bool:
    match caught:
        case None:
            return True
        case ast.Tuple(elts=several):
            return any(is_broad(one) for one in several)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in BROAD
        case _:
            return False


def leaves_a_record(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) or is_log_call(node) for node in ast.walk(handler))


def is_log_call(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in LOGS
        case _:
            return False


def test_nothing_suppresses_every_error() -> None:
    offenders = [
        f"{module.path}:{call.lineno}"
        for module in product()
        for call in module.nodes(ast.Call)
        if name_of(call.func) == "suppress" and any(is_broad(argument) for argument in call.args)
    ]
    assert not offenders, listed(offenders, "suppress(Exception): 0 allowed")


def name_of(function: ast.expr) -> str:
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_only_the_settings_read_the_environment() -> None:
    offenders = [
        f"{module.path}:{line}"
        for module in product()
        if str(module.path) != SETTINGS
        for line in environment_reads(module)
    ]
    assert not offenders, listed(offenders, f"the environment is read in {SETTINGS} only")


def environment_reads(module: Module) -> list[int]:
    names = {"environ", "environb", "getenv", "getenvb", "putenv"}
    used = [
        node.lineno
        for node in module.nodes(ast.Attribute)
        if node.attr in names and isinstance(node.value, ast.Name) and node.value.id == "os"
    ]
    imported = [
        node.lineno
        for node in module.nodes(ast.ImportFrom)
        if node.module == "os" and names & {alias.name for alias in node.names}
    ]
    return used + imported


def test_every_module_and_package_says_what_it_is() -> None:
    silent = [f"{module.path}:1" for module in product() if not (ast.get_docstring(module.tree) or "").strip()]
    assert not silent, listed(silent, "a docstring of the module or package")


def test_every_ignore_names_its_rule_and_its_reason() -> None:
    offenders = [
        f"{module.path}:{line} {comment}"
        for module in modules(*PACKAGES, *AROUND)
        for line, comment in module.comments()
        if IGNORE.search(comment) and not GOOD_IGNORE.search(comment)
    ]
    assert not offenders, listed(offenders, "# type: ignore[rule]  # reason; # noqa: RULE  # reason")


def test_no_class_or_module_has_a_name_that_says_nothing() -> None:
    classes = [
        f"{module.path}:{node.lineno} {node.name}"
        for module in product()
        for node in module.nodes(ast.ClassDef)
        if EMPTY_NAMES.search(node.name)
    ]
    files = [f"{module.path}:1" for module in product() if EMPTY_NAMES.search(module.path.stem.title())]
    assert not classes + files, listed(classes + files, "no Manager, Helper, Util or Base")
