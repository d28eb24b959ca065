"""Faults caught and false alarms on real documents, and what one result costs.

    python -m bench.validation [FOLDER_OR_PDF ...] [--results 2400] [--seed 6]

Results are made from the documents themselves (bench/truths.py); half get one planted fault (bench/faults.py). A fault
counts as caught only if a finding names the field that is wrong, or for a fault of the whole result the fault's kind.
Half of the results come with citations, half without, as from another tool. The peer is what most pipelines have: a
JSON Schema and a search for each value in the document's text. Time is this process's CPU time, without reading the
document from its store: `first` is the first result on a document, with all that is measured of the document; `again`
is another result on the same document, whose facts are kept.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from jsonschema import Draft202012Validator

from bench.faults import KINDS, PROMPT, Planted
from bench.papers import papers
from bench.report import Figure, finish, show
from bench.truths import SCHEMA, Paper, paper_of, result_of
from docmill.types import Citation, Extraction, Verdict
from validation import facts as measured
from validation.examples import cite, extracted
from validation.fields import leaves
from validation.rules import Ruleset, load_ruleset
from validation.validate import validate

RULES = Path(__file__).parent / "validation_rules.yaml"
#: Pages of a document that counts as one of about ten.
_ABOUT_TEN = range(8, 13)


@dataclass(frozen=True)
class Trial:
    """A result to be judged: correct, or with one fault of a kind."""

    paper: Paper
    extraction: Extraction
    kind: str = ""
    planted: Planted | None = None


@dataclass(frozen=True)
class Judged:
    trial: Trial
    verdict: Verdict
    first_ms: float
    again_ms: float
    peer: frozenset[str]


def main() -> int:
    options = _options()
    ruleset = load_ruleset(RULES)
    known = [paper_of(paper.name, paper.document) for paper in papers(options.documents)]
    usable = [paper for paper in known if paper.amounts and len(paper.text) > 500]
    trials = [*_trials(usable, options.results, Random(options.seed))]
    judged = [_judge(trial, ruleset) for trial in trials]
    kinds, figures = _by_kind(judged), _figures(judged, usable)
    show("planted faults by kind", ("kind", "planted", "caught", "share", "peer", "by rule"), kinds)
    show("false alarms on correct results, by rule", ("rule", "results", "for example"), _alarms(judged))
    show("documents", ("language", "documents", "pages"), _languages(usable))
    return finish("validation", figures, {"kinds": kinds, "missed": _missed(judged), "alarms": _alarms(judged)})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("documents", nargs="*", type=Path, default=[Path("samples/inbox")])
    parser.add_argument("--results", type=int, default=2400)
    parser.add_argument("--seed", type=int, default=6)
    return parser.parse_args()


# ---------------------------------------------------------------- trials


def _trials(known: Sequence[Paper], count: int, random: Random) -> Iterator[Trial]:
    for number in range(count // 2):
        paper = known[number % len(known)]
        result, _ = result_of(paper, random)
        yield Trial(paper, _extraction(result, paper, random, {}))
    names = list(KINDS)
    for number in range(count - count // 2):
        yield _faulty(known, names[number % len(names)], random)


def _faulty(known: Sequence[Paper], kind: str, random: Random) -> Trial:
    """A result with a fault of this kind, on a document that has what it takes."""
    for _ in range(2000):
        paper = random.choice(known)
        result, truths = result_of(paper, random)
        planted = KINDS[kind](paper, result, truths, random)
        if planted is not None:
            return Trial(paper, _extraction(planted.result, paper, random, planted.extraction), kind, planted)
    raise SystemExit(f"no document has what the fault “{kind}” needs")


def _extraction(result: dict[str, Any], paper: Paper, random: Random, said: dict[str, Any]) -> Extraction:
    facts = measured.facts_of(paper.document)
    cited = tuple(cite(result, SCHEMA, facts, {})) if random.random() < 0.5 or "moved" in said else ()
    moved = [_elsewhere(one, paper) if one.path == said.get("moved") else one for one in cited]
    changes = {name: value for name, value in said.items() if name != "moved"}
    return replace(extracted(result, tuple(moved)), **changes)


def _elsewhere(citation: Citation, paper: Paper) -> Citation:
    pages = [page.number for page in paper.document.pages if page.number != citation.page]
    return replace(citation, page=pages[0], bbox=citation.bbox)


def _judge(trial: Trial, ruleset: Ruleset) -> Judged:
    document = trial.paper.document
    times = []
    for first in (True, False):
        if first:
            measured.forget()
        gc.disable()
        start = time.process_time()
        verdict = validate(trial.extraction, document, schema=SCHEMA, ruleset=ruleset, prompt=PROMPT)
        times.append((time.process_time() - start) * 1000)
        gc.enable()
    return Judged(trial, verdict, times[0], times[1], frozenset(_peer(trial)))


def _peer(trial: Trial) -> Iterator[str]:
    """The paths that JSON Schema and a plain search in the text complain of."""
    result = trial.extraction.result
    for error in Draft202012Validator(SCHEMA).iter_errors(result):
        yield "".join(f"/{key}" for key in error.absolute_path)
    for leaf in leaves(result, SCHEMA):
        if leaf.grounded and leaf.text not in trial.paper.text:
            yield leaf.path


# ---------------------------------------------------------------- what came of it


def caught_by(judged: Judged) -> str | None:
    """The rule whose finding names what was planted."""
    planted = judged.trial.planted
    assert planted is not None, "only faulty results are asked"
    for finding in judged.verdict.findings:
        if finding.rule == planted.rule or any(_names(finding.path, path) for path in planted.paths):
            return finding.rule
    return None


def _names(found: str | None, path: str) -> bool:
    return bool(found) and f"{found}/".startswith(f"{path}/")


def _by_kind(judged: Sequence[Judged]) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for kind in KINDS:
        mine = [one for one in judged if one.trial.kind == kind]
        rules = Counter(rule for one in mine if (rule := caught_by(one)))
        caught, peer = sum(rules.values()), sum(map(_peer_caught, mine))
        named = ", ".join(f"{rule} {count}" for rule, count in rules.most_common(4))
        rows.append((kind, len(mine), caught, _share(caught, len(mine)), _share(peer, len(mine)), named))
    return rows


def _peer_caught(judged: Judged) -> bool:
    planted = judged.trial.planted
    whole = "" in judged.peer and planted is not None and planted.rule == "schema-violated"
    return whole or any(_names(found, path) for found in judged.peer for path in (planted.paths if planted else ()))


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _alarms(judged: Sequence[Judged]) -> list[tuple[str, int, str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for one in judged:
        for rule in {finding.rule for finding in one.verdict.findings} if not one.trial.kind else ():
            finding = next(finding for finding in one.verdict.findings if finding.rule == rule)
            found[rule].append(f"{one.trial.paper.name}: {finding.message[:110]}")
    return [(rule, len(said), said[0]) for rule, said in sorted(found.items(), key=lambda item: -len(item[1]))]


def _missed(judged: Sequence[Judged]) -> list[dict[str, Any]]:
    """The faults that no finding names, to look at."""
    return [
        {"kind": one.trial.kind, "document": one.trial.paper.name, "result": one.trial.extraction.result,
         "paths": one.trial.planted.paths if one.trial.planted else (),
         "findings": [f"{finding.rule} {finding.path}" for finding in one.verdict.findings]}
        for one in judged
        if one.trial.kind and caught_by(one) is None
    ]  # fmt: skip


def _languages(known: Sequence[Paper]) -> list[tuple[str, int, int]]:
    return [
        (name, len(mine), sum(len(paper.document.pages) for paper in mine))
        for name, chinese in (("Chinese", True), ("English and others", False))
        if (mine := [paper for paper in known if paper.chinese == chinese])
    ]


def _figures(judged: Sequence[Judged], known: Sequence[Paper]) -> list[Figure]:
    right = [one for one in judged if not one.trial.kind]
    wrong = [one for one in judged if one.trial.kind]
    ten = [one for one in judged if len(one.trial.paper.document.pages) in _ABOUT_TEN] or list(judged)
    first, again = sorted(one.first_ms for one in ten), sorted(one.again_ms for one in ten)
    return [
        Figure("results", len(judged), ">= 2000"),
        Figure("kinds", len(KINDS), ">= 25"),
        Figure("caught", sum(caught_by(one) is not None for one in wrong) / len(wrong), ">= 0.99"),
        Figure("false_alarms", sum(bool(one.verdict.findings) for one in right) / len(right), "<= 0.01"),
        Figure("peer_caught", sum(map(_peer_caught, wrong)) / len(wrong)),
        Figure("peer_false_alarms", sum(bool(one.peer) for one in right) / len(right)),
        Figure("ms_first_median", statistics.median(first), "<= 5"),
        Figure("ms_first_p95", first[int(len(first) * 0.95)]),
        Figure("ms_again_median", statistics.median(again)),
        Figure("ms_again_p95", again[int(len(again) * 0.95)]),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
