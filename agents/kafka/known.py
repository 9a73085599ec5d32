"""Where what was built from a partition stands: its snapshots, and the tables. Each names the commit behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.agents.kafka.slots import KafkaSlots
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.rule import Position
from dagbok.projections.queries import Queries
from dagbok.projections.snapshots.manifest import decode_manifest
from dagbok.projections.store import Tables


async def known_positions(settings: KafkaSettings, partition: int, database: str | None) -> Sequence[Position]:
    """Of the snapshots of every version of the fold, and of the tables when there is a `database`. Raises what reading
    them raises."""
    return [*await _of_snapshots(settings, partition), *await asyncio.to_thread(_of_tables, database, partition)]


async def _of_snapshots(settings: KafkaSettings, partition: int) -> list[Position]:
    thread = LoopThread("kafka-manifests")
    try:
        manifests = map(decode_manifest, await asyncio.to_thread(KafkaSlots(settings, partition, thread).read))
        return [each.position for each in manifests if each is not None and each.partition == partition]
    finally:
        await thread.close(asyncio.sleep(0))


def _of_tables(database: str | None, partition: int) -> list[Position]:
    if database is None:
        return []
    tables = Tables.connect(database)
    try:
        return [Queries(tables).position(partition)]
    finally:
        tables.close()
