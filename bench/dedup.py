"""Near-duplicates on a corpus with planted repeats and template twins: what is found, what is wrongly merged, how fast.

`python -m bench.dedup [--documents N] [--database-url URL]`. The product's own path: the likeness of the text, then
check and insert in PostgreSQL (an embedded one is started), one transaction a document, as a worker does. Peers in the
same run: datasketch's MinHashLSH and rensa's RMinHashLSH in memory, each alone, with the same shingles; CPU seconds.
"""

from __future__ import annotations

import argparse
import gc
import re
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import psutil
from sqlalchemy import Engine, insert, text

from bench.dedup_corpus import DOUBTFUL, REPEATS, TWINS, Planted, planted
from bench.report import Figure, finish, show
from docmill.likeness import Likeness, jaccard
from docmill.types import BBox, Block, BlockKind, Page, Printed
from preprocess.dedup import BANDS, PERMUTATIONS, ROWS, comparable_text, likeness, signature
from preprocess.shingles import SHINGLE
from storage.database import connect
from storage.migrate import upgrade
from storage.near_duplicates import link_near_duplicate
from storage.rules import SIMILAR
from storage.schema import documents
from workers.local import EmbeddedPostgres

SEED: Final = 20_251
MILLION: Final = 1_000_000
_BOX: Final = BBox(0.0, 0.0, 1.0, 1.0)
_CHINESE: Final = re.compile(r"[\u3400-\u9fff]")


@dataclass
class Outcome:
    """What one way of finding repeats did: for each document in order the earlier one that it was merged with."""

    name: str
    merged: list[int | None] = field(default_factory=list)
    template: list[int | None] = field(default_factory=list)
    cpu: dict[str, float] = field(default_factory=dict)
    wall: float = 0.0
    bytes_per_document: float = 0.0
    rss_mib: float = 0.0


def pages_of(one: Planted) -> tuple[Page, ...]:
    """The document as the parser gives it."""
    header = [Block(BlockKind.HEADER, 1, _BOX, Printed(one.header))] if one.header else []
    lines = [Block(BlockKind.PARAGRAPH, 1, _BOX, Printed(line)) for line in one.text.split("\n\n")]
    return (Page(1, 595, 842, (*header, *lines)),)


@contextmanager
def on_cpu(outcome: Outcome, phase: str) -> Iterator[None]:
    start = time.process_time()
    yield
    outcome.cpu[phase] = outcome.cpu.get(phase, 0.0) + time.process_time() - start


# ---------------------------------------------------------------- the product


def of_product(corpus: Sequence[Planted], engine: Engine) -> tuple[Outcome, list[Likeness]]:
    outcome, begin = Outcome("docmill"), time.perf_counter()
    pages = [pages_of(one) for one in corpus]
    with on_cpu(outcome, "signature"):
        sketches = [signature(comparable_text(page)) for page in pages]
    with on_cpu(outcome, "shingles and facts"):
        likes = [likeness(page, sketch) for page, sketch in zip(pages, sketches, strict=True)]
    _accept(engine, len(corpus))
    with on_cpu(outcome, "check and insert"):
        for number, like in enumerate(likes):
            with engine.begin() as connection:
                link = link_near_duplicate(connection, "bench", f"doc_{number:024}", like)
            earlier = int(link.document_id[4:]) if link else None
            outcome.merged.append(earlier if link and link.repeats else None)
            outcome.template.append(None if link and link.repeats else earlier)
    outcome.wall = time.perf_counter() - begin
    outcome.bytes_per_document = _index_bytes(engine) / len(corpus)
    outcome.rss_mib = psutil.Process().memory_info().rss / 1024**2
    return outcome, likes


def _accept(engine: Engine, count: int) -> None:
    fixed = {"tenant": "bench", "size_bytes": 1, "name": "a.pdf", "source": "cli", "blob_key": "b"}
    rows = [{"document_id": f"doc_{number:024}", "sha256": str(number), **fixed} for number in range(count)]
    with engine.begin() as connection:
        connection.execute(insert(documents), rows)


def _index_bytes(engine: Engine) -> int:
    sizes = "SELECT pg_total_relation_size('minhash_bands') + pg_total_relation_size('likenesses')"
    with engine.connect() as connection:
        return int(connection.execute(text(sizes)).scalar_one())


# ---------------------------------------------------------------- peers


