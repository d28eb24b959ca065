"""Everything that can break is broken while work goes through: nothing may be lost, done twice, or stuck.

`python -m bench.chaos [--jobs 500] [--kills 50] [--seconds 300] [--seed N]`. A whole stack of real parts (Valkey,
PostgreSQL, workers of each kind, the API; the engine is the scripted one, with a child process) under its own
supervisor. Files of every kind come through all doors, evenly over the time; meanwhile the blows fall that the seed has
drawn.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from psycopg import OperationalError

from bench.chaos_audit import Audit, audit, ended_jobs, recovery
from bench.chaos_blows import Blows, Fallen
from bench.chaos_client import Clients
from bench.chaos_plan import DEADLY, TENANTS, VIP, blows, works
from bench.report import Figure, finish, show
from storage.api_keys import create
from tests.stack import QUICK, Stack, forget, new_home
from workers.local import PROGRAMS
from workers.services import Services
from workers.settings import Settings

#: The time of one reading, and how many go on at once.
DELAY_S: Final = 0.5
SLOTS: Final = 4
#: Longer than a lease, a message that is presumed lost, and a worker's start on a busy machine take together.
MOVES_WITHIN_S: Final = 150.0
_PROGRESS: Final = """
SELECT (SELECT count(*) FROM submissions) AS files,
    (SELECT count(*) FROM jobs WHERE finished_at IS NULL) AS open,
    (SELECT count(*) FROM attempts WHERE outcome IS NOT NULL) AS attempts
