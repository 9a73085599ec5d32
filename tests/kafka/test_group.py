"""Which process looks after which partition, on a real broker."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from dagbok.agents.kafka.group import Group
from dagbok.agents.kafka.holders import Hold
from dagbok.events.log.kafka_settings import KafkaSettings
from tests.kafka.conftest import NewTopics

PARTITIONS = 4
ALL = frozenset(range(PARTITIONS))
TIMEOUT_S = 20.0


class Seen:
    """What is held by whom, and what was begun and ended, in order."""

    def __init__(self) -> None:
        self.held: dict[str, set[int]] = {}
        self.told: list[tuple[str, str, int]] = []
        self.changed = asyncio.Condition()

    def holder(self, name: str) -> Hold:
        self.held[name] = set()

        async def hold(partition: int) -> None:
            await self._tell(name, "begun", partition)
            try:
                await asyncio.Event().wait()
            finally:
                await self._tell(name, "ended", partition)

        return hold

    async def _tell(self, name: str, what: str, partition: int) -> None:
        (self.held[name].add if what == "begun" else self.held[name].discard)(partition)
        self.told.append((name, what, partition))
        async with self.changed:
            self.changed.notify_all()

    async def until(self, wanted: Callable[[], bool]) -> None:
        async with asyncio.timeout(TIMEOUT_S), self.changed:
            await self.changed.wait_for(wanted)

    def shares(self, *names: str) -> bool:
        """Every partition is held by exactly one of them, and each of them holds one at least."""
        held = [self.held[name] for name in names]
        return all(held) and sorted(n for some in held for n in some) == sorted(ALL)


@asynccontextmanager
async def member(settings: KafkaSettings, topic: str, seen: Seen, name: str) -> AsyncIterator[asyncio.Task[None]]:
    async with taking_part(Group(settings, topic, f"{topic}-group", seen.holder(name), session_s=1.5)) as task:
        yield task


@asynccontextmanager
async def taking_part(group: Group) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(group.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def topic(new_topic: NewTopics) -> str:
    return await new_topic("commands", PARTITIONS)


async def test_who_is_alone_has_them_all_and_shares_with_whoever_comes(settings: KafkaSettings, topic: str) -> None:
    seen = Seen()
    async with member(settings, topic, seen, "a"):
        await seen.until(lambda: seen.shares("a"))
        async with member(settings, topic, seen, "b"), member(settings, topic, seen, "c"):
            await seen.until(lambda: seen.shares("a", "b", "c"))
        await seen.until(lambda: seen.shares("a"))
    assert seen.held == {"a": set(), "b": set(), "c": set()}


async def test_what_a_process_keeps_goes_on_through_a_rebalance(settings: KafkaSettings, topic: str) -> None:
    seen = Seen()
    async with member(settings, topic, seen, "a"):
        await seen.until(lambda: seen.shares("a"))
        async with member(settings, topic, seen, "b"):
            await seen.until(lambda: seen.shares("a", "b"))
            kept = set(seen.held["a"])
            assert kept
            of_kept = [what for name, what, partition in seen.told if name == "a" and partition in kept]
            assert of_kept == ["begun"] * len(kept)


async def test_a_member_that_leads_before_it_hears_of_its_topic_has_the_partitions_soon_after(
    settings: KafkaSettings, new_topic: NewTopics
) -> None:
    """As one that leads when its broker has just started, and tells of no topics yet."""
    seen = Seen()
    group = Group(settings, f"{settings.prefix}commands", f"{settings.prefix}group", seen.holder("a"), session_s=1.5)
    async with taking_part(group):
        async with asyncio.timeout(TIMEOUT_S):
            await group.joined.wait()
        assert group.partitions == frozenset(), "it shares out nothing"
        await new_topic("commands", PARTITIONS)
        await seen.until(lambda: seen.shares("a"))


async def test_when_what_looks_after_a_partition_fails_so_does_the_process(
    settings: KafkaSettings, topic: str
) -> None:
    async def fails(partition: int) -> None:
        raise OSError(f"partition {partition} burns")

    with pytest.raises(OSError, match="burns"):
        async with asyncio.timeout(TIMEOUT_S):
            await Group(settings, topic, f"{topic}-group", fails, session_s=1.5).run()


async def test_a_member_whose_holders_end_slowly_stays_in_the_group(settings: KafkaSettings, topic: str) -> None:
    """As an owner that uploads a snapshot: for longer than a session."""
    seen, let_go = Seen(), asyncio.Event()
    quick = seen.holder("a")

    async def slowly(partition: int) -> None:
        try:
            await quick(partition)
        finally:
            await let_go.wait()

    slow = Group(settings, topic, f"{topic}-group", slowly, session_s=1.5)
    async with taking_part(slow):
        await seen.until(lambda: seen.shares("a"))
        async with member(settings, topic, seen, "b"):
            await seen.until(lambda: seen.shares("a", "b"))
            kept = set(seen.held["a"])
            await asyncio.sleep(3)  # two sessions
            assert (seen.held["a"], slow.partitions) == (kept, frozenset(kept))
            let_go.set()
        await seen.until(lambda: seen.shares("a"))