def shingles_of(words: str) -> set[str]:
    """As the peers' users make them: in Python."""
    plain = re.sub(r"[\W_]+", " ", words.casefold()).strip()
    solid = plain.replace(" ", "")
    if len(_CHINESE.findall(solid)) > 0.2 * len(solid):
        return {solid[at : at + SHINGLE] for at in range(len(solid) - SHINGLE + 1)}
    tokens = plain.split()
    return {" ".join(tokens[at : at + SHINGLE]) for at in range(len(tokens) - SHINGLE + 1)}


def _check_and_insert(index: Any, sketches: Sequence[Any]) -> Iterator[int | None]:
    """For each sketch the earlier one that it is most like, if it is like enough; then it joins the index."""
    for number, sketch in enumerate(sketches):
        found = index.query(sketch)
        best = max(found, key=lambda other, own=sketch: own.jaccard(sketches[other]), default=None)  # type: ignore[misc]  # mypy sees no default
        yield best if best is not None and sketch.jaccard(sketches[best]) >= SIMILAR else None
        index.insert(number, sketch)


def with_datasketch(shingles: Sequence[set[str]]) -> Outcome:
    from datasketch import MinHash, MinHashLSH

    outcome = Outcome("datasketch MinHashLSH")
    with on_cpu(outcome, "signature"):
        encoded = ([shingle.encode() for shingle in one] for one in shingles)
        sketches = MinHash.bulk(encoded, num_perm=PERMUTATIONS)
    before = _rss()
    index = MinHashLSH(threshold=SIMILAR, num_perm=PERMUTATIONS, params=(BANDS, ROWS))
    with on_cpu(outcome, "check and insert"):
        outcome.merged.extend(_check_and_insert(index, sketches))
    return _sized(outcome, before, kept=4 * PERMUTATIONS)


def with_rensa(shingles: Sequence[set[str]]) -> Outcome:
    from rensa import RMinHash, RMinHashLSH

    outcome, sketches = Outcome("rensa RMinHashLSH"), []
    with on_cpu(outcome, "signature"):
        for one in shingles:
            sketch = RMinHash(num_perm=PERMUTATIONS, seed=SEED)
            sketch.update(list(one))
            sketches.append(sketch)
    before = _rss()
    index = RMinHashLSH(threshold=SIMILAR, num_perm=PERMUTATIONS, num_bands=16)
    with on_cpu(outcome, "check and insert"):
        outcome.merged.extend(_check_and_insert(index, sketches))
    return _sized(outcome, before, kept=4 * PERMUTATIONS)


def _rss() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def _sized(outcome: Outcome, before: int, *, kept: int) -> Outcome:
    """The index in memory, and the signatures that it is confirmed with."""
    outcome.bytes_per_document = (_rss() - before) / len(outcome.merged) + kept
    outcome.rss_mib = _rss() / 1024**2
    return outcome


def of_peer(peer: Callable[[Sequence[set[str]]], Outcome], corpus: Sequence[Planted]) -> Outcome:
    begin, start = time.perf_counter(), time.process_time()
    shingles = [shingles_of(one.text) for one in corpus]
    took = time.process_time() - start
    outcome = peer(shingles)
    outcome.cpu = {"shingles and facts": took, **outcome.cpu}
    outcome.wall = time.perf_counter() - begin
    return outcome


def peers(corpus: Sequence[Planted]) -> Iterator[Outcome]:
    """Each in a process of its own, so that its memory is its own."""
    for peer in (with_datasketch, with_rensa):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            yield alone.submit(partial(of_peer, peer), corpus).result()


# ---------------------------------------------------------------- judgement


def due(corpus: Sequence[Planted], likes: Sequence[Likeness]) -> list[bool]:
    """Whether a document truly repeats an earlier one with a Jaccard index of 0.8 at least."""
    seen: dict[int, list[bytes]] = defaultdict(list)
    answers = []
    for one, like in zip(corpus, likes, strict=True):
        earlier = seen[one.group]
        certain = one.how not in DOUBTFUL
        answers.append(certain and any(jaccard(like.shingles, other) >= SIMILAR for other in earlier))
        if certain:
            earlier.append(like.shingles)
    return answers


