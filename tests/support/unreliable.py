"""A log behind a bad network: appends are lost, late, doubled, or land without anybody hearing of it.

Every writer has a `Connection` of its own to one `MemoryLog`. A connection that `refuses` passes `expect` on, as SQLite
does; one that does not can only report where a batch landed, as Kafka does. All chances come from one seeded `Random`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from dagbok.events.errors import StorageFailed
from dagbok.events.log.memory import MemoryLog
from dagbok.events.log.port import EVENTS, Bounds, Log, Record, StoredRecord, Topic

MAX_TURNS: Final = 6


class Network:
    """What all connections share: the log, the appends that are still under way, and how often something goes
    wrong (`chance`, 0 for a network that works). `now_ms`: the log's clock."""

    def __init__(self, random: Random, chance: float) -> None:
        self.now_ms = 0
        self.log: Log = MemoryLog(clock=lambda: self.now_ms)
        self.random, self.chance = random, chance
        self.late: list[Sequence[Record]] = []
        self.faults = 0

    async def land_late(self, *, all: bool = False) -> None:
        """Some of the batches that nobody hopes for any more arrive."""
        while self.late and (all or self.random.random() < 0.5):
            batch = self.late.pop(self.random.randrange(len(self.late)))
            await self.log.append(EVENTS, 0, batch)


class Connection:
    """One writer's way to the log."""

    def __init__(self, network: Network, *, refuses: bool) -> None:
        self._network, self._refuses = network, refuses
        self._log = network.log

    @property
    def partitions(self) -> int:
        return self._log.partitions

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        network, random = self._network, self._network.random
        await self._delay()
        if topic != EVENTS or random.random() >= network.chance:
            await network.land_late()
            return await self._write(topic, partition, records, expect)
        network.faults += 1
        match random.choice(("lost", "late", "unheard", "doubled", "deduplicated")):
            case "lost":
                raise StorageFailed("nothing was written")
            case "late":
                network.late.append(records)
                raise TimeoutError("no acknowledgement, and the batch is still under way")
            case "unheard":
                await self._write(topic, partition, records, expect)
                await self._delay()
                raise TimeoutError("no acknowledgement, and the batch is there")
            case "doubled":
                network.late.append(records)
                return await self._write(topic, partition, records, expect)
            case _:
                await self._write(topic, partition, records, expect)
                return -1

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        await self._delay()
        return await self._log.read(topic, partition, start, min(limit, self._network.random.randrange(1, 9)))

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        return await self._log.bounds(topic, partition)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        return await self._log.wait(topic, partition, offset, timeout_s)

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        await self._log.delete_before(topic, partition, offset)

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        return self._log.value_at(topic, partition, offset)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        return self._log.read_now(topic, partition, start, limit)

    async def close(self) -> None:
        """The log stays open for the others."""

    async def _write(self, topic: Topic, partition: int, records: Sequence[Record], expect: int | None) -> int:
        landed = await self._log.append(topic, partition, records, expect=expect if self._refuses else None)
        await self._delay()
        return landed

    async def _delay(self) -> None:
        for _ in range(self._network.random.randrange(MAX_TURNS)):
            await asyncio.sleep(0)


def unreliable(seed: int, chance: float) -> Network:
    """A fresh memory log behind a bad network."""
    return Network(Random(seed), chance)
