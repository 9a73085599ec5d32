"""Looks at every partition of a log on Kafka, one after the other, without taking part in anything."""

from __future__ import annotations

from collections.abc import Sequence

from dagbok.agents.doctor.keeper import ReadSlots
from dagbok.agents.doctor.look import Look, look
from dagbok.agents.kafka.chunks import chunks_in
from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.agents.scheduler.recover import Keeper, NoSnapshots
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.port import Log
from dagbok.projections.snapshots.keeper import SnapshotKeeper


async def look_at_all(settings: KafkaSettings, log: Log, artifacts: str | None, now_ms: int) -> Sequence[Look]:
    """From the newest snapshots where the place of the `artifacts` is named, else from the beginning. `now_ms`: the
    brokers' time. One state is in memory at a time. Raises as `look` does."""
    thread = LoopThread("kafka-manifests")
    try:
        return [
            await look(log, number, _keeper(settings, log, number, artifacts, thread), now_ms=now_ms, log_refuses=False)
            for number in range(log.partitions)
        ]
    finally:
        await thread.close()


def _keeper(settings: KafkaSettings, log: Log, partition: int, artifacts: str | None, thread: LoopThread) -> Keeper:
    if artifacts is None:
        return NoSnapshots(partition)
    slots = ReadSlots(KafkaSlots(settings, partition, thread))
    return SnapshotKeeper(log, partition, chunks_in(artifacts), slots)
