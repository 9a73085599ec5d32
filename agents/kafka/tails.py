"""The runs of a log of many partitions, as a process sees them that need not decide them."""

from __future__ import annotations

import time

from dagbok.agents.hosting.history import LogHistory
from dagbok.agents.hosting.one_run import Source
from dagbok.agents.hosting.services import Services
from dagbok.agents.hosting.tail import Tail
from dagbok.agents.hosting.watching import Watchers
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.events.ids import partition_of
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.port import Log
from dagbok.projections.artifacts.port import ScopedArtifacts


class Tails:
    """A partition is followed from the first look at one of its runs. `chunks`: where the parts of snapshots lie;
    `services` runs what follows."""

    def __init__(self, settings: KafkaSettings, log: Log, chunks: ScopedArtifacts, services: Services) -> None:
        self._settings, self._log, self._chunks, self._services = settings, log, chunks, services
        self._thread = LoopThread("kafka-manifests")
        self._tails: dict[int, Tail] = {}
        self.watchers = Watchers()

    def of(self, stream: str) -> Tail:
        """What follows a run."""
        partition = partition_of(stream, self._log.partitions)
        if partition not in self._tails:
            tail = Tail(self._source(partition), self.watchers, time.monotonic, reads_cheaply=False)
            self._tails[partition] = tail
            self._services.serve(tail.run())
        return self._tails[partition]

    async def answered(self, stream: str) -> None:
        """Somebody here was told what has become of a command for a run: whoever looks at it from now on sees that
        much, without waiting."""
        tail = self._tails.get(partition_of(stream, self._log.partitions))
        if tail is not None and tail.follows(stream):
            await tail.found(stream)

    def history(self, stream: str, after: int) -> LogHistory:
        """The commits that have the events of a run above a number."""
        return LogHistory(self._source(partition_of(stream, self._log.partitions)), stream, after)

    async def close(self) -> None:
        """End the reading of manifests; `services` ends the rest."""
        await self._thread.close()

    def _source(self, partition: int) -> Source:
        slots = KafkaSlots(self._settings, partition, self._thread)
        return Source(self._log, partition, slots, self._chunks, log_refuses=False)
