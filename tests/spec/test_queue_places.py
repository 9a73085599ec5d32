"""What a worker process tells a shared queue: how much it could begin, when that grows, and what it gives back."""

from __future__ import annotations

import asyncio

from dagbok import Outcome, TaskContext, worker
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.lanes import KeyLane, PoolTaker
from dagbok.events.envelope import Dispatch
from tests.contract.queue_sites import dispatch


@worker("quick", concurrency=5)
async def quick(task: TaskContext) -> Outcome:
    return Outcome.candidate(1)


@worker("slow", concurrency=2)
async def slow(task: TaskContext) -> Outcome:
    return Outcome.candidate(1)


class Gate:
    """Attempts that run until they are let go."""

    def __init__(self, concurrency: int) -> None:
        self.running: dict[int, asyncio.Event] = {}
        self.freed: list[int] = []
        self.lane = KeyLane(concurrency, self._run, lambda dispatch: self.freed.append(dispatch.epoch))

    async def _run(self, dispatch: Dispatch) -> None:
        self.running[dispatch.epoch] = asyncio.Event()
        await self.running[dispatch.epoch].wait()
        del self.running[dispatch.epoch]

    async def turns(self) -> None:
        """Let the loop do what is due."""
        for _ in range(10):
            await asyncio.sleep(0)


async def test_what_runs_and_what_waits_takes_places_and_each_end_is_told() -> None:
    gate = Gate(2)
    for number in range(3):
        gate.lane.put(dispatch(number))
    assert gate.lane.places == -1
    await gate.turns()
    assert (gate.lane.places, sorted(gate.running)) == (-1, [0, 1])
    gate.running[0].set()
    await gate.turns()
    assert (gate.lane.places, gate.freed, sorted(gate.running)) == (0, [0], [1, 2])
    for event in tuple(gate.running.values()):
        event.set()
    await gate.turns()
    assert (gate.lane.places, sorted(gate.freed)) == (2, [0, 1, 2])


async def test_an_attempt_that_raises_gives_its_place_back() -> None:
    freed = list[int]()

    async def run(dispatch: Dispatch) -> None:
        raise asyncio.CancelledError

    lane = KeyLane(1, run, lambda dispatch: freed.append(dispatch.epoch))
    lane.put(dispatch(1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert (lane.places, freed) == (1, [1])


async def test_only_what_has_not_begun_is_given_back_and_only_of_that_pool() -> None:
    gate = Gate(1)
    registry = Registry()
    registry.add(slow, quick)
    taker = PoolTaker("work", "default", registry, {("work", "slow"): gate.lane, ("verify", "slow"): Gate(1).lane})
    for number in range(3):
        gate.lane.put(dispatch(number))
        await gate.turns()
    gate.lane.put(dispatch(3, pool="other"))
    assert [item.epoch for item in taker.give_back()] == [1, 2]
    assert taker.give_back() == []
    gate.running[0].set()
    await gate.turns()
    assert list(gate.running) == [3]
    await gate.lane.close()


async def test_places_are_said_for_every_key_that_is_served_also_before_its_first_attempt() -> None:
    registry = Registry()
    registry.add(slow, quick)
    gate = Gate(2)
    taker = PoolTaker("work", "default", registry, {("work", "slow"): gate.lane})
    assert taker.places() == {"quick": 5, "slow": 2}
    gate.lane.put(dispatch(1))
    assert taker.places() == {"quick": 5, "slow": 1}
    await gate.lane.close()
    assert PoolTaker("verify", "default", registry, {}).places() == {}
