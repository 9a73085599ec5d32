"""Who slept while others took over: what it writes when it wakes counts for nobody."""

from __future__ import annotations

import asyncio
import signal

import pytest

from dagbok.agents.faultpoints import BATCH_APPENDED, BATCH_DECIDED, FUNCTION_DONE, OUTPUTS_SENT
from dagbok.events.codes import Code
from dagbok.events.log.port import EVENTS, Record
from tests.kafka_kills.site import EVERYBODY, PAUSE_S, SERVING, TIMEOUT_S, Site
from tests.kafka_kills.truth import check_site, raw_values, refused, voids
from tests.support.scale import scale


async def test_an_owner_that_slept_through_its_succession_writes_nothing_that_counts(site: Site) -> None:
    first = await site.add("scheduler")
    await site.add(SERVING)
    await site.ended([await site.start("before")])
    first.send(signal.SIGSTOP)
    second = await site.add("scheduler")
    streams = [await site.start(f"while it sleeps {number}") for number in range(4)]
    await site.ended(streams)
    first.send(signal.SIGCONT)
    streams = [await site.start(f"awake {number}") for number in range(4)]
    await site.ended(streams)
    await site.held(first)
    assert second.alive
    await check_site(site)


@pytest.mark.parametrize("place", (BATCH_DECIDED, BATCH_APPENDED, OUTPUTS_SENT)[: scale(1, 3)])
async def test_an_owner_that_falls_asleep_in_the_midst_of_a_write_wakes_to_be_passed_over(
    site: Site, place: str
) -> None:
    """Asleep before the append, its batch comes behind those of its successor: every reader drops it."""
    first = await site.add("scheduler", MEMBER_SLEEP=f"{place}:12")
    await site.add(SERVING)
    starting = [asyncio.create_task(site.start(f"asleep {number}")) for number in range(4)]
    await first.slept()
    await site.add("scheduler")
    await site.ended(await asyncio.gather(*starting))
    before = await voids(site)
    first.send(signal.SIGCONT)
    await site.ended([await site.start(f"awake {number}") for number in range(4)])
    async with asyncio.timeout(TIMEOUT_S):
        while place == BATCH_DECIDED and await voids(site) == before:  # noqa: ASYNC110 – another process appends it
            await asyncio.sleep(PAUSE_S)
    await check_site(site)


async def test_a_worker_that_slept_past_its_lease_is_refused_when_it_wakes(site: Site) -> None:
    """Its result is of an old epoch: another one has done the task meanwhile."""
    await site.add("scheduler")
    await site.add("verifier")
    first = await site.add("worker", MEMBER_SLEEP=f"{FUNCTION_DONE}:5")
    starting = [asyncio.create_task(site.start(f"asleep {number}")) for number in range(2)]
    await first.slept()
    await site.add("worker")
    await site.ended(await asyncio.gather(*starting))
    first.send(signal.SIGCONT)
    async with asyncio.timeout(TIMEOUT_S):
        while not await refused(site, Code.STALE_ATTEMPT):  # noqa: ASYNC110 – another process sends it
            await asyncio.sleep(PAUSE_S)
    await site.ended([await site.start("awake")])
    await check_site(site)


async def test_a_foreign_commit_in_events_is_void_for_everybody(site: Site) -> None:
    """As one that an owner writes too late: `after` and `prev` are of another history."""
    await site.add(EVERYBODY)
    streams = [await site.start(f"before {number}") for number in range(4)]
    await site.ended(streams)
    for number in range(site.partitions):
        values = await raw_values(site.settings, EVENTS, number)
        for _, value in values[:3]:
            await site.process.log.append(EVENTS, number, [Record("run:late", value)])
    await site.ended([await site.start(f"after {number}") for number in range(8)])
    assert await voids(site) >= 3
    await check_site(site)
