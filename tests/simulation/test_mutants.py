"""The simulation finds what it is there to find: each rule that is broken on purpose is found out soon."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dagbok.testing import Faults
from dagbok.testing.simulation.plan import plan_of
from dagbok.testing.simulation.schedule import live_through
from dagbok.testing.simulation.workload import RandomWorkload
from tests.simulation import mutants
from tests.simulation.mutants import Mutant
from tests.simulation.versions import two_versions

ENOUGH = 300
RIVALS = Faults(rivals=4, network=0.4, crashes=2, freezes=4, restarts=0, clock_jumps=0, slow=0.0)
STALE = Faults(rivals=0, network=0.1, crashes=0, freezes=10, restarts=0, clock_jumps=0, slow=0.6)

BROKEN: list[tuple[Mutant, Faults, set[str]]] = [
    (mutants.commits_without_prev, RIVALS, {"processes", "log", "equal folds"}),
    (mutants.any_commit, RIVALS, {"processes", "log", "equal folds"}),
    (mutants.no_doubt, RIVALS, {"one commit per command", "outputs are confirmed", "liveness", "processes"}),
    (mutants.outputs_before_the_append, RIVALS, {"outputs are confirmed", "processes"}),
    (mutants.any_claim, STALE, {"attempts"}),
    (mutants.leases_that_never_end, Faults(), {"attempts"}),
    (mutants.no_renewals, STALE, {"attempts"}),
    (mutants.no_redispatch, Faults(), {"liveness"}),
    (mutants.no_repeats, Faults(), {"liveness"}),
    (mutants.no_timers, Faults(), {"liveness"}),
    (mutants.repeats_decided_anew, Faults(), {"client commands once"}),
    (mutants.answers_made_up, Faults(), {"answers are true"}),
    (mutants.published_twice, Faults(), {"attempts", "processes"}),
    (mutants.sessions_forgotten, Faults(), {"sessions"}),
    (mutants.sessions_of_anybody, STALE, {"sessions"}),
    (mutants.snapshots_that_forget, Faults(), {"log", "equal folds", "processes", "liveness"}),
    (mutants.batches_written_twice, Faults(), {"processes", "tables equal a rebuild", "liveness"}),
]


@pytest.fixture(autouse=True)
def _two_versions() -> Iterator[None]:
    with two_versions():
        yield


@pytest.mark.parametrize(("mutant", "faults", "checks"), BROKEN, ids=[each[0].__name__ for each in BROKEN])
def test_a_broken_rule_is_found(
    mutant: Mutant, faults: Faults, checks: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    workload = RandomWorkload()
    mutant(monkeypatch)
    for seed in range(ENOUGH):
        violated = live_through(plan_of(seed, workload, faults), workload).violated
        if violated is not None:
            assert violated[0] in checks, violated[1]
            return
    pytest.fail(f"{ENOUGH} schedules found nothing wrong")
