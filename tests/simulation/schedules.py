"""Many schedules of random runs, spread over processes, each of which runs its share one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from dagbok.testing import Faults, Simulated, SimulationFailed
from dagbok.testing.simulation import simulate_workload
from dagbok.testing.simulation.workload import RandomWorkload
from tests.simulation.versions import two_versions

PROCESSES = 2
CHUNK = 50
RERUN = "make simulate SEEDS={seed}"


def run_seeds(seeds: Sequence[int]) -> Simulated | str:
    """What the schedules of these seeds had together, or how the first that went wrong did."""
    with two_versions():
        try:
            return simulate_workload(RandomWorkload(), seeds, Faults(), rerun=RERUN)
        except SimulationFailed as failed:
            return str(failed)


def run_shares(seeds: Sequence[int]) -> Iterator[Simulated | str]:
    """The same in several processes, share by share."""
    shares = [seeds[start : start + CHUNK] for start in range(0, len(seeds), CHUNK)]
    if len(shares) == 1:
        yield run_seeds(shares[0])
        return
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_seeds, shares)
