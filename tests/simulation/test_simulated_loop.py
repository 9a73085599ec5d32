"""The event loop of the simulation: virtual time, seeded choices, processes that vanish and stand still."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Coroutine
from random import Random

import pytest

from dagbok.testing.simulation.faults import Faults
from dagbok.testing.simulation.loop import Place, SimulatedLoop, Stuck, simulated_loop
from dagbok.testing.simulation.plan import plan_of
from dagbok.testing.simulation.schedule import live_through
from dagbok.testing.simulation.workload import RandomWorkload

DIGESTS = """
from tests.simulation.test_simulated_loop import histories
print(histories(range(3)))
"""


def histories(seeds: range) -> list[tuple[str, str]]:
    """Hashes of the whole log, and everything that was told, of some schedules."""
    workload = RandomWorkload()
    endings = [live_through(plan_of(seed, workload, Faults()), workload, trace=True) for seed in seeds]
    return [(ending.digest, "\n".join(map(str, ending.lines))) for ending in endings]


def test_one_seed_gives_one_history_in_any_process() -> None:
    here = histories(range(3))
    assert here == histories(range(3))
    assert len({digest for digest, _ in here}) == 3
    for hash_seed in ("1", "2"):
        ran = subprocess.run(
            [sys.executable, "-c", DIGESTS],
            env={"PYTHONHASHSEED": hash_seed, "PATH": "", "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.stdout.strip() == str(here), ran.stderr


def test_time_jumps_to_the_next_timer() -> None:
    async def sleeps() -> float:
        await asyncio.sleep(3_600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.Event().wait()
        return asyncio.get_running_loop().time()

    assert _run(simulated_loop(Random(1)), sleeps()) == 3_660


def test_the_order_between_processes_is_drawn_and_within_one_it_is_kept() -> None:
    orders = set()
    for seed in range(20):
        loop, seen = simulated_loop(Random(seed)), list[str]()

        async def step(name: str, seen: list[str]) -> None:
            seen.append(name)

        async def start(loop: SimulatedLoop = loop, seen: list[str] = seen) -> None:
            one, other = Place("one"), Place("other")
            tasks = [loop.spawn(place, step(name, seen)) for place, name in ((one, "a"), (one, "b"), (other, "c"))]
            await asyncio.gather(*tasks)

        _run(loop, start())
        assert seen.index("a") < seen.index("b")
        orders.add("".join(seen))
    assert orders == {"abc", "acb", "cab"}


def test_a_process_vanishes_between_two_steps_and_another_stands_still() -> None:
    loop, seen = simulated_loop(Random(1)), list[tuple[str, float]]()

    async def count(name: str) -> None:
        while True:
            await asyncio.sleep(1)
            seen.append((name, loop.time()))

    async def start() -> None:
        gone, still = Place("gone"), Place("still")
        loop.spawn(gone, count("gone"))
        loop.spawn(still, count("still"))
        await asyncio.sleep(2.5)
        loop.kill(gone)
        loop.freeze(still)
        await asyncio.sleep(5)
        loop.thaw(still)
        await asyncio.sleep(0.9)

    _run(loop, start())
    assert [at_s for name, at_s in seen if name == "gone"] == [1, 2]
    assert [at_s for name, at_s in seen if name == "still"] == [1, 2, 7.5]


def test_when_everybody_waits_for_ever_it_says_so() -> None:
    with pytest.raises(Stuck):
        _run(simulated_loop(Random(1)), _forever())


async def _forever() -> float:
    await asyncio.Event().wait()
    return 0.0


def _run(loop: SimulatedLoop, work: Coroutine[object, object, object]) -> object:
    try:
        return loop.run_until_complete(work)
    finally:
        loop.close()