def judged(outcome: Outcome, corpus: Sequence[Planted], expected: Sequence[bool]) -> dict[str, Any]:
    right = wrong = false = 0
    for one, other in zip(corpus, outcome.merged, strict=True):
        if other is not None:
            right += one.group == corpus[other].group
            wrong += one.group != corpus[other].group
            false += one.group != corpus[other].group and {one.how, corpus[other].how} & {*TWINS} != set()
    found = sum(
        awaited and other is not None and corpus[other].group == one.group
        for one, other, awaited in zip(corpus, outcome.merged, expected, strict=True)
    )
    return {
        "precision": right / max(1, right + wrong),
        "recall": found / max(1, sum(expected)),
        "wrong": wrong,
        "false_merges_on_twins": false,
    }


def by_kind(outcome: Outcome, corpus: Sequence[Planted], expected: Sequence[bool]) -> Iterator[tuple[object, ...]]:
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for number, one in enumerate(corpus):
        counts, other = kinds[one.how], outcome.merged[number]
        counts["all"] += 1
        counts["due"] += expected[number]
        counts["merged"] += other is not None
        counts["wrong"] += other is not None and corpus[other].group != one.group
        counts["template"] += outcome.template[number] is not None
    for how in ("original", *REPEATS, *DOUBTFUL, *TWINS):
        counts = kinds[how]
        yield how, counts["all"], counts["due"], counts["merged"], counts["wrong"], counts["template"]


def main() -> int:
    options = _options()
    corpus = planted(options.documents, SEED)
    with database(options.database_url) as engine:
        product, likes = of_product(corpus, engine)
    outcomes = [product, *peers(corpus)]
    expected = due(corpus, likes)
    columns = ["kind", "documents", "due", "merged", "wrongly", "same template"]
    show(f"docmill on {len(corpus)} documents ({sum(one.chinese for one in corpus)} Chinese)", columns,
         by_kind(product, corpus, expected))  # fmt: skip
    verdicts = {outcome.name: judged(outcome, corpus, expected) for outcome in outcomes}
    _show_side_by_side(outcomes, verdicts, len(corpus))
    return finish("dedup", _figures(outcomes, verdicts, len(corpus)), {"verdicts": verdicts, "seed": SEED})


def _show_side_by_side(outcomes: Sequence[Outcome], verdicts: dict[str, Any], count: int) -> None:
    columns = ["way", "precision", "recall", "false merges", "of twins", "signature/s", "shingles, facts/s"]
    columns += ["index/s", "all/s", "wall s", "index MB/million", "RSS MiB"]
    show("side by side (documents per CPU second)", columns, [_row(one, verdicts[one.name], count) for one in outcomes])


def _row(outcome: Outcome, verdict: dict[str, Any], count: int) -> tuple[object, ...]:
    phases = ("signature", "shingles and facts", "check and insert")
    speeds = [round(count / outcome.cpu[phase]) for phase in phases]
    quality = (verdict["precision"], verdict["recall"], verdict["wrong"], verdict["false_merges_on_twins"])
    memory = round(outcome.bytes_per_document * MILLION / 1e6)
    return outcome.name, *quality, *speeds, _speed(outcome, count), round(outcome.wall), memory, round(outcome.rss_mib)


def _speed(outcome: Outcome, count: int) -> int:
    return round(count / sum(outcome.cpu.values()))


def _figures(outcomes: Sequence[Outcome], verdicts: dict[str, Any], count: int) -> list[Figure]:
    product, datasketch, rensa = outcomes
    found, peer = verdicts[product.name], verdicts[datasketch.name]
    return [
        Figure("documents", count, ">= 20000"),
        Figure("recall", found["recall"], ">= 0.99"),
        Figure("precision", found["precision"], ">= 0.999"),
        Figure("false_merges_on_twins", found["false_merges_on_twins"], "== 0"),
        Figure("datasketch_false_merges_on_twins", peer["false_merges_on_twins"]),
        Figure("documents_per_second", _speed(product, count)),
        Figure("of_datasketch", _speed(product, count) / _speed(datasketch, count)),
        Figure("of_rensa", _speed(product, count) / _speed(rensa, count)),
        Figure("index_bytes_per_document", product.bytes_per_document),
    ]


@contextmanager
def database(url: str | None) -> Iterator[Engine]:
    """An empty database: on the server that is given, or on one that is started."""
    if url:
        upgrade(url)
        yield connect(url)
        return
    home = Path(tempfile.mkdtemp(prefix="docmill-bench-"))
    server = EmbeddedPostgres(home)
    try:
        upgrade(server.url)
        engine = connect(server.url)
        yield engine
        engine.dispose()
    finally:
        server.stop()
        shutil.rmtree(home)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--database-url", help="an empty PostgreSQL database; without it one is started")
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
