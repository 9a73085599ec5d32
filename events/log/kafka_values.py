"""Single values of the Kafka log, for callers that block: a thread of its own with an event loop and consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.events.errors import LogLost
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_reader import Reader
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_sizes import VALUE_FETCH_BYTES
from dagbok.events.log.kafka_thread import LoopThread


class Values:
    """See `LoopThread`."""

    def __init__(self, settings: KafkaSettings, places: Sequence[Place]) -> None:
        self._settings, self._places = settings, places
        self._thread = LoopThread("kafka-values")
        self._reader: Reader | None = None
        self._opening: asyncio.Lock | None = None

    def value(self, place: Place, name: str, offset: int) -> bytes:
        """The value of one record, from any thread, also one with a running loop. Raises `LogLost` when it is not
        there, and `LogError` or `StorageFailed` when the broker does not answer."""
        try:
            return self._thread.result(self._value(place, name, offset))
        except FAILURES as error:
            raise explain(error, name) from error

    async def close(self) -> None:
        """Nobody asks any more."""
        await self._thread.close(self._close())

    async def _value(self, place: Place, name: str, offset: int) -> bytes:
        reader = await self._opened()
        found = await reader.read(place, offset, 1) if offset >= 0 else ()
        if not found or found[0].offset != offset:
            raise LogLost(f"{name} has no record at offset {offset}")
        return found[0].value

    async def _opened(self) -> Reader:
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._reader is None:
                self._reader = await Reader.open(
                    self._settings, self._places, cursors=1, fetch_bytes=VALUE_FETCH_BYTES, ahead=False
                )
            return self._reader

    async def _close(self) -> None:
        if self._reader is not None:
            await self._reader.close()
        await asyncio.sleep(0)  # what the clients have cancelled ends
