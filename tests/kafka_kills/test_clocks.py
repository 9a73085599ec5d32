"""Clocks that are minutes apart: what is decided follows the log's time, and nothing is lost."""

from __future__ import annotations

import asyncio

from dagbok.events.log.port import COMMANDS
from dagbok.events.run import events as e
from tests.kafka_kills.site import SERVING, TIMEOUT_S, Site
from tests.kafka_kills.truth import chain_of, check_site, raw_values, refused
from tests.support.audit import effective_events

TEN_MINUTES_MS = 10 * 60 * 1000


async def test_an_owner_whose_clock_is_ten_minutes_behind_decides_nothing_and_says_why(site: Site) -> None:
    """A command from its future could be one of a log that jumped: it halts every partition with an alarm until its
    clock is right or another one has its place. Nothing is lost."""
    behind = await site.add("scheduler", MEMBER_CLOCK_MS=str(-TEN_MINUTES_MS))
    await site.add(SERVING)
    starting = [asyncio.create_task(site.start(f"early {number}")) for number in range(4)]
    await behind.logged(lambda text: "DAGBOK-CLOCK-AHEAD" in text and "partition.halted" in text)
    assert [chain_of(await raw_values(site.settings, "events", number)).end for number in range(4)] == [0] * 4
    await site.leave(behind)
    await site.add("scheduler")
    async with asyncio.timeout(TIMEOUT_S):
        streams = list(await asyncio.gather(*starting))
    await site.ended(streams)
    await check_site(site)


async def test_an_owner_whose_clock_is_ten_minutes_ahead_decides_by_the_log_s_time(site: Site) -> None:
    """Its clock is asked only whether commands are from the future. Times of commits are those of the log."""
    await site.add("scheduler", MEMBER_CLOCK_MS=str(TEN_MINUTES_MS))
    await site.add(SERVING)
    streams = [await site.start(f"late {number}") for number in range(4)]
    await site.ended(streams)
    for number in range(site.partitions):
        commands = await site.process.log.read(COMMANDS, number, 0, 1_000)
        latest_ms = max((command.append_ms for command in commands), default=0)
        for _, event in await effective_events(site.process.log, number):
            if isinstance(event, e.AttemptStarted):
                assert event.lease_until_ms <= latest_ms + 60_000
    await check_site(site)


async def test_a_worker_whose_clock_is_ten_minutes_ahead_is_refused_and_others_do_its_work(site: Site) -> None:
    """What it sends says when it was sent first, which is ahead of the log: `clock_ahead`, without harm to anybody."""
    await site.add("scheduler")
    ahead = await site.add(SERVING, MEMBER_CLOCK_MS=str(TEN_MINUTES_MS))
    stream = await site.start("by a worker of the future")
    async with asyncio.timeout(TIMEOUT_S):
        while not await refused(site, "clock_ahead"):  # noqa: ASYNC110 – it is another process
            await asyncio.sleep(0.1)
    await site.kill(ahead)
    await site.add(SERVING)
    await site.ended([stream])
    await check_site(site)
