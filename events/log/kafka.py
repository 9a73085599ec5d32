"""The log on Apache Kafka: many partitions, many machines. It cannot refuse an append, and says where it landed.

What each part is trusted with: `docs/design/kafka.md`. Writing: `kafka_writer.py`; reading: `kafka_reader.py`; waiting:
`kafka_watch.py`; topics: `kafka_topics.py`; settings: `kafka_settings.py`; sizes: `kafka_sizes.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from dagbok.events.errors import StorageFailed
from dagbok.events.log.checks import TOPICS, check_limit, check_place, check_records, log_closed
from dagbok.events.log.kafka_admin import administrator
from dagbok.events.log.kafka_calls import Calls
from dagbok.events.log.kafka_client import Place, place
from dagbok.events.log.kafka_errors import topics_command
from dagbok.events.log.kafka_producers import Producers
from dagbok.events.log.kafka_reader import Reader
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_sizes import FETCH_BYTES
from dagbok.events.log.kafka_values import Values
from dagbok.events.log.kafka_watch import Watch
from dagbok.events.log.kafka_writer import Writer
from dagbok.events.log.port import COMMANDS, EVENTS, Bounds, Record, StoredRecord, Topic

CURSORS: Final = 4
"""For each partition: more readers than that at different places take turns."""


class KafkaLog:
    """A log in two topics of a cluster.

    Besides what the port says, every call may raise `LogError` (`log_unreachable`: no broker answers) and
    `StorageFailed` (the broker does not let this client in); an append `InvalidInput` (`too_large`: nothing was
    written). The log can be used again after each. Any other error of an append is doubt.

    The append time is the broker's wall clock. Kafka does not keep that from running backwards where a broker's clock
    is set back or a partition gets a new leader; folds take the later time (`docs/design/architecture.md`, 3.2).
    """

    def __init__(self, settings: KafkaSettings, partitions: int, reader: Reader) -> None:
        """See `open`."""
        self.settings, self._count, self._reader = settings, partitions, reader
        self._producers = Producers(settings)
        self._values = Values(settings, list(reader.pools))
        self._writers: dict[Place, Writer] = {}
        self._watches: dict[Place, Watch] = {}
        self._calls = Calls()
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, settings: KafkaSettings) -> KafkaLog:
        """Connect to the topics `commands` and `events` below the prefix of the settings.

        Raises `LogError` (`log_unreachable`) when no broker answers, `StorageFailed` when a topic is missing, when the
        two differ in their number of partitions, or the broker does not let this client in, and `InvalidInput` for
        settings that cannot be used.
        """
        async with Calls().one(settings.bootstrap_servers):
            partitions = await _partitions(settings)
            places = [place(settings.prefix + topic, number) for topic in TOPICS for number in range(partitions)]
            reader = await Reader.open(settings, places, cursors=CURSORS, fetch_bytes=FETCH_BYTES, ahead=True)
        return cls(settings, partitions, reader)

    @property
    def partitions(self) -> int:
        return self._count

    async def append(
        self, topic: Topic, partition: int, records: Sequence[Record], *, expect: int | None = None
    ) -> int:
        found = self._place(topic, partition)
        check_records(records)
        return await self._writer(found, topic).append(records)

    async def read(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        found = self._place(topic, partition)
        check_limit(limit)
        async with self._calls.one(_name(topic, partition)):
            return await self._reader.read(found, start, limit)

    async def bounds(self, topic: Topic, partition: int) -> Bounds:
        found = self._place(topic, partition)
        async with self._calls.one(_name(topic, partition)):
            return await self._reader.bounds(found)

    async def wait(self, topic: Topic, partition: int, offset: int, timeout_s: float | None = None) -> bool:
        found = self._place(topic, partition)
        if found not in self._watches:
            self._watches[found] = Watch(self._reader, found, _name(topic, partition))
        async with self._calls.one(_name(topic, partition)):
            return await self._watches[found].wait(offset, timeout_s)

    async def delete_before(self, topic: Topic, partition: int, offset: int) -> None:
        found = self._place(topic, partition)
        async with self._calls.one(_name(topic, partition)):
            bounds = await self._reader.bounds(found)
            if (before := min(offset, bounds.end)) > bounds.start:
                async with administrator(self.settings) as admin:
                    await admin.delete_before(found, before)

    def value_at(self, topic: Topic, partition: int, offset: int) -> bytes:
        return self._values.value(self._place(topic, partition), _name(topic, partition), offset)

    def read_now(self, topic: Topic, partition: int, start: int, limit: int) -> Sequence[StoredRecord]:
        found = self._place(topic, partition)
        check_limit(limit)
        return self._values.records(found, _name(topic, partition), start, limit)

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await self._calls.end()
        await asyncio.gather(*(watch.close() for watch in self._watches.values()))
        await asyncio.gather(*(writer.finish() for writer in self._writers.values()))
        await asyncio.gather(self._producers.close(), self._reader.close(), self._values.close())

    def _writer(self, found: Place, topic: Topic) -> Writer:
        if found not in self._writers:
            self._writers[found] = Writer(
                self._producers,
                found,
                _name(topic, found.partition),
                2 * self.settings.request_timeout_s,
                lambda end: self._reader.note(found, end),
            )
        return self._writers[found]

    def _place(self, topic: Topic, partition: int) -> Place:
        if self._closing is not None:
            raise log_closed()
        check_place(topic, partition, self._count)
        return place(self.settings.prefix + topic, partition)


async def _partitions(settings: KafkaSettings) -> int:
    """The number that both topics have."""
    names = [settings.prefix + topic for topic in (COMMANDS, EVENTS)]
    async with administrator(settings) as admin:
        topics = await admin.topics(names)
    if missing := [name for name in names if name not in topics]:
        told = f"the cluster at {settings.bootstrap_servers} has no topic {' and no '.join(missing)}"
        raise StorageFailed(told, advice=f"create the topics: {topics_command(settings, 'create')}")
    commands, events = (topics[name].partitions for name in names)
    if commands != events:
        told = f"{names[0]} has {commands} partitions and {names[1]} has {events}: they must agree"
        check = topics_command(settings, "check")
        raise StorageFailed(told, advice=f"see {check}; a topic that has data cannot be changed")
    return commands


def _name(topic: Topic, partition: int) -> str:
    return f"{topic}[{partition}]"
