"""Hears what is sent to the addresses of this process."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
import structlog
from aiokafka import AIOKafkaConsumer, TopicPartition

from dagbok.agents.kafka.names import reply_partition
from dagbok.agents.queue.port import Listener
from dagbok.agents.queue.transport import check_version
from dagbok.events.envelope import ENVELOPE_VERSION, Reply
from dagbok.events.log.kafka_client import close_consumer
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_unreadable import PastUnreadable, Records

logger = structlog.get_logger(__name__)

POLL_S: Final = 0.2


class ReplyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a record of `replies` holds."""

    v: int = ENVELOPE_VERSION
    to: str
    replies: tuple[Reply, ...]


_decode = msgspec.json.Decoder(ReplyRecord).decode


def decode_replies(value: bytes) -> ReplyRecord:
    """Raises `msgspec.MsgspecError` for what is no record of this version, with replies of this version."""
    record = _decode(value)
    for found in (record, *record.replies):
        check_version(found.v, ENVELOPE_VERSION)
    return record


class Replies:
    """`partitions`: of the topic; `process`: the id of this process. Of what is sent to its own addresses nothing is
    missed from `start` on; of other addresses, what is sent in the moment after `listen` may be."""

    def __init__(self, settings: KafkaSettings, topic: str, partitions: int, process: str) -> None:
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._consumer = AIOKafkaConsumer(
            **client_options(settings), enable_auto_commit=False, auto_offset_reset="latest"
        )
        self._past = PastUnreadable()
        self._listeners: dict[str, list[Listener]] = {}
        self._own = reply_partition(process, partitions)
        self._reads = {self._own}
        self._changed = False
        self.garbage = 0
        """Records that were no replies."""

    def listen(self, address: str, listener: Listener) -> None:
        """See `Queue.listen`."""
        self._listeners.setdefault(address, []).append(listener)
        self._changed = True

    def forget(self, address: str, listener: Listener) -> None:
        """See `Queue.forget`."""
        listeners = self._listeners.get(address, [])
        if listener in listeners:
            listeners.remove(listener)
        if not listeners:
            self._listeners.pop(address, None)
        self._changed = True

    async def start(self) -> None:
        """Connect. Raises `KafkaError`."""
        await self._consumer.start()
        self._consumer.assign(self._places)
        self._consumer.pause(*(place for place in self._places if place.partition != self._own))
        await self._consumer.seek_to_end(self._places[self._own])
        await self._consumer.position(self._places[self._own])

    async def run(self) -> None:
        """Hear, until cancelled."""
        while True:
            if self._changed:
                self._changed = False
                await self._choose()
            fetched = await self._past.fetch(self._consumer, self._fetch, self._places, POLL_S)
            for records in fetched.values():
                for record in records:
                    self._deliver(record.value)

    async def _fetch(self, places: Collection[TopicPartition], wait_s: float, most: int | None) -> Records:
        fetched: Records = await self._consumer.getmany(*places, timeout_ms=wait_s * 1000, max_records=most)
        return fetched

    async def close(self) -> None:
        """Let go."""
        await close_consumer(self._consumer)

    async def _choose(self) -> None:
        """Read the partitions of the addresses that somebody listens on, and no others."""
        count = len(self._places)
        wanted = {self._own, *(reply_partition(address, count) for address in self._listeners)}
        if gone := self._reads - wanted:
            self._consumer.pause(*(self._places[number] for number in gone))
        if fresh := [self._places[number] for number in wanted - self._reads]:
            await self._consumer.seek_to_end(*fresh)
            self._consumer.resume(*fresh)
        self._reads = wanted

    def _deliver(self, value: bytes | None) -> None:
        try:
            record = decode_replies(value or b"")
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.garbage += 1
            if self.garbage & (self.garbage - 1) == 0:
                logger.warning("replies.garbage", count=self.garbage, error=str(error))
            return
        for listener in tuple(self._listeners.get(record.to, ())):
            listener(record.replies)
