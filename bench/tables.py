"""How well tables are read: `python -m bench.tables --gt FOLDER`, where FOLDER holds `SET/pdf` and `SET/gt`.

The scorer (`score_tables.py`, in the folder above) compares neighbouring cells as the ICDAR 2013 competition does. Each
reader runs in a process of its own, one after the other, with its models loaded once; its seconds are CPU seconds of
that process and its children.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil
import pymupdf

from bench.report import RESULTS, Figure, finish, show
from bench.table_readers import READERS

LEADER: Final = "pymupdf-html"
OURS: Final = "docmill"
_COLUMNS: Final = ("set", "reader", "P", "R", "F1 micro", "F1 document", "tables", "perfect", "spurious", "CPU s/page")


def main() -> int:
    asked = _arguments()
    if asked.reader:
        _read_all(asked.reader, sorted(asked.gt.glob("*/pdf/*.pdf")), asked.out)
        return 0
    scores = {reader: _measured(reader, asked.gt) for reader in READERS}
    columns = (
        "set",
        "reader",
        "P",
        "R",
        "F1 micro",
        "F1 document",
        "tables",
        "perfect",
        "spurious",
        "CPU s/page median",
    )
    show("Tables, by the relations of neighbouring cells", columns, _rows(scores))
    return finish("tables", _figures(scores), scores)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gt", type=Path, required=True, help="folder with SET/pdf and SET/gt")
    parser.add_argument("--reader", choices=READERS, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(reader: str, gt: Path) -> dict[str, Any]:
    """{set: score} of one reader, run in a new process."""
    out = RESULTS / "tables" / reader
    command = [sys.executable, "-m", "bench.tables", "--gt", gt, "--reader", reader, "--out", out]
    subprocess.run(command, check=True, cwd=Path(__file__).parent.parent)
    scorer = _scorer(gt)
    return {kind.name: _score(scorer, kind, out / kind.name) for kind in sorted(gt.iterdir()) if kind.is_dir()}


def _scorer(gt: Path) -> Any:
    spec = importlib.util.spec_from_file_location("score_tables", gt.resolve().parent / "score_tables.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"no score_tables.py above {gt}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _score(scorer: Any, kind: Path, predictions: Path) -> dict[str, Any]:
    read = scorer.load_dir(str(predictions))
    score = scorer.score_set(scorer.load_dir(str(kind / "gt")), read)
    score["cpu_seconds_page_median"] = median(form["cpu_seconds_page"] for form in read.values())
    score["per_doc"] = {name: {key: doc[key] for key in ("p", "r", "f1")} for name, doc in score["per_doc"].items()}
    return dict(score)


def _read_all(reader: str, paths: list[Path], out: Path) -> None:
    """Every PDF read by one reader, one JSON file each; the first is read twice, so that models are loaded before."""
    read = READERS[reader]
    read(paths[0])
    for path in paths:
        before = _cpu_seconds()
        form = read(path)
        used = _cpu_seconds() - before
        with pymupdf.open(path) as document:
            form["cpu_seconds_page"] = used / max(1, document.page_count)
        target = out / path.parent.parent.name / f"{path.stem}.json"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(form, ensure_ascii=False))


def _cpu_seconds() -> float:
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    times = [process.cpu_times() for process in processes]
    return sum(one.user + one.system for one in times)


def _rows(scores: dict[str, dict[str, Any]]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for kind in scores[OURS]:
        for reader, by_set in scores.items():
            score = by_set[kind]
            micro, tables = score["micro"], score["tables"]
            accuracy = (micro["p"], micro["r"], micro["f1"], score["doc_avg"]["f1"])
            counts = (tables["gt"], tables["perfect"], tables["spurious"])
            rows.append((kind, reader, *accuracy, *counts, score["cpu_seconds_page_median"]))
    return rows


def _figures(scores: dict[str, dict[str, Any]]) -> list[Figure]:
    ours, leader = scores[OURS], scores[LEADER]
    icdar, theirs = ours["icdar2013"], leader["icdar2013"]
    pages, their_pages = icdar["cpu_seconds_page_median"], theirs["cpu_seconds_page_median"]
    return [
        Figure("icdar2013_micro", icdar["micro"]["f1"], ">= 0.975"),
        Figure("icdar2013_document", icdar["doc_avg"]["f1"], ">= 0.98"),
        Figure("icdar2013_cpu_s_page", pages, "<= 0.45"),
        Figure("extra_document", ours["extra"]["doc_avg"]["f1"], ">= 0.9"),
        Figure("consensus_micro", ours["consensus"]["micro"]["f1"], "== 1"),
        Figure("error_ratio_micro", (1 - icdar["micro"]["f1"]) / (1 - theirs["micro"]["f1"])),
        Figure("cpu_ratio", pages / their_pages),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
