"""Reading past what cannot be read loses nothing of the other partitions, whatever is known of them by then."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState

from dagbok.events.log.kafka_unreadable import Fetch, PastUnreadable, Records

FIRST, SECOND = TopicPartition("lane", 0), TopicPartition("lane", 1)


class Unconnected:
    """The part of a consumer of two partitions that knows where it stands: of the first only, as yet."""

    def __init__(self) -> None:
        self._subscription = SubscriptionState()
        self._subscription.assign_from_user([FIRST, SECOND])
        self.seek(FIRST, 3)

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._subscription.subscription.assignment.state_value(place).seek(offset)

    def position(self, place: TopicPartition) -> int:
        position: int = self._subscription.subscription.assignment.state_value(place).position
        return position


@pytest.fixture
async def consumer() -> Unconnected:
    return Unconnected()


async def fetched(past: PastUnreadable, consumer: Unconnected, fetch: Fetch, *places: TopicPartition) -> Records:
    return await past.fetch(cast(AIOKafkaConsumer, consumer), fetch, places, 1.0)


async def test_a_partition_without_a_position_is_left_out_as_nobody_could_put_it_back(consumer: Unconnected) -> None:
    asked: list[Collection[TopicPartition]] = []

    async def fetch(places: Collection[TopicPartition], wait_s: float, most: int | None) -> Records:
        asked.append(set(places))
        consumer.seek(SECOND, 0)
        for place in places:
            consumer.seek(place, 8)
        raise UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte")

    assert await fetched(PastUnreadable(), consumer, fetch, FIRST, SECOND) == {}
    assert asked == [{FIRST}]
    assert (consumer.position(FIRST), consumer.position(SECOND)) == (3, 0)


async def test_nothing_is_fetched_while_no_position_is_known(consumer: Unconnected) -> None:
    async def fetch(places: Collection[TopicPartition], wait_s: float, most: int | None) -> Records:
        raise AssertionError("to aiokafka, no partitions are all of them")

    assert await fetched(PastUnreadable(), consumer, fetch, SECOND) == {}


async def test_a_fetch_is_as_long_as_it_was_asked_for_once_all_positions_are_known(consumer: Unconnected) -> None:
    waited: list[float] = []

    async def fetch(places: Collection[TopicPartition], wait_s: float, most: int | None) -> Records:
        waited.append(wait_s)
        return {}

    past = PastUnreadable()
    await fetched(past, consumer, fetch, FIRST, SECOND)
    consumer.seek(SECOND, 0)
    await fetched(past, consumer, fetch, FIRST, SECOND)
    assert waited[0] < waited[1] == 1.0
