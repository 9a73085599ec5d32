"""Manifests of snapshots in a compacted topic: the newest of each fold and slot stays (`Slots` in
`projections/snapshots/manifest.py`).

The fold is part of the key: while two versions of the code run side by side, neither takes the other's snapshots away.
"""

from __future__ import annotations

import asyncio
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.log.kafka_client import Place, abandon, close_producer, open_producer, place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_reader import Reader
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_sizes import BATCH_BYTES, FETCH_BYTES
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.projections.snapshots.fold import fold_name

READ: Final = 100


class KafkaSlots:
    """The slots of one partition. All methods block; from any thread. `thread`: shared with others. Each raises
    `LogError` or `StorageFailed` when the broker does not answer."""

    def __init__(self, settings: KafkaSettings, partition: int, thread: LoopThread) -> None:
        self._settings, self._thread = settings, thread
        self._place: Place = place(f"{settings.prefix}snapshots", partition)
        self._name = f"snapshots[{partition}]"

    def read(self) -> list[bytes]:
        """The newest manifest of every fold and slot; what was cleared is not there."""
        try:
            return self._thread.result(self._read())
        except FAILURES as error:
            raise explain(error, self._name) from error

    def write(self, slot: int, data: bytes) -> None:
        """Replace one slot, durably and as a whole."""
        if len(data) > BATCH_BYTES:
            raise self._too_large(data)
        self._put(slot, data)

    def clear(self, slot: int) -> None:
        """Empty one slot."""
        self._put(slot, b"")

    def _put(self, slot: int, data: bytes) -> None:
        try:
            self._thread.result(self._append(f"{fold_name()}/{slot}".encode(), data))
        except FAILURES as error:
            raise explain(error, self._name) from error

    async def _append(self, key: bytes, data: bytes) -> None:
        """Given up after twice the time of a request. An idempotent batch never expires by itself, so a producer in
        doubt is torn down: what it had sent may be there or not, as a whole."""
        producer = await open_producer(self._settings)
        try:
            async with asyncio.timeout(2 * self._settings.request_timeout_s):
                batch = producer.create_batch()
                if batch.append(timestamp=None, key=key, value=data, headers=[]) is None:
                    raise self._too_large(data)
                batch.close()
                await (await producer.send_batch(batch, self._place.topic, partition=self._place.partition))
        except BaseException:
            await abandon(producer)
            raise
        await close_producer(producer)

    def _too_large(self, data: bytes) -> InvalidInput:
        told = f"a manifest of {len(data)} bytes is larger than a record of {self._name} may be"
        return InvalidInput(told, code=Code.TOO_LARGE)

    async def _read(self) -> list[bytes]:
        reader = await Reader.open(self._settings, [self._place], cursors=1, fetch_bytes=FETCH_BYTES, ahead=False)
        try:
            newest: dict[str, bytes] = {}
            offset = (await reader.bounds(self._place)).start
            while records := await reader.read(self._place, offset, READ):
                newest.update((record.key, record.value) for record in records)
                offset = records[-1].offset + 1
            return [data for data in newest.values() if data]
        finally:
            await reader.close()

