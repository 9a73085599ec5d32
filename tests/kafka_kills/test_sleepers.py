"""Who slept while others took over: what it writes when it wakes counts for nobody."""

from __future__ import annotations

import asyncio
import signal

import pytest

from dagbok.agents.faultpoints import BATCH_APPENDED, BATCH_DECIDED, FUNCTION_DONE, OUTPUTS_SENT
from dagbok.events.codes import Code
from tests.kafka_kills.site import PAUSE_S, SERVING, TIMEOUT_S, Site
from tests.kafka_kills.truth import check_site, refused, voids
from tests.support.scale import scale


@pytest.mark.parametrize("place", (BATCH_DECIDED, BATCH_APPENDED, OUTPUTS_SENT)[: scale(1, 3)])
@pytest.mark.parametrize("times", (12, 1)[: scale(1, 2)])
async def test_an_owner_that_slept_through_its_succession_writes_nothing_that_counts(
    site: Site, place: str, times: int
) -> None:
    """Asleep before the append, its batch comes behind those of its successor: every reader drops it. Both fold the
    same history then."""
    first = await site.add("scheduler", MEMBER_SLEEP=f"{place}:{times}")
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
