"""What every queue promises: order, waiting, each attempt once, hints and replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from dagbok.agents.queue import lane_address, lane_of
from dagbok.events.envelope import Answer, CancelHint, Dispatch, Reply
from tests.contract.queue_sites import LANE, REPEATING, SITES, TIMEOUT_S, Site, collect, dispatch, large, serve, until

OTHER_LANE = lane_of("verify", "default")


@pytest.fixture(params=[name for name in SITES if name not in REPEATING])
async def exact_site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    """A queue that keeps each attempt once and can take it back."""
    async with SITES[request.param](tmp_path) as site:
        serve(site.taker)
        yield site


@pytest.fixture(params=SITES)
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    async with SITES[request.param](tmp_path) as site:
        serve(site.taker)
        yield site


async def test_what_was_put_is_taken_in_its_order(site: Site) -> None:
    site.sender.put(LANE, [dispatch(1), dispatch(2)])
    site.sender.put(LANE, [dispatch(3)])
    assert await collect(site.taker, 3) == [1, 2, 3]


async def test_a_dispatch_arrives_as_it_was_put(site: Site) -> None:
    site.sender.put(LANE, [dispatch(1)])
    assert list(await asyncio.wait_for(site.taker.take(LANE), TIMEOUT_S)) == [dispatch(1)]


async def test_a_dispatch_of_more_than_a_mebibyte_arrives_whole_and_holds_up_no_other(site: Site) -> None:
    assert len(msgspec.json.encode(large(1))) > 1024 * 1024
    site.sender.put(LANE, [large(1), dispatch(2)])
    taken: list[Dispatch] = []
    while len(taken) < 2:
        taken += await asyncio.wait_for(site.taker.take(LANE), TIMEOUT_S)
    assert sorted(taken, key=lambda item: item.epoch) == [large(1), dispatch(2)]


async def test_a_taker_waits_until_there_is_something_in_its_lane(site: Site) -> None:
    taking = asyncio.create_task(collect(site.taker, 1))
    await asyncio.sleep(0)
    assert not taking.done()
    site.sender.put(OTHER_LANE, [dispatch(1)])
    site.sender.put(lane_of("work", "other"), [dispatch(2)])
    site.sender.put(LANE, [dispatch(3)])
    assert await taking == [3]


async def test_of_several_takers_none_comes_back_empty_and_nothing_is_taken_twice(site: Site) -> None:
    takers = [asyncio.create_task(site.taker.take(LANE)) for _ in range(3)]
    await asyncio.sleep(0)
    taken: list[int] = []
    for number in range(3):
        site.sender.put(LANE, [dispatch(number)])
        await until(lambda count=number + 1: sum(taker.done() for taker in takers) == count)  # type: ignore[misc]
    taken = [item.epoch for batch in await asyncio.wait_for(asyncio.gather(*takers), TIMEOUT_S) for item in batch]
    assert sorted(taken) == [0, 1, 2]


async def test_a_taker_that_gave_up_takes_nothing_with_it(site: Site) -> None:
    gone = asyncio.create_task(site.taker.take(LANE))
    await asyncio.sleep(0)
    site.sender.put(LANE, [dispatch(1)])
    gone.cancel()
    await asyncio.gather(gone, return_exceptions=True)
    assert await collect(site.taker, 1) == [1]


async def test_what_waits_already_does_not_wait_twice(exact_site: Site) -> None:
    site = exact_site
    for _ in range(3):
        site.sender.put(LANE, [dispatch(1), dispatch(2)])
    site.sender.put(LANE, [dispatch(3)])
    assert await collect(site.taker, 3) == [1, 2, 3]


async def test_what_was_taken_and_not_claimed_comes_again_when_the_scheduler_puts_it_again(site: Site) -> None:
    for _ in range(3):
        taking = asyncio.create_task(collect(site.taker, 1))

        def again(taking: asyncio.Task[list[int]] = taking) -> bool:
            site.sender.put(LANE, [dispatch(1)])
            return taking.done()

        await until(again)
        assert await taking == [1]


async def test_a_hint_takes_back_what_waits_and_reaches_everybody_who_serves_the_lane(exact_site: Site) -> None:
    site = exact_site
    first, second = list[Reply](), list[Reply]()
    site.taker.listen(lane_address(LANE), first.extend)
    site.taker.listen(lane_address(LANE), second.extend)
    site.sender.put(LANE, [dispatch(1), dispatch(2)])
    hint = CancelHint(run="r", task="t", epoch=1)
    site.sender.hint(LANE, [hint])
    site.sender.hint(OTHER_LANE, [CancelHint(run="r", task="t", epoch=2)])
    assert await collect(site.taker, 1) == [2]
    await until(lambda: bool(second))
    assert (first, second) == ([hint], [hint])


async def test_replies_go_to_everybody_who_listens_in_their_order(site: Site) -> None:
    first, second = list[Reply](), list[Reply]()
    site.taker.listen("client/1", first.extend)
    site.taker.listen("client/1", second.extend)
    sent = [Answer(id=f"c{number}", accepted=True, at=(0, number)) for number in range(5)]
    site.sender.reply("client/2", sent)
    site.sender.reply("client/1", sent[:2])
    site.sender.reply("client/1", sent[2:])
    await until(lambda: len(second) == 5)
    assert (first, second) == (sent, sent)


async def test_who_listens_no_more_hears_nothing_more(site: Site) -> None:
    gone, stays = list[Reply](), list[Reply]()
    site.taker.listen("client/1", gone.extend)
    site.taker.listen("client/1", stays.extend)
    site.taker.forget("client/1", gone.extend)
    site.taker.forget("client/1", gone.extend)
    hint = CancelHint(run="r", task="t", epoch=1)
    site.sender.reply("client/1", [hint])
    await until(lambda: bool(stays))
    site.taker.forget("client/1", stays.extend)
    site.sender.reply("client/1", [hint])
    assert (gone, stays) == ([], [hint])
