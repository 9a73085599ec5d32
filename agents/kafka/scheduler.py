"""The scheduler on Kafka: decides for the partitions that its group gives to this process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import structlog

from dagbok.agents.faultpoints import CHUNKS_WRITTEN, reach
from dagbok.agents.hosting.deciding import Deciding
from dagbok.agents.kafka.group import SESSION_S, Group
from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.kafka.names import scheduler_group
from dagbok.agents.kafka.observing import Observer
from dagbok.agents.kafka.retrying import Retrying
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.agents.queue.port import Queue
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.port import COMMANDS, Log
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.snapshots.keeper import DUE_BYTES, SnapshotKeeper

logger = structlog.get_logger(__name__)

SETTLE_S: Final = 10.0
"""So long the snapshot that is being written may take when its partition goes. One that is given up does no harm: the
slots have it as a whole or not at all."""


def anybody(process: str) -> bool:
    """Who waits for an answer may be anywhere: nothing here knows that it is gone."""
    return True


class Scheduler:
    """Any number of processes run one: each partition is decided by one of them, and by none or two for a moment when
    somebody comes or goes. `chunks`: where the parts of snapshots lie."""

    def __init__(
        self,
        settings: KafkaSettings,
        log: Log,
        queue: Queue,
        chunks: ScopedArtifacts,
        process: str,
        *,
        session_s: float = SESSION_S,
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: TenantLimit | None = None,
        clock: Clock = system_ms,
        metrics: Metrics | None = None,
    ) -> None:
        """`session_s` as in `Group`, `snapshot_bytes` as in `SnapshotKeeper`, `tenant_limit` as in
        `Dispatcher`: per partition; `clock`: the wall clock of this machine; `metrics`: where commits are counted."""
        self._settings, self._log, self._queue, self._chunks = settings, log, queue, chunks
        self._process, self._snapshot_bytes, self._tenant_limit = process, snapshot_bytes, tenant_limit
        self._clock = clock
        self._thread = LoopThread("kafka-slots")
        self._metrics = metrics
        self._deciding: dict[int, Deciding] = {}
        self._retrying = Retrying("partition", self._decide)
        self._moved = asyncio.Condition()
        self.group = Group(
            settings,
            settings.prefix + COMMANDS,
            scheduler_group(settings.prefix),
            self._retrying.hold,
            session_s=session_s,
        )

    async def run(self) -> None:
        """Until cancelled; then the partitions go to others. While the broker or the store of the snapshots is away, it
        is waited for. A partition that cannot be decided for (lost records, a clock that is far off) is held and does
        nothing, with an alarm, and is tried again: the others go on. Raises whatever nobody has foreseen: then the
        process is to end, and another may do better."""
        try:
            await self.group.run()
        finally:
            await self._thread.close()

    @property
    def halted(self) -> Mapping[int, DagbokError]:
        """The partitions that cannot be decided for, and why."""
        return self._retrying.halted

    @property
    def excused(self) -> frozenset[int]:
        """See `Retrying.excused`."""
        return self._retrying.excused

    def deciding(self, partition: int) -> Deciding | None:
        """What decides for a partition here; none when that is not this process, or it folds still."""
        return self._deciding.get(partition)

    async def owned(self, partition: int) -> Deciding:
        """Wait until this process decides for a partition."""
        async with self._moved:
            await self._moved.wait_for(lambda: partition in self._deciding)
        return self._deciding[partition]

    async def _decide(self, partition: int) -> None:
        failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        keeper = SnapshotKeeper(
            self._log,
            partition,
            self._chunks,
            KafkaSlots(self._settings, partition, self._thread),
            due_bytes=self._snapshot_bytes,
            before_manifest=lambda: reach(CHUNKS_WRITTEN),
        )
        deciding = Deciding(
            self._log,
            partition,
            self._queue,
            keeper,
            failure,
            process=self._process,
            log_refuses=False,
            lives=anybody,
            tenant_limit=self._tenant_limit,
            clock=self._clock,
        )
        observer = None if self._metrics is None else Observer(self._metrics)
        if observer is not None:
            deciding.outputs.watch(observer)
        try:
            await deciding.begin()
            deciding.go_on()
            self._retrying.going(partition)
            if self._metrics is not None:
                self._metrics.takeovers.inc()
            async with self._moved:
                self._deciding[partition] = deciding
                self._moved.notify_all()
            logger.info("partition.owned", partition=partition, process=self._process)
            raise await asyncio.shield(failure)
        finally:
            self._deciding.pop(partition, None)
            await deciding.end(SETTLE_S)
            if observer is not None:
                observer.close()
            await deciding.flush()
