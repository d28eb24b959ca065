"""Shadow probes: documents whose answer is known, through the front door at a small share of the traffic.

They say how long a document takes from end to end, whether anybody comes by or not, and whether what comes out is
right. They are jobs of a tenant of their own, which results, views and bills leave out; `gauges.py` tells Prometheus.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from docmill.log import logger, say
from docmill.types import Heat, Source
from storage.probes import Ended, Judged, Traffic
from storage.rules import PROBE_TENANT, WITH_RESULT
from workers.intake import submit
from workers.services import Services

log = logger("probes")

PROFILE: Final = "transaction-monitoring"
#: More than so many at a look would be a load of their own.
AT_ONCE: Final = 10
#: A window that makes a probe warm from the start: its deadline is near, and nobody waits.
WARM_WINDOW_S: Final = 400
COLD_WINDOW_S: Final = 86_400
RIGHT, WRONG, FAILED = "right", "wrong", "failed"
#: How a probe ends: what is made of its answer, and whether it was in time.
ENDS: Final = ((RIGHT, True), (RIGHT, False), (WRONG, False), (FAILED, False))
_WORDS: Final = ("ledger", "branch", "quarter", "notice", "report", "period", "record", "office", "review", "margin")
#: A page holds so many words in lines of ten.
_WORDS_A_PAGE: Final = 450


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of probes: how soon, and how long. `window_s` 0: somebody waits."""

    window_s: int
    words: int


#: Sent in turn; somebody waits for every other one.
KINDS: Final = tuple(
    Kind(window_s, words) for words in (20, 700, 1900) for window_s in (0, WARM_WINDOW_S, 0, COLD_WINDOW_S)
)


@dataclass(frozen=True, slots=True)
class Probe:
    """A document and what its result must say."""

    name: str
    data: bytes
    expected: Mapping[str, str]


def tick(use: Services) -> None:
    """Judge the probes that are over, and send what is due."""
    every_s, share = use.settings.probe_every_s, use.settings.probe_share
    if not every_s:
        return
    for ended, judged in use.probes.settle(lambda one: judge(one, use.settings.probe_in_time_s)):
        tell(ended, judged)
    for _ in range(due(use.probes.traffic(), share=share, every_s=every_s)):
        send(make(time.time_ns()), use)


def tell(ended: Ended, judged: Judged) -> None:
    """A probe that is wrong is for somebody to look at: the line names its job."""
    say(
        log,
        f"probe_{judged.outcome}",
        level=logging.INFO if judged.outcome == RIGHT else logging.WARNING,
        job_id=ended.job_id,
        heat=ended.heat,
        length=ended.length,
        took=ended.seconds,
        in_time=judged.in_time,
    )


def due(traffic: Traffic, *, share: float, every_s: float) -> int:
    """How many probes are due: a share of the last minute's documents, and one where the last was long ago."""
    missing = int(share * traffic.documents) - traffic.probes
    at_least = int(traffic.last_s is None or traffic.last_s >= every_s)
    return min(AT_ONCE, max(missing, at_least))


def judge(ended: Ended, in_time_s: Mapping[str, float]) -> Judged:
    """Right if the result says all that is expected; what failed or is wrong is not in time, however fast it was."""
    if ended.status not in WITH_RESULT or ended.result is None:
        return Judged(FAILED, False)
    if not says(ended.result, ended.expected):
        return Judged(WRONG, False)
    return Judged(RIGHT, ended.seconds <= in_time_s.get(ended.heat or Heat.COLD, COLD_WINDOW_S))


def says(result: Mapping[str, Any], expected: Mapping[str, str]) -> bool:
    """Whether every expected value stands in its field: a currency before an amount is no mistake."""
    return all(text in str(result.get(name)) for name, text in expected.items())


def send(probe: tuple[Kind, Probe], use: Services) -> None:
    """One probe through the door that all others go through."""
    kind, known = probe
    receipt = submit(
        known.data,
        name=known.name,
        tenant=PROBE_TENANT,
        profile_name=PROFILE,
        source=Source.CLI,
        use=use,
        somebody_waits=kind.window_s == 0,
        window_s=kind.window_s,
    )
    if receipt.job_id is not None:
        use.probes.add(receipt.job_id, known.expected)


def make(number: int) -> tuple[Kind, Probe]:
    """The probe of this number: no two are the same document, or repeat each other's facts."""
    draw = random.Random(number)
    kind = draw.choice(KINDS)
    account = f"ACC-{draw.randrange(10**8, 10**9)}"
    amount = f"{draw.randrange(10_000, 99_999):,}.{draw.randrange(10, 99)}"
    head = (
        f"Transaction notice {number}",
        f"Account: {account}",
        f"Counterparty: Probe Trading {draw.randrange(10**6)} Ltd",
        f"Transaction amount: USD {amount}",
        f"Date: 2024-{draw.randrange(1, 13):02d}-{draw.randrange(1, 29):02d}",
    )
    words = draw.choices(_WORDS, k=kind.words)
    lines = [*head, *(" ".join(words[start : start + 10]) for start in range(0, len(words), 10))]
    return kind, Probe(f"probe-{number}.pdf", pdf_of(lines), {"account": account, "amount": amount})


def pdf_of(lines: list[str]) -> bytes:
    """Lines of text, page after page."""
    import pymupdf  # every worker imports the tasks, and only the one that sends probes needs it

    document = pymupdf.open()
    of_page = _WORDS_A_PAGE // 10
    for start in range(0, len(lines), of_page):
        document.new_page().insert_text((60, 60), lines[start : start + of_page], fontsize=10)
    return bytes(document.tobytes(deflate=True))
