"""The queue within one process: order, waiting, addresses."""

from __future__ import annotations

import asyncio

from dagbok.agents.queue import MemoryQueue, lane_address, lane_of
from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.events.run.values import SecurityContext
from dagbok.testing import task

LANE = lane_of("work", "default")
TIMEOUT_S = 10.0


def dispatch(number: int) -> Dispatch:
    """A dispatch with this epoch."""
    return Dispatch(
        kind="work",
        tenant="acme",
        project="docs",
        run="r",
        task="t",
        epoch=number,
        phase="solve",
        pool="default",
        key="work",
        input_hash="",
        opened_at=(0, 0),
        spec=task("t"),
        attempt=1,
        context=SecurityContext(user="ann"),
        graph_revision=0,
    )


async def test_what_was_put_before_is_taken_in_its_order() -> None:
    queue = MemoryQueue()
    queue.put(LANE, [dispatch(1), dispatch(2)])
    queue.put(LANE, [dispatch(3)])
    taken = await asyncio.wait_for(queue.take(LANE), TIMEOUT_S)
    assert [item.epoch for item in taken] == [1, 2, 3]


async def test_a_taker_waits_until_there_is_something() -> None:
    queue = MemoryQueue()
    taking = asyncio.create_task(queue.take(LANE))
    await asyncio.sleep(0)
    assert not taking.done()
    queue.put(lane_of("verify", "default"), [dispatch(1)])
    queue.put(lane_of("work", "other"), [dispatch(2)])
    queue.put(LANE, [dispatch(3)])
    assert [item.epoch for item in await asyncio.wait_for(taking, TIMEOUT_S)] == [3]


async def test_of_several_takers_none_comes_back_empty_and_nothing_is_taken_twice() -> None:
    queue = MemoryQueue()
    takers = [asyncio.create_task(queue.take(LANE)) for _ in range(3)]
    await asyncio.sleep(0)
    for number in range(3):
        queue.put(LANE, [dispatch(number)])
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    taken = [item.epoch for batch in await asyncio.wait_for(asyncio.gather(*takers), TIMEOUT_S) for item in batch]
    assert sorted(taken) == [0, 1, 2]


async def test_a_taker_that_gave_up_takes_nothing_with_it() -> None:
    queue = MemoryQueue()
    gone = asyncio.create_task(queue.take(LANE))
    await asyncio.sleep(0)
    queue.put(LANE, [dispatch(1)])
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert len(await asyncio.wait_for(queue.take(LANE), TIMEOUT_S)) == 1


async def test_what_waits_already_does_not_wait_twice() -> None:
    queue = MemoryQueue()
    for _ in range(3):
        queue.put(LANE, [dispatch(1), dispatch(2)])
    assert [item.epoch for item in await queue.take(LANE)] == [1, 2]
    queue.put(LANE, [dispatch(1)])
    assert [item.epoch for item in await queue.take(LANE)] == [1]


async def test_a_hint_takes_back_what_waits_and_reaches_everybody_who_serves_the_lane() -> None:
    queue, first, second = MemoryQueue(), list[Reply](), list[Reply]()
    queue.listen(lane_address(LANE), first.extend)
    queue.listen(lane_address(LANE), second.extend)
    queue.put(LANE, [dispatch(1), dispatch(2)])
    hint = CancelHint(run="r", task="t", epoch=1)
    queue.hint(LANE, [hint])
    queue.hint(lane_of("verify", "default"), [CancelHint(run="r", task="t", epoch=2)])
    assert (first, second) == ([hint], [hint])
    assert [item.epoch for item in await queue.take(LANE)] == [2]


def test_replies_go_to_everybody_who_listens_and_to_nobody_when_there_is_none() -> None:
    queue, first, second = MemoryQueue(), list[Reply](), list[Reply]()
    hint = CancelHint(run="r", task="t", epoch=1)
    queue.reply("client/1", [hint])
    queue.listen("client/1", first.extend)
    queue.listen("client/1", second.extend)
    queue.reply("client/1", [hint])
    queue.forget("client/1", first.extend)
    queue.reply("client/1", [hint])
    queue.forget("client/1", first.extend)
    queue.forget("client/1", second.extend)
    queue.reply("client/1", [hint])
    assert (first, second) == ([hint], [hint, hint])
