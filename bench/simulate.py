"""`python -m bench.simulate`: a day of 500,000 documents, peaks, VIPs and a cold backfill of a million, four policies.

docmill's own policy code (routing, release, admission, ladder) on modelled engines, beside one queue, Celery's queue
priorities alone, and shortest-first, on the same hardware. `bench/engine_model.py` names the source of every speed;
`bench/sim_day.py` and `bench/sim_world.py` name every assumption.

By default the day is 96 times shorter: rates, peaks' heights and hardware are those of the real day, peaks and windows
are shorter. A queue that grows during a peak grows for a shorter time, so peers that fall behind look better than
they would on the full day, and the ladder, whose minute is not shorter, acts later in a peak. `--full` simulates all.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from bench.engine_model import fit_errors
from bench.report import Figure, finish, show
from bench.sim_day import Day
from bench.sim_docmill import Docmill, Options, docmill
from bench.sim_world import Hardware, Job, Policy, World, celery_priorities, fifo, shortest_first

P95_AIM_S, P99_AIM_S = 1.5, 2.0
#: Where the search for the fewest GPUs begins.
MOST_GPUS, MOST_OF_PEERS = 16, 32
#: Assumption for the second part of the ablation: a card of 24 GB keeps this many tokens beside 16 GB of weights.
SMALL_CACHE = 38_000
SURGE = 1.6

Make = Callable[[World], Policy]
#: The ladder's cheaper lane is a faster engine, which no peer has: so docmill is compared without it too.
NO_LADDER = docmill(Options(ladder=False))
PEERS: Mapping[str, Make] = {
    "docmill, no ladder": NO_LADDER,
    "one queue (FIFO)": fifo,
    "Celery priorities": celery_priorities,
    "shortest first": shortest_first,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to: hot latencies at the peaks in seconds, and what missed its window."""

    gpus: int
    hot: tuple[float, float, float]
    cold_late: int
    cold: int
    backfill_h: float
    preempted: int
    steps: int

    @property
    def meets(self) -> bool:
        return self.hot[1] <= P95_AIM_S and self.hot[2] <= P99_AIM_S and self.cold_late == 0

    @property
    def row(self) -> list[object]:
        return [self.gpus, *(f"{value:.2f}" for value in self.hot), self.cold_late, f"{self.backfill_h:.1f}"]


def simulate(day: Day, hardware: Hardware, policy: Make) -> Outcome:
    world = World(day, hardware, policy).run()
    hot = sorted(_latency(job, world) for job in world.jobs if job.hot_at_arrival and day.is_peak(job.arrived))
    cold = [job for job in world.jobs if job.doc.window_s > 0 and not job.hot_at_arrival]
    backfill = [job.finished for job in world.done if job.doc.tenant == "backfill"]
    took = max(backfill, default=math.nan) - day.at(day.backfill_at)
    changes = world.policy.changes if isinstance(world.policy, Docmill) else []
    return Outcome(
        gpus=hardware.gpus,
        hot=(_share(hot, 0.5), _share(hot, 0.95), _share(hot, 0.99)),
        cold_late=sum(not job.finished <= job.deadline for job in cold),
        cold=len(cold),
        backfill_h=took * day.scale / 3600,
        preempted=sum(engine.preemptions for engine in world.engines),
        steps=sum(taken for _, _, taken in changes),
    )


def _latency(job: Job, world: World) -> float:
    """What was not read by the end of the run has waited until then at least."""
    return job.latency if job.finished == job.finished else world.env.now - job.arrived


def _share(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


def fewest(day: Day, hardware: Hardware, policy: Make, most: int = MOST_GPUS) -> Outcome:
    """The run with the fewest GPUs that meets the aims, or that with the most if none does."""
    low, best = 1, simulate(day, replace(hardware, gpus=most), policy)
    while best.meets and low < best.gpus:
        tried = simulate(day, replace(hardware, gpus=(low + best.gpus) // 2), policy)
        if tried.meets:
            best = tried
        else:
            low = tried.gpus + 1
    return best


def ablations(day: Day, hardware: Hardware) -> list[tuple[str, str, Outcome]]:
    """docmill without one of its parts, on the same hardware, on a small cache, and in a surge."""
    small = replace(hardware, gpu=replace(hardware.gpu, kv_tokens=SMALL_CACHE))
    rush, calm = replace(day, surge=SURGE), day
    whole, mixed = Options(), Options(length_ratio=math.inf)
    runs = [
        ("full cache", "all lengths together", calm, hardware, mixed),
        ("small cache", "docmill", calm, small, whole),
        ("small cache", "all lengths together", calm, small, mixed),
        ("small cache", "no admission by cache", calm, small, Options(admission=False)),
        ("an engine dies at 10:00", "docmill", calm, replace(hardware, dies_at=10.0), whole),
        (f"peaks x {SURGE}", "docmill", rush, hardware, whole),
        (f"peaks x {SURGE}", "no ladder", rush, hardware, Options(ladder=False)),
    ]
    return [(where, what, simulate(of, on, docmill(options))) for where, what, of, on, options in runs]


def main() -> int:
    options = _options()
    day = Day(scale=1.0 if options.full else options.scale, seed=options.seed)
    hardware = Hardware(gpus=options.gpus)
    fit = fit_errors()
    show("the engine model against what was measured", ["point", "measured ms", "model ms", "error"], fit)
    ours = simulate(day, hardware, docmill()) if options.gpus else fewest(day, hardware, docmill())
    hardware = replace(hardware, gpus=ours.gpus)
    equal = {"docmill": ours} | {name: simulate(day, hardware, make) for name, make in PEERS.items()}
    columns = ["policy", "GPUs", "hot P50 s", "hot P95 s", "hot P99 s", "cold late", "backfill took h"]
    show(f"at equal hardware, latencies at the peaks ({hardware.gpu.name})", columns, _rows(equal))
    needed = {name: fewest(day, hardware, make, MOST_OF_PEERS) for name, make in PEERS.items()}
    show("with as many GPUs as each needs for the aims", columns, _rows(needed))
    parts = ablations(day, hardware)
    show(
        "what each part contributes",
        ["where", "docmill", *columns[1:], "preempted", "ladder steps"],
        [[where, what, *one.row, one.preempted, one.steps] for where, what, one in parts],
    )
    return finish("simulate", _figures(ours, equal, needed, fit), {"day": day, "hardware": hardware, "parts": parts})


def _rows(outcomes: Mapping[str, Outcome]) -> list[list[object]]:
    return [[name, *one.row] for name, one in outcomes.items()]


def _figures(
    ours: Outcome,
    equal: Mapping[str, Outcome],
    needed: Mapping[str, Outcome],
    fit: list[tuple[str, float, float, float]],
) -> list[Figure]:
    peers = [
        figure
        for name, one in needed.items()
        for figure in (
            Figure(f"{name}: hot P99 s", equal[name].hot[2]),
            Figure(f"{name}: GPUs needed{'' if one.meets else ', and more'}", one.gpus),
        )
    ]
    return [
        Figure("hot P95 s", ours.hot[1], f"<= {P95_AIM_S}"),
        Figure("hot P99 s", ours.hot[2], f"<= {P99_AIM_S}"),
        Figure("cold late", ours.cold_late, "== 0"),
        Figure("GPUs", ours.gpus),
        *peers,
        Figure("worst error of the engine model", max(abs(error) for *_, error in fit), "<= 0.15"),
    ]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="the whole day: hours")
    parser.add_argument("--scale", type=float, default=96.0, help="how many times shorter the day is")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of the comparison; 0: as few as docmill needs")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    raise SystemExit(main())
