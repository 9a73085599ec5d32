"""Who holds a partition after whom, told as rebalances tell it: without a broker, which is in `test_group.py`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from dagbok.agents.kafka.holders import Holders


class Slow:
    """Holders that end when they are let: what was begun and ended, in order."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.may_end = asyncio.Event()
        self.error: Exception | None = None

    async def hold(self, partition: int) -> None:
        self.told.append(f"begun {partition}")
        try:
            await asyncio.Event().wait()
        finally:
            await self.may_end.wait()
            self.told.append(f"ended {partition}")
            if self.error is not None:
                raise self.error


async def turns() -> None:
    """Whatever can run has."""
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def holders(slow: Slow) -> AsyncIterator[Holders]:
    made = Holders(slow.hold, "group")
    yield made
    slow.may_end.set()
    made.end()
    await made.ended()


async def test_a_partition_is_let_go_without_waiting_for_its_holder_and_the_others_begin(
    holders: Holders, slow: Slow
) -> None:
    holders.keep(frozenset({0, 1}))
    await turns()
    holders.keep(frozenset({1, 2}))
    await turns()
    assert slow.told == ["begun 0", "begun 1", "begun 2"]


async def test_a_partition_that_comes_back_waits_for_its_own_former_holder_alone(
    holders: Holders, slow: Slow
) -> None:
    holders.keep(frozenset({0}))
    await turns()
    holders.keep(frozenset())
    await turns()
    holders.keep(frozenset({0, 1}))
    await turns()
    assert slow.told == ["begun 0", "begun 1"]
    slow.may_end.set()
    await turns()
    assert slow.told == ["begun 0", "begun 1", "ended 0", "begun 0"]


async def test_one_that_goes_again_while_it_waits_leaves_the_next_to_wait_for_the_first(
    holders: Holders, slow: Slow
) -> None:
    holders.keep(frozenset({0}))
    await turns()
    for wanted in (frozenset[int](), frozenset({0}), frozenset[int](), frozenset({0})):
        holders.keep(wanted)
        await turns()
    assert slow.told == ["begun 0"]
    slow.may_end.set()
    await turns()
    assert slow.told == ["begun 0", "ended 0", "begun 0"]


async def test_what_is_told_after_the_end_begins_nothing(holders: Holders, slow: Slow) -> None:
    """A rebalance that is under way when a process ends."""
    holders.keep(frozenset({0}))
    await turns()
    holders.end()
    holders.keep(frozenset({0, 1}))
    await turns()
    slow.may_end.set()
    async with asyncio.timeout(5):
        await holders.ended()
    await turns()
    assert slow.told == ["begun 0", "ended 0"]


async def test_a_holder_that_ends_by_itself_fails_the_group_and_one_that_was_let_go_does_not(
    holders: Holders, slow: Slow
) -> None:
    slow.error = OSError("it burns")
    slow.may_end.set()
    holders.keep(frozenset({0}))
    await turns()
    holders.keep(frozenset())
    await turns()
    assert slow.told == ["begun 0", "ended 0"]
    assert not holders.failed.done()

    async def burns(partition: int) -> None:
        raise OSError(f"{partition} burns")

    burning = Holders(burns, "group")
    burning.keep(frozenset({7}))
    with pytest.raises(OSError, match="7 burns"):
        await burning.failed
