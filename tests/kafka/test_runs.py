"""The main job on Kafka in one process: runs are started, worked on, verified and done, each in its partition."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from dagbok import Outcome, TaskContext, TaskSpec, worker
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.agents.workers.definitions import Registry
from dagbok.events.envelope import Answer, Sender, run_command
from dagbok.events.ids import partition_of, run_id, run_stream
from dagbok.events.log import kafka_topics as topics
from dagbok.events.log.clock import system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.run.commands import CancelRun, RunCommand
from dagbok.events.run.values import Pinned
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.manifest import decode_manifest
from dagbok.projections.task_graph.state import RunState
from dagbok.starting import start_command
from tests.support.hosts import TIMEOUT_S, yes

PARTITIONS = 4
SENDER = Sender("acme", "docs", "user:ann")


@worker("ones", pure=True)
async def ones(task: TaskContext) -> Outcome:
    """Always the same."""
    return Outcome.candidate(1)


class Site:
    """A process that decides, works and verifies."""

    def __init__(self, process: KafkaProcess, registry: Registry) -> None:
        self.process, self.registry = process, registry
        self._commands = 0
        self._moved = asyncio.Condition()
        self.scheduler = process.schedule(snapshot_bytes=20_000)

    async def start(self, key: str, count: int) -> str:
        """Start a run of so many tasks; its stream."""
        run = run_id("acme", "docs", key)
        tasks = [TaskSpec(goal=f"task {number}", worker="ones", verifier="yes") for number in range(count)]
        command = start_command(run, tasks, Pinned(self.registry.pins()), pool="default", user="ann")
        answer = await self.send(run_stream(run), command)
        assert answer.accepted, answer.reason
        return run_stream(run)

    async def send(self, stream: str, command: RunCommand) -> Answer:
        self._commands += 1
        return await self.process.ask(
            run_command(SENDER, stream, command, id=f"c{self._commands}", now_ms=system_ms())
        )

    def find(self, stream: str) -> RunState | None:
        deciding = self.scheduler.deciding(partition_of(stream, PARTITIONS))
        return None if deciding is None else deciding.owner.state.run_of(stream)

    async def ended(self, stream: str) -> Mapping[str, int]:
        """Wait for the end of a run; its tasks by status."""
        over = asyncio.Event()
        deciding = self.scheduler.deciding(partition_of(stream, PARTITIONS))
        assert deciding is not None

        def look(state: PartitionState, _: object) -> None:
            if (found := state.run_of(stream)) is not None and found.status not in ("running", "paused"):
                over.set()

        unwatch = deciding.outputs.watch(look)
        look(deciding.owner.state, ())
        async with asyncio.timeout(TIMEOUT_S):
            await over.wait()
        unwatch()
        found = self.find(stream)
        assert found is not None
        return {status: count for status, count in found.counts.items() if count}


@pytest.fixture
async def site(settings: KafkaSettings, tmp_path: Path) -> AsyncIterator[Site]:
    await topics.create(settings, topics.declared(settings.prefix, PARTITIONS))
    registry = Registry()
    registry.add(ones)
    registry.add(yes)
    process = await KafkaProcess.open(settings, str(tmp_path), registry, session_s=1.5)
    site = Site(process, registry)
    async with asyncio.timeout(TIMEOUT_S):
        for number in range(PARTITIONS):
            await site.scheduler.owned(number)
    process.work(["default"])
    yield site
    await process.close()
    assert not process.failure.done()


async def test_runs_in_several_partitions_go_on_side_by_side_and_end(site: Site) -> None:
    streams = [await site.start(f"run {number}", 10) for number in range(6)]
    assert len({partition_of(stream, PARTITIONS) for stream in streams}) > 1
    ends = await asyncio.gather(*(site.ended(stream) for stream in streams))
    assert ends == [{"verified": 10}] * 6


async def test_a_large_run_ends_with_every_task_verified(site: Site) -> None:
    assert await site.ended(await site.start("large", 300)) == {"verified": 300}


async def test_the_same_command_again_gets_the_first_answer(site: Site) -> None:
    stream = await site.start("once", 1)
    await site.ended(stream)
    cancel = run_command(SENDER, stream, CancelRun("too late"), id="the-one", now_ms=system_ms())
    first = await site.process.ask(cancel)
    assert (first.accepted, first.code) == (False, "run_closed")
    again = await site.process.ask(cancel)
    assert (again.accepted, again.code) == (first.accepted, first.code)


async def test_the_next_process_goes_on_from_a_snapshot(site: Site, settings: KafkaSettings, tmp_path: Path) -> None:
    keys = [f"before {number}" for number in range(40)]
    here = [key for key in keys if partition_of(run_stream(run_id("acme", "docs", key)), PARTITIONS) == 0]
    for key in here[:5]:
        stream = await site.start(key, 60)
        await site.ended(stream)
    await site.process.close()
    process = await KafkaProcess.open(settings, str(tmp_path), site.registry, session_s=1.5)
    heir = Site(process, site.registry)
    partition = partition_of(stream, PARTITIONS)
    async with asyncio.timeout(TIMEOUT_S):
        deciding = await heir.scheduler.owned(partition)
    found = heir.find(stream) or deciding.recovery.peek(stream)
    assert found is not None
    assert (found.status, found.counts["verified"]) == ("succeeded", 60)
    slots = KafkaSlots(settings, partition, LoopThread("test"))
    kept = await asyncio.to_thread(slots.read)
    numbers = [manifest.number for data in kept if (manifest := decode_manifest(data)) is not None]
    assert len(numbers) == 2, "the newest, and the one before"
    bounds = await process.log.bounds("commands", partition)
    assert bounds.start > 0, "commands below the older snapshot are gone"
    await process.close()
