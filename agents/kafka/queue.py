"""The queue on Kafka: dispatches, hints and answers as records of topics. It loses and repeats, as `Queue` allows."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from dagbok.agents.hosting.services import Services
from dagbok.agents.kafka.lane import LaneIntake
from dagbok.agents.kafka.names import lane_topic, replies_topic, reply_partition
from dagbok.agents.kafka.parcels import Parcels
from dagbok.agents.kafka.pool import LaneReader
from dagbok.agents.kafka.replies import Replies, ReplyRecord
from dagbok.agents.kafka.routes import Letter
from dagbok.agents.kafka.sending import Sending
from dagbok.agents.queue.port import AttemptKey, Lane, Listener, Taker, lane_address
from dagbok.agents.tracing.switch import attempt_contexts
from dagbok.events.envelope import CancelHint, Dispatch, Reply
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.traceparent import TRACEPARENT
from dagbok.projections.artifacts.port import ArtifactStore

logger = structlog.get_logger(__name__)

SESSION_S: Final = 10.0
MAX_BYTES: Final = 1024 * 1024
"""Of a record: a parcel is at most 64 KiB, and replies are spread over records."""
REPLIES_BYTES: Final = 64 * 1024
"""Replies in a record, but for one that is larger by itself."""


class KafkaQueue:
    """One process's end of it. `store`: where dispatches lie that are too large to travel, the same for all processes;
    `session_s`: after how long without a sign of life others get what this process was sent and has not claimed.
    `failure` gets what ends it."""

    def __init__(
        self,
        settings: KafkaSettings,
        process: str,
        failure: asyncio.Future[BaseException],
        store: ArtifactStore,
        *,
        session_s: float = SESSION_S,
    ) -> None:
        self._settings, self._prefix, self._process = settings, settings.prefix, process
        self._session_s = session_s
        self._services = Services(failure)
        self._context = attempt_contexts()
        self._parcels = Parcels(store)
        self._sending = Sending(settings, max_bytes=MAX_BYTES)
        self._replies: Replies | None = None
        self._listening: list[tuple[str, Listener]] = []
        self._reply_partitions = 1
        self._lanes: dict[Lane, LaneIntake] = {}
        self._reading: dict[Lane, asyncio.Task[None]] = {}
        self.readers: dict[Lane, LaneReader] = {}
        """By lane, who reads it for this process."""
        self.garbage = 0
        """Records of the lanes that were no dispatches."""
        self._hears: dict[Lane, Listener] = {}
        self._scratch = tempfile.TemporaryDirectory(prefix="dagbok-faust-")

    async def start(self) -> None:
        """Connect; from now on nothing is missed that is sent to addresses of this process. Raises `KafkaError`."""
        await self._sending.start()
        topic = replies_topic(self._prefix)
        self._reply_partitions = await self._sending.partitions_of(topic)
        self._replies = Replies(self._settings, topic, self._reply_partitions, self._process)
        for address, listener in self._listening:
            self._replies.listen(address, listener)
        await self._replies.start()
        self._services.serve(self._sending.run())
        self._services.serve(self._sending.route())
        self._services.serve(self._replies.run())

    async def close(self) -> None:
        """Leave the groups, send what waits, and let go."""
        await self._services.end()
        await self._parcels.close()
        await self._sending.close()
        if self._replies is not None:
            await self._replies.close()
        self._scratch.cleanup()

    @property
    def lost(self) -> int:
        """Records that the broker did not take, and dispatches that the store did not."""
        return self._sending.lost + self._parcels.lost

    @property
    def reply_garbage(self) -> int:
        """Records of the replies that were none."""
        return 0 if self._replies is None else self._replies.garbage

    def has_topic(self, lane: Lane) -> bool:
        """As far as this process has had anything to put there."""
        return self._sending.has_topic(lane_topic(self._prefix, lane))

    def is_busy(self, lane: Lane) -> bool:
        """See `LaneIntake`."""
        return self._lane(lane).is_busy

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        """See `Queue`; what waits on the broker already comes twice, and its taker drops it. What has to be stored
        first may come behind what is put after it."""
        for dispatch in dispatches:
            self._parcels.pack(dispatch, partial(self.put_raw, lane, traceparent=self._context(dispatch)))

    def put_raw(self, lane: Lane, value: bytes, traceparent: str | None = None) -> None:
        """Put bytes where dispatches go, whatever they are."""
        headers = () if traceparent is None else ((TRACEPARENT, traceparent.encode()),)
        self._sending.put(Letter(lane_topic(self._prefix, lane), value, headers=headers))

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        """See `Queue`."""
        return await self._lane(lane).take()

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        """See `Queue`."""
        self.reply(lane_address(lane), hints)

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        """See `Queue`."""
        value = msgspec.json.encode(ReplyRecord(to=address, replies=tuple(replies)))
        if len(value) > REPLIES_BYTES and len(replies) > 1:
            half = len(replies) // 2
            self.reply(address, replies[:half])
            self.reply(address, replies[half:])
            return
        partition = reply_partition(address, self._reply_partitions)
        self._sending.put(Letter(replies_topic(self._prefix), value, partition))

    def listen(self, address: str, listener: Listener) -> None:
        """See `Queue`."""
        self._listening.append((address, listener))
        if self._replies is not None:
            self._replies.listen(address, listener)

    def forget(self, address: str, listener: Listener) -> None:
        """See `Queue`."""
        if (address, listener) in self._listening:
            self._listening.remove((address, listener))
        if self._replies is not None:
            self._replies.forget(address, listener)

    def serve(self, lane: Lane, taker: Taker) -> None:
        """See `SharedQueue`."""
        intake = self._lane(lane)
        intake.taker = taker
        self._hears[lane] = intake.hinted
        self.listen(lane_address(lane), intake.hinted)
        intake.freed()
        if lane not in self._reading:
            reader = self.readers[lane] = LaneReader(
                self._settings,
                lane,
                intake,
                self._parcels,
                self._count_garbage,
                session_s=self._session_s,
                scratch=Path(self._scratch.name),
            )
            self._reading[lane] = self._services.serve(reader.run())

    def freed(self, lane: Lane) -> None:
        """See `SharedQueue`."""
        self._lane(lane).freed()

    def settled(self, lane: Lane, key: AttemptKey) -> None:
        """See `SharedQueue`."""
        self._lane(lane).settled(key)

    def leave(self, lane: Lane) -> None:
        """See `SharedQueue`."""
        self._lane(lane).taker = None
        if (listener := self._hears.pop(lane, None)) is not None:
            self.forget(lane_address(lane), listener)
        self.readers.pop(lane, None)
        if (reading := self._reading.pop(lane, None)) is not None:
            reading.cancel()

    def _count_garbage(self, lane: str, error: Exception) -> None:
        self.garbage += 1
        if self.garbage & (self.garbage - 1) == 0:  # the first, and then ever more rarely
            logger.warning("lane.garbage", lane=lane, count=self.garbage, error=str(error))

    def _lane(self, lane: Lane) -> LaneIntake:
        if lane not in self._lanes:
            self._lanes[lane] = LaneIntake()
        return self._lanes[lane]
