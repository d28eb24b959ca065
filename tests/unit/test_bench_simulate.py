"""The simulator loses nothing, counts nothing twice, and its engine is as fast as what was measured."""

from __future__ import annotations

from collections import Counter

import pytest
import simpy

from bench.engine_model import H100_BF16, EngineModel, Gpu, Sequence, fit_errors
from bench.sim_day import Day, arrivals
from bench.sim_docmill import docmill
from bench.sim_world import Hardware, World, celery_priorities, fifo, shortest_first
from bench.simulate import Make

SHORT_DAY = Day(scale=2000)


def test_the_engine_model_is_within_fifteen_percent_of_every_measured_point() -> None:
    assert max(abs(error) for *_, error in fit_errors()) < 0.15


def closed_loop(gpu: Gpu, *, prompt: int, output: int, at_once: int, seconds: float) -> tuple[EngineModel, int]:
    """As many users at once, each with a new request when its last is answered; the requests that were answered."""
    env = simpy.Environment()
    engine = EngineModel(env, gpu, max_num_seqs=at_once)
    answered = 0

    def ask() -> None:
        engine.submit(Sequence(prompt, output, 0, answer))

    def answer() -> None:
        nonlocal answered
        answered += 1
        ask()

    for _ in range(at_once):
        ask()
    env.run(seconds)
    return engine, answered


@pytest.mark.parametrize(
    ("prompt", "output", "measured"), [(128, 128, 16.8), (1024, 128, 13.7), (2048, 2048, 0.79), (8192, 512, 1.53)]
)
def test_sixteen_users_get_the_measured_requests_a_second_within_a_fifth(
    prompt: int, output: int, measured: float
) -> None:
    _, answered = closed_loop(H100_BF16, prompt=prompt, output=output, at_once=16, seconds=60)
    assert answered / 60 == pytest.approx(measured, rel=0.21)


def test_a_cache_that_is_too_small_preempts_and_still_answers_everything() -> None:
    small = Gpu("small", 6.8, 0.02, 4.6e-5, 0.0265, kv_tokens=3000)
    engine, answered = closed_loop(small, prompt=400, output=400, at_once=8, seconds=60)
    assert engine.preemptions > 0
    assert answered > 0
    assert engine.kv_use <= 1


@pytest.mark.parametrize("make", [fifo, celery_priorities, shortest_first, docmill()])
def test_every_document_is_read_once_under_every_policy_though_an_engine_dies(make: Make) -> None:
    world = World(SHORT_DAY, Hardware(gpus=6, failures=0, dies_at=10.0), make).run()
    counted = Counter(job.doc.number for job in world.done)
    assert set(counted.values()) == {1}
    assert len(counted) == len(world.jobs) == sum(1 for _ in arrivals(SHORT_DAY))


def test_docmill_keeps_the_backfill_out_of_the_way_of_hot_documents() -> None:
    def slow(make: Make) -> float:
        world = World(SHORT_DAY, Hardware(gpus=6, failures=0), make).run()
        hot = sorted(job.latency for job in world.done if job.hot_at_arrival and job.arrived > world.day.at(8))
        return hot[int(0.95 * len(hot))]

    assert slow(docmill()) < slow(celery_priorities) < slow(fifo)
