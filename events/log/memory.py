"""The memory log. It has two purposes: to be the shortest adapter, and to be the tutorial for the next one.

Everything that the port promises is here in its plainest form; a real log adds durability, other processes and speed.
No method suspends between its first look at a partition and its last change, so each is atomic for the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.events.errors import EndMoved, LogLost
from dagbok.events.log.checks import TOPICS, check_limit, check_place, check_records, log_closed
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.port import Bounds, Record, StoredRecord, Topic


class _Partition:
    """Records by offset, `start` ≤ offset < `end`, without holes."""

    def __init__(self) -> None:
        self.records: dict[int, StoredRecord] = {}
        self.start = 0
        self.end = 0
        self.last_ms = 0
        self.moved = asyncio.Event()

    def wake(self) -> None:
        self.moved.set()
        self.moved = asyncio.Event()


class MemoryLog:
    """A log that lives and dies with the process. It refuses an append whose `expect` is not the end."""

    def __init__(self, partitions: int = 1, clock: Clock = system_ms) -> None:
        self._count = partitions
        self._clock = clock
        self._closed = False
        self._partitions = {(topic, number): _Partition() for topic in TOPICS for number in range(partitions)}

    @property
    def partitions(self) -> int:
        return self._count

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        place = self._place(topic, partition)
        check_records(records)
        if expect is not None and expect != place.end:
            raise EndMoved(topic, partition, expect, place.end)
        first = place.end
        place.last_ms = max(place.last_ms, self._clock())
        for offset, record in enumerate(records, first):
            place.records[offset] = StoredRecord(offset, place.last_ms, record.key, record.value, record.headers)
        place.end += len(records)
        place.wake()
        return first

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        return self.read_now(topic, partition, start, limit)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        place = self._place(topic, partition)
        return Bounds(place.start, place.end)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                while (place := self._place(topic, partition)).end <= offset:
                    await place.moved.wait()
        except TimeoutError:
            return False
        return True

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        place = self._place(topic, partition)
        start = max(place.start, min(offset, place.end))
        for gone in range(place.start, start):
            del place.records[gone]
        place.start = start

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        record = self._place(topic, partition).records.get(offset)
        if record is None:
            raise LogLost(f"{topic}[{partition}] has no record at offset {offset}")
        return record.value

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        place = self._place(topic, partition)
        check_limit(limit)
        start, end = max(start, place.start), place.end
        found = [place.records.get(offset) for offset in range(start, min(start + limit, end))]
        return [record for record in found if record is not None]  # in another thread some may be removed meanwhile

    async def close(self) -> None:
        self._closed = True
        for place in self._partitions.values():
            place.wake()

    def _place(self, topic: Topic, partition: int) -> _Partition:
        if self._closed:
            raise log_closed()
        check_place(topic, partition, self._count)
        return self._partitions[topic, partition]
