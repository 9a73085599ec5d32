"""Where what was built from a partition stands: its snapshots, and the tables. Each names the commit behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

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
    of_snapshots = await _of_snapshots(settings, partition)
    if database is None:
        return of_snapshots
    return [*of_snapshots, *await asyncio.to_thread(stands_of_tables, database, [partition])]


def stands_of_tables(database: str, partitions: Iterable[int]) -> Sequence[Position]:
    """Of the tables, by partition. Blocks. Raises what reading them raises."""
    tables = Tables.connect(database)
    try:
        queries = Queries(tables)
        return [queries.position(number) for number in partitions]
    finally:
        tables.close()


async def _of_snapshots(settings: KafkaSettings, partition: int) -> list[Position]:
    thread = LoopThread("kafka-manifests")
    try:
        manifests = map(decode_manifest, await asyncio.to_thread(KafkaSlots(settings, partition, thread).read))
        return [each.position for each in manifests if each is not None and each.partition == partition]
    finally:
        await thread.close()
