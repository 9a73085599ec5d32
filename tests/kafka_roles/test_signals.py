"""A scheduler that is told to end in the middle of something: it ends in time, and the next one has lost nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

from dagbok import TaskSpec
from dagbok.events.run import events as e
from tests.kafka_roles.role_site import MODULE, PARTITIONS, RoleSite

HELD_UP = (sys.executable, "-m", "tests.kafka_roles.held_up")
STOP_S = 28.0
"""Kubernetes kills after 30."""
TASKS = 10


async def started(site: RoleSite, key: str) -> str:
    """A run; its stream."""
    return await site.run(key, [TaskSpec(goal=f"task {n}", worker="ones", verifier="yes") for n in range(TASKS)])


async def succeeded(site: RoleSite, stream: str) -> None:
    """Every task of it, once."""
    found = await site.seen(stream, e.RunSucceeded)
    assert sum(isinstance(event, e.TaskVerified) for event in found) == TASKS


async def test_during_a_snapshot_which_is_finished(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("worker", "--import", str(MODULE))
    pipe = site.folder / "pipe"
    os.mkfifo(pipe)
    scheduler = await site.start("scheduler", program=(*HELD_UP, "snapshot", str(pipe)))
    stream = await started(site, "first")
    await scheduler.said("the snapshot is written")
    began_s = time.monotonic()
    scheduler.process.send_signal(signal.SIGTERM)
    await scheduler.logged("scheduler.stopping")
    await asyncio.to_thread(lambda: pipe.open("w").close())
    assert (await scheduler.ended(), time.monotonic() - began_s < STOP_S) == (0, True)
    assert await scheduler.logged("snapshot.written")
    await site.start("scheduler")
    await succeeded(site, stream)
    await succeeded(site, await started(site, "second"))


async def test_during_a_rebalance(site: RoleSite) -> None:
    await site.create_topics()
    await site.start("worker", "--import", str(MODULE))
    scheduler = await site.start("scheduler", program=(*HELD_UP, "rebalance", "-"))
    for number in range(PARTITIONS):
        await scheduler.logged("partition.owned", partition=number)
    streams = [await started(site, f"before {number}") for number in range(2)]
    other = await site.start("scheduler")
    await scheduler.said("the rebalance has begun")
    streams += [await started(site, f"meanwhile {number}") for number in range(2)]
    began_s = time.monotonic()
    assert (await scheduler.stopped(), time.monotonic() - began_s < STOP_S) == (0, True)
    for number in range(PARTITIONS):
        await other.logged("partition.owned", partition=number)
    for stream in streams:
        await succeeded(site, stream)
