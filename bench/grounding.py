"""Invented values with and without grounded decoding, on a real model, and what the constraint costs.

`python -m bench.grounding [--documents 200] [--model FOLDER]`. The documents are drawn here with planted values and
look-alikes (`grounding_corpus.py`), read by the product's parser and by vLLM in this process, 16 at once, twice: by the
JSON Schema of the profile alone, and with its grammar. What comes out is held against the characters of the PDF as
PyMuPDF gives them: a value is printed there, or it is not; it stands in the box that is cited, or it does not.

The speed table has a grammar with and without 10, 1,000 and 10,000 candidates of its own for each request.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from bench.grounding_check import Sheet, Value, judged, sheet_of
from bench.grounding_corpus import Planted, documents
from bench.grounding_speed import COLUMNS, speed
from bench.report import Figure, finish, show
from docmill.errors import ModelError
from docmill.types import Part
from inference.engines.vllm_local import ON_CPU, LocalEngine, LocalSettings, environment
from inference.extract import ExtractConfig, extract
from inference.profile import Profile, load_profiles
from preprocess.budget import Budget, fit
from preprocess.parse import parse
from preprocess.prepare import PrepareConfig

PROFILES: Final = load_profiles(Path(__file__).parent / "grounding_profiles")
MODES: Final = {"schema only": False, "grounded": True}
DOCUMENTS: Final = 200
AT_ONCE: Final = 16
CONTEXT: Final = 2048
ROOM: Final = 1600
DEADLINE_S: Final = 600.0


@dataclass(frozen=True, slots=True)
class Case:
    """A document as the model gets it, and its characters as an independent reader sees them."""

    planted: Planted
    part: Part
    sheet: Sheet

    @property
    def profile(self) -> Profile:
        return PROFILES[self.planted.profile]


@dataclass(slots=True)
class Tally:
    """What one mode gave. `ended` counts documents by how their answer ended: "valid", or the code of the failure."""

    ended: Counter[str] = field(default_factory=Counter)
    values: list[Value] = field(default_factory=list)
    tokens: int = 0

    @property
    def documents(self) -> int:
        return sum(self.ended.values())

    def count(self, what: str, kind: str | None = None) -> int:
        return sum(bool(getattr(value, what)) for value in self.values if kind in (None, value.kind))

    def share(self, what: str, kind: str | None = None) -> float:
        of = sum(kind in (None, value.kind) for value in self.values)
        return self.count(what, kind) / of if of else 1.0


def batches(count: int, model: Path) -> Iterator[list[Case]]:
    """Documents, drawn and parsed as they are asked for; one that does not fit one prompt is a fault of the corpus."""
    config = PrepareConfig(model, ocr=False)
    planted = documents(count)
    while batch := list(islice(planted, AT_ONCE)):
        yield [_case(one, config) for one in batch]


def _case(planted: Planted, config: PrepareConfig) -> Case:
    (part,) = fit(parse(planted.data, planted.name, config), Budget(ROOM)).parts
    return Case(planted, part, sheet_of(planted.data))


async def answer(engine: LocalEngine, case: Case, mode: str, tally: Tally) -> None:
    """One document in one mode; a failure that has a name is counted by it."""
    job = ExtractConfig(f"{case.planted.name}.{mode}", deadline_s=DEADLINE_S, grounded=MODES[mode])
    try:
        extraction = await extract((case.part,), case.profile, engine, job)
    except ModelError as error:
        tally.ended[error.code] += 1
        return
    tally.ended["valid"] += 1
    tally.tokens += extraction.usage.output_tokens
    tally.values += judged(extraction, case.profile.schema, case.planted, case.sheet)


async def measure(settings: LocalSettings, options: argparse.Namespace) -> tuple[dict[str, Tally], list[list[Any]]]:
    """Both modes on each batch of documents in turn: a load on the machine meets both."""
    engine = await LocalEngine.open(settings)
    tallies, began = {mode: Tally() for mode in MODES}, time.monotonic()
    try:
        for batch in batches(options.documents, options.model):
            for mode, tally in tallies.items():
                await asyncio.gather(*(answer(engine, case, mode, tally) for case in batch))
            seconds = time.monotonic() - began
            _progress(tallies, seconds)
            if seconds > 60 * options.minutes:
                break
        _show_values(tallies)
        return tallies, await speed(engine, settings.model) if options.speed else []
    finally:
        await engine.close()


def main() -> int:
    options = _options()
    logging.disable(logging.INFO)
    settings = LocalSettings(
        model=str(options.model),
        precision="fp32",
        context_tokens=CONTEXT,
        max_num_seqs=AT_ONCE,
        dtype="float32",
        enforce_eager=True,
        kv_cache_gib=1,
        omp_threads_bind="nobind",
        more=ON_CPU,
    )
    os.environ.update({**environment(settings), "VLLM_LOGGING_LEVEL": "WARNING"})
    tallies, timings = asyncio.run(measure(settings, options))
    if timings:
        show("16 at once, a constraint of its own for each", COLUMNS, timings)
    details = {mode: {"ended": tally.ended, "values": tally.values} for mode, tally in tallies.items()}
    return finish("grounding", _figures(tallies, timings), details | {"speed": timings})


def _progress(tallies: dict[str, Tally], seconds: float) -> None:
    invented = ", ".join(f"{mode} {tally.count('invented')} invented" for mode, tally in tallies.items())
    print(f"{tallies['grounded'].documents} documents in {seconds:.0f} s: {invented}", flush=True)


def _show_values(tallies: dict[str, Tally]) -> None:
    show("How the answers ended", ["decoding", *_ENDED, "others"], [_ends(*one) for one in tallies.items()])
    kinds = sorted({value.kind for tally in tallies.values() for value in tally.values})
    rows = [_row(mode, tally, kind) for kind in (*kinds, None) for mode, tally in tallies.items()]
    columns = ["field", "decoding", "values", "not as printed", "invented", "right", "right null", "boxed"]
    show("What was printed", columns, rows)


_ENDED: Final = ("valid", "output_truncated", "invalid_output", "empty_output")


def _ends(mode: str, tally: Tally) -> list[object]:
    known = [tally.ended[code] for code in _ENDED]
    return [mode, *known, sum(tally.ended.values()) - sum(known)]


def _row(mode: str, tally: Tally, kind: str | None) -> list[object]:
    counts = [tally.count(what, kind) for what in ("given", "unprinted", "invented")]
    nulls = tally.count("rightly_null", kind)
    boxed = tally.share("boxed", kind) if MODES[mode] else "-"
    return [kind or "all", mode, *counts, tally.share("right", kind), nulls, boxed]


def _figures(tallies: dict[str, Tally], timings: Sequence[Sequence[Any]]) -> list[Figure]:
    plain, grounded = tallies.values()
    documents = grounded.documents
    finished = documents - grounded.ended["output_truncated"]
    figures = [
        Figure("documents", documents, f">= {DOCUMENTS}"),
        Figure("invented_without", plain.count("invented")),
        Figure("invented_with", grounded.count("invented"), "== 0"),
        Figure("unprinted_with", grounded.count("unprinted"), "== 0"),
        Figure("valid_json_without", plain.ended["valid"] / documents),
        Figure("valid_json_with", grounded.ended["valid"] / documents, "== 1"),
        Figure("valid_of_finished_with", grounded.ended["valid"] / max(1, finished), "== 1"),
        Figure("box_holds_value", grounded.share("boxed"), "== 1"),
        Figure("right_without", plain.share("right")),
        Figure("right_with", grounded.share("right")),
    ]
    return figures + [Figure(f"speed_at_{row[1].replace(',', '')}", row[-1]) for row in timings[1:4]]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=DOCUMENTS)
    parser.add_argument("--model", type=Path, default=Path(".models/smollm2"))
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no further documents after so long")
    parser.add_argument("--no-speed", dest="speed", action="store_false", help="leave the speed table out")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
