"""Processes come and go under load, and long tasks run beside short ones."""

from __future__ import annotations

import asyncio
from itertools import count

from dagbok.events.ids import partition_of
from dagbok.events.run import events as e
from tests.kafka_kills.site import EVERYBODY, PAUSE_S, TIMEOUT_S, Site
from tests.kafka_kills.tables import check_tables
from tests.kafka_kills.truth import check_site
from tests.kafka_kills.workload import long_tasks
from tests.support.audit import effective_commits
from tests.support.scale import scale

ROLES = ("scheduler", "worker", "verifier", "projector")
PROCESSES = (",".join(ROLES), *ROLES)[scale(0, 1) : scale(1, 5)]


async def test_each_role_grows_from_one_process_to_three_and_shrinks_to_one_under_load(site: Site) -> None:
    """At small scale the roles share processes; there are three of each all the same."""
    load = asyncio.create_task(_load(site, enough := asyncio.Event()))
    for processes in (1, 3, 1):
        for roles in PROCESSES:
            while len(site.of(roles)) < processes:
                await site.begin(roles)
            while len(site.of(roles)) > processes:
                await site.leave(site.of(roles)[0])
        for role in ROLES:
            await site.shared(role)
        await site.more_ended(2)
    enough.set()
    await load
    await check_site(site)
    await check_tables(site)


async def _load(site: Site, enough: asyncio.Event) -> None:
    """A run after the other, three at a time."""
    numbers = count()

    async def one_by_one() -> None:
        while not enough.is_set():
            await site.ended([await site.start(f"load {next(numbers)}")])

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(one_by_one())


async def test_tasks_of_ten_minutes_hold_up_nobody_beside_them(site: Site) -> None:
    """Nobody else in their partitions, no membership, and no lease: they are renewed."""
    await site.add(EVERYBODY)
    slow = await site.start("slow", long_tasks(8))
    await _claimed(site, slow, 8)
    beside = [key for key in (f"quick {number}" for number in range(40)) if _is_beside(site, key, slow)][:4]
    for keys in (beside, [f"elsewhere {number}" for number in range(8)]):
        await site.ended([await site.start(key) for key in keys])
    assert slow not in site.ends
    assert await _count(site, slow, e.AttemptLost) == 0
    await check_site(site)


def _is_beside(site: Site, key: str, stream: str) -> bool:
    return partition_of(site.stream_of(key), site.partitions) == partition_of(stream, site.partitions)


async def _claimed(site: Site, stream: str, attempts: int) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while await _count(site, stream, e.AttemptStarted) < attempts:  # noqa: ASYNC110 – claims are not told here
            await asyncio.sleep(PAUSE_S)


async def _count(site: Site, stream: str, kind: type[e.Event]) -> int:
    commits = await effective_commits(site.process.log, partition_of(stream, site.partitions))
    return sum(isinstance(event, kind) for seal, events in commits if seal.stream == stream for event in events)
