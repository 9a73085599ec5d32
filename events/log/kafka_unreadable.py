"""Reads past records that aiokafka cannot decode, in clients that read several partitions.

It stops at a record that names a header in bytes that are no text, also on the way to what stands behind it in the same
batch, and says neither which partition that is in, nor gives what it has read of the others meanwhile. So positions are
put back, and the partitions are read one by one until the record is met: an empty one takes its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.structs import ConsumerRecord

Records = Mapping[TopicPartition, list[Any]]
Fetch = Callable[[Collection[TopicPartition], float, int | None], Awaitable[Records]]
"""What is there of these partitions; waits so many seconds for the first record; brings so many at most."""

WAIT_S: Final = 0.02


class PastUnreadable:
    """Of one consumer."""

    def __init__(self) -> None:
        self._suspects: set[TopicPartition] = set()
        """One of them has a record that cannot be read, in front of what it has got to."""

    async def fetch(
        self,
        consumer: AIOKafkaConsumer,
        fetch: Fetch,
        places: Collection[TopicPartition],
        wait_s: float,
        most: int | None = None,
    ) -> Records:
        """What `fetch` brings of `places`, each record of them once. A record that cannot be read comes without key,
        value and headers; so does what stands behind it in its batch. May bring nothing before the time is over."""
        if self._suspects:
            return await self._one_by_one(consumer, fetch, places)
        before = _positions(consumer)
        known = before.keys() & set(places)
        if not known:
            await asyncio.sleep(min(wait_s, WAIT_S))
            return {}
        try:
            # What has no position yet is left out: where its records began, nobody could say afterwards.
            return await fetch(known, wait_s if len(known) == len(places) else min(wait_s, WAIT_S), most)
        except UnicodeDecodeError:
            ends = _positions(consumer)
            for place in before.keys() & ends.keys():
                consumer.seek(place, before[place])
            self._suspects = before.keys() & ends.keys()
            return {}

    async def _one_by_one(
        self, consumer: AIOKafkaConsumer, fetch: Fetch, places: Collection[TopicPartition]
    ) -> Records:
        found: dict[TopicPartition, list[Any]] = {}
        for place in sorted(places):
            try:
                found.update(await fetch((place,), 0, 1))
            except UnicodeDecodeError:
                offset = _positions(consumer)[place]
                consumer.seek(place, offset + 1)
                found[place] = [_empty(place, offset)]
                self._suspects = set()
                return found
        positions = _positions(consumer)
        self._suspects = {place for place in self._suspects if _is_before_end(consumer, place, positions)}
        if not found:
            await asyncio.sleep(WAIT_S)
        return found


def _positions(consumer: AIOKafkaConsumer) -> Mapping[TopicPartition, int]:
    """Where it goes on in each partition that it has and of which that is known."""
    subscription = consumer._subscription.subscription
    assignment = None if subscription is None else subscription.assignment
    if assignment is None:
        return {}
    return {place: found.offset for place, found in assignment.all_consumed_offsets().items()}


def _is_before_end(
    consumer: AIOKafkaConsumer, place: TopicPartition, positions: Mapping[TopicPartition, int]
) -> bool:
    """Of a partition that was taken away, or read to its end, nothing is to be feared any more."""
    return place in positions and positions[place] < (consumer.highwater(place) or 0)


def _empty(place: TopicPartition, offset: int) -> Any:
    return ConsumerRecord(place.topic, place.partition, offset, 0, 0, None, b"", None, -1, 0, ())
