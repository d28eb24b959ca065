"""`bench.chaos` in its short form: real parts, killed, emptied, frozen and restarted while work goes through."""

from __future__ import annotations

import pytest

from bench.chaos import figures, run, show_all

pytestmark = pytest.mark.timeout(600)
JOBS, KILLS, SECONDS, SEED = 40, 8, 25.0, 7


def test_nothing_is_lost_done_twice_or_stuck_while_everything_breaks() -> None:
    outcome = run(jobs=JOBS, kills=KILLS, seconds=SECONDS, seed=SEED)
    show_all(outcome)
    missed = [str(figure) for figure in figures(outcome, jobs=JOBS, kills=KILLS) if not figure.holds]
    assert not missed, outcome.audit.breaches
