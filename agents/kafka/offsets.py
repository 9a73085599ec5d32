"""Where partitions end, and what groups are done with, as the broker says: for lag."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Final, TypeVar

from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
    for_code,
)

from dagbok.events.log.kafka_client import Place, close_consumer
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import Bounds

T = TypeVar("T")

PASSING: Final = (GroupCoordinatorNotAvailableError, GroupLoadInProgressError, NotCoordinatorForGroupError)
"""A broker makes the topic of its groups with the first question about one, and moves groups when brokers come and
go."""


class Offsets:
    """Asks by clients of its own, which are made with the first question and anew after a failure. `groups_s`: so long
    it waits for a broker whose groups are not there yet. Every call raises what `kafka_errors.FAILURES` has."""

    def __init__(self, settings: KafkaSettings, *, groups_s: float = 0.0) -> None:
        self._settings, self._groups_s = settings, groups_s
        self._consumer: AIOKafkaConsumer | None = None
        self._admin: AIOKafkaAdminClient | None = None

    async def bounds(self, places: Iterable[Place]) -> Mapping[Place, Bounds]:
        """The offset of the first record of each that is kept, and the one behind the last."""
        wanted = list(places)
        if not wanted:
            return {}
        if self._consumer is None:
            self._consumer = await self._started()
        starts = await self._consumer.beginning_offsets(wanted)
        ends = await self._consumer.end_offsets(wanted)
        return {Place(*place): Bounds(starts[place], ends[place]) for place in wanted}

    async def done(self, group: str) -> Mapping[Place, int]:
        """The offset behind what the group has acknowledged, by partition; none where that is nothing."""
        admin = await self._administrator()
        found = await self._of_group(lambda: admin.list_consumer_group_offsets(group))
        return {Place(*place): stand.offset for place, stand in found.items() if stand.offset >= 0}

    async def members(self, group: str) -> int:
        """How many processes the group has now."""
        admin = await self._administrator()

        async def describe() -> int:
            # One at a time: aiokafka cannot read the answer for several.
            (answer,) = await admin.describe_consumer_groups([group])
            for code, *_ in answer.groups:
                if (error := for_code(code)) in PASSING:
                    raise error(group)
            return sum(len(found[5]) for found in answer.groups)

        return await self._of_group(describe)

    async def _of_group(self, ask: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self._groups_s
        while True:
            try:
                return await ask()
            except PASSING:
                if loop.time() >= until_s:
                    raise
                await asyncio.sleep(self._settings.retry_backoff_s)

    async def close(self) -> None:
        """Let go; another question connects again."""
        consumer, self._consumer = self._consumer, None
        admin, self._admin = self._admin, None
        try:
            if consumer is not None:
                await consumer.stop()
        finally:
            if admin is not None:
                await admin.close()

    async def _started(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(**client_options(self._settings), enable_auto_commit=False)
        try:
            await consumer.start()
        except BaseException:
            await close_consumer(consumer)
            raise
        return consumer

    async def _administrator(self) -> AIOKafkaAdminClient:
        if self._admin is None:
            admin = AIOKafkaAdminClient(**client_options(self._settings))
            try:
                await admin.start()
            except BaseException:
                await admin.close()
                raise
            self._admin = admin
        return self._admin
