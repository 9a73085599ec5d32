"""Which partitions of a topic this process looks after: membership of a consumer group that fetches nothing.

Whoever looks after a partition reads it by positions of its own; what the group knows is who is there. A rebalance of
this kind of group takes everything from everybody for a moment. A partition that comes back is held on through it: two
holders for that moment are no harm, since the log decides who counts (`docs/design/architecture.md`, section 3.2), and
to give it up would cost a fold of each partition whenever a process comes or goes.
"""

from __future__ import annotations

import asyncio
from typing import Final

import structlog
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor

from dagbok.agents.kafka.holders import Hold, Holders
from dagbok.events.errors import DagbokError
from dagbok.events.log.kafka_client import close_consumer
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_options import client_options
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.projections.patience import patiently

logger = structlog.get_logger(__name__)

POLL_MS: Final = 500
SESSION_S: Final = 10.0
"""A member that is silent for so long is taken for dead, and its partitions go to others."""

METADATA_MS: Final = 3_000
"""How old a member's knowledge of its topics may grow. A broker that has just started may tell that it knows none of
them; a member that leads its group then shares out nothing, and does so again only when it hears of the topics."""

LEAVE_S: Final = 5.0
"""So long leaving the group may take; then the others wait for the session to run out."""


class Group:
    """A member. `hold` runs once for every partition that this process has, for as long as it has it; a
    partition that comes back is held again when the holder before has ended.

    `topic`: its full name.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        topic: str,
        group: str,
        hold: Hold,
        *,
        session_s: float = SESSION_S,
    ) -> None:
        self._topic, self._group = topic, group
        self._consumer = AIOKafkaConsumer(
            **client_options(settings) | {"metadata_max_age_ms": METADATA_MS},
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            session_timeout_ms=int(session_s * 1000),
            heartbeat_interval_ms=int(session_s * 1000 / 5),
            partition_assignment_strategy=(RangePartitionAssignor,),
        )
        self._holders = Holders(hold, group)
        self._assigned: frozenset[int] = frozenset()
        self.joined = asyncio.Event()
        """Set when the group has told for the first time what this process has; that may be nothing."""

    @property
    def partitions(self) -> frozenset[int]:
        """What this process has now."""
        return self._assigned

    async def run(self) -> None:
        """Take part until cancelled; then the group is left, so that others need not wait for the session to run out,
        while what is held ends. While no broker answers, waits for one. Raises what `hold` raises, and what the broker
        refuses for good."""
        try:
            await patiently(self._connect, self._waits)
            self._consumer.subscribe([self._topic], listener=_Listener(self))
            polling = asyncio.ensure_future(self._poll())
            try:
                await asyncio.wait((polling, self._holders.failed), return_when=asyncio.FIRST_COMPLETED)
                for ended in (self._holders.failed, polling):
                    if ended.done():
                        ended.result()
            finally:
                polling.cancel()
                await asyncio.gather(polling, return_exceptions=True)
        finally:
            self._holders.end()
            await asyncio.gather(self._holders.ended(), close_consumer(self._consumer, LEAVE_S))

    async def _connect(self) -> None:
        try:
            await self._consumer.start()
        except FAILURES as error:
            raise explain(error, f"the group {self._group}") from error

    def _waits(self, error: DagbokError, delay_s: float) -> None:
        logger.warning("group.waits", group=self._group, error=error.message, advice=error.advice, again_s=delay_s)

    async def _poll(self) -> None:
        """A member that does not poll is expelled. Everything is paused, so this fetches nothing."""
        while True:
            await self._consumer.getmany(timeout_ms=POLL_MS)

    def assigned(self, partitions: frozenset[int]) -> None:
        """The group has decided what this process has. Returns at once: no heartbeat is sent meanwhile."""
        self._consumer.pause(*(TopicPartition(self._topic, number) for number in partitions))
        self._assigned = partitions
        self._holders.keep(partitions)
        logger.info("group.assigned", group=self._group, partitions=sorted(partitions))
        self.joined.set()


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka has no types
    def __init__(self, group: Group) -> None:
        self._group = group

    async def on_partitions_revoked(self, revoked: list[TopicPartition]) -> None:
        """Told before every rebalance, of everything: what is really gone, `assigned` tells."""

    async def on_partitions_assigned(self, assigned: list[TopicPartition]) -> None:
        self._group.assigned(frozenset(place.partition for place in assigned))