"""
_LANE: Final = f"""
- name: cpu
  engine: stub
  model: "{DELAY_S} core deadly={DEADLY}"
  precision: none
  context_tokens: 4096
  max_num_seqs: {SLOTS}
  prices: {{input: "1.0", output: "2.0"}}
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done, what became of it, and how long that took."""

    fallen: Sequence[Fallen]
    audit: Audit
    recovered_s: Mapping[str, Sequence[float]]
    kills: int
    restarts: int
    jobs: int
    files: int
    tries_again: int
    took_s: float


def run(*, jobs: int, kills: int, seconds: float, seed: int) -> Outcome:
    """Start a stack, send the files, deal the blows, wait for the end of every job, and look."""
    home = new_home("chaos")
    lanes = home / "lanes.yaml"
    lanes.write_text(_LANE)
    environment = {"DOCMILL_LANES": str(lanes), "DOCMILL_VIP_TENANTS": f'["{VIP}"]', "DOCMILL_OCR": "false"}
    began = time.monotonic()
    with Stack(home, environment).running(within_s=240) as stack, _clients(stack) as client:
        planned = works(jobs, seed)
        harm = Blows(stack, client.job_ids, frozen_s=float(QUICK["DOCMILL_LEASE_S"]) + 2)
        programs = tuple(program.name for program in PROGRAMS)
        with ThreadPoolExecutor(1) as beside:
            sending = beside.submit(client.send_all, planned, seconds)
            harm.carry_out(blows(kills, programs, seconds, seed))
            sending.result()
        _wait_for_the_end(stack, len(planned))
        seen = audit(stack, planned, client.receipts, client.use)
        outcome = Outcome(
            fallen=harm.fallen,
            audit=seen,
            recovered_s=_recovered(stack, harm.fallen),
            kills=harm.kills,
            restarts=(home / "up.log").read_text().count("action=ended"),
            jobs=ended_jobs(stack),
            files=len(planned),
            tries_again=client.tries_again,
            took_s=time.monotonic() - began,
        )
    if seen.clean:
        forget(home)
    return outcome


@contextmanager
def _clients(stack: Stack) -> Iterator[Clients]:
    address = stack.address
    settings = Settings(
        home=stack.data,
        broker_url=address.broker_url,
        database_url=address.database_url,
        blob_url=address.blob_url,
        vip_tenants=(VIP,),
    )
    use = Services(settings)
    with use.database.begin() as connection:
        keys = {tenant: create(connection, tenant, "chaos") for tenant in TENANTS}
    yield Clients(stack, keys, use)
    use.database.dispose()


def _wait_for_the_end(stack: Stack, files: int) -> None:
    """Until every file has a record and no job is open, or until nothing has moved for so long that nothing will."""
    seen: dict[str, Any] = {}
    since = time.monotonic()
    while time.monotonic() - since < MOVES_WITHIN_S:
        row = _progress(stack) or seen
        if row and row["files"] >= files and row["open"] == 0:
            return
        if row != seen:
            seen, since = row, time.monotonic()
        time.sleep(1.0)
    print(f"nothing has moved for {MOVES_WITHIN_S:g} s: {seen}")


def _progress(stack: Stack) -> dict[str, Any]:
    """What moves while there is work; nothing while the last blow has the database down."""
    try:
        return stack.rows(_PROGRESS)[0]
    except OperationalError:
        return {}


def _recovered(stack: Stack, fallen: Sequence[Fallen]) -> dict[str, list[float]]:
    times: defaultdict[str, list[float]] = defaultdict(list)
    for blow in fallen:
        seconds = recovery(stack, blow) if blow.hits else None
        if seconds is not None:
            times[_row(blow)].append(seconds)
    return dict(times)


def _row(blow: Fallen) -> str:
    return f"{blow.kind}: {blow.program}" if blow.program else blow.kind


# ---------------------------------------------------------------- what is shown


def show_all(outcome: Outcome) -> None:
    """Three tables: what was done, what became of the files, which rules held."""
    times = Counter(_row(blow) for blow in outcome.fallen)
    hits = Counter[str]()
    for blow in outcome.fallen:
        hits[_row(blow)] += blow.hits
    rows = [(name, times[name], hits[name], *_spread(outcome.recovered_s.get(name, ()))) for name in sorted(times)]
    show("What was done", ["blow", "times", "processes or messages", "work again after s, median", "longest"], rows)
    states = sorted({state for ends in outcome.audit.ends.values() for state in ends})
    ended = [(kind, *(ends.get(state, 0) for state in states)) for kind, ends in sorted(outcome.audit.ends.items())]
    total = [sum(ends.get(state, 0) for ends in outcome.audit.ends.values()) for state in states]
    show("How the files ended", ["kind", *states], [*ended, ("all", *total)])
    show("Breaches", ["rule", "breaches"], [(rule, len(found)) for rule, found in outcome.audit.breaches.items()])
    for rule, found in outcome.audit.breaches.items():
        for line in found[:20]:
            print(f"  {rule}: {line}")


def _spread(seconds: Sequence[float]) -> tuple[object, object]:
    return (statistics.median(seconds), max(seconds)) if seconds else ("-", "-")


def figures(outcome: Outcome, *, jobs: int, kills: int) -> list[Figure]:
    """The numbers that decide."""
    breaches = outcome.audit.breaches
    return [
        Figure("files", outcome.files, f">= {jobs}"),
        Figure("jobs", outcome.jobs),
        Figure("kills", outcome.kills, f">= {kills}"),
        Figure("blows", len(outcome.fallen)),
        Figure("claims_lost_and_taken_back", sum(outcome.audit.lost_claims.values())),
        *(Figure(rule.replace(" ", "_"), len(found), "<= 0") for rule, found in breaches.items()),
        Figure("seconds", outcome.took_s),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=0.0, help="time over which files come and blows fall")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    seconds = options.seconds or max(30.0, 6.0 * options.kills)
    outcome = run(jobs=options.jobs, kills=options.kills, seconds=seconds, seed=options.seed)
    show_all(outcome)
    details = {
        "seed": options.seed,
        "blows": Counter(_row(blow) for blow in outcome.fallen),
        "ends": outcome.audit.ends,
        "breaches": outcome.audit.breaches,
        "recovered_s": outcome.recovered_s,
    }
    return finish("chaos", figures(outcome, jobs=options.jobs, kills=options.kills), details)


if __name__ == "__main__":
    raise SystemExit(main())
