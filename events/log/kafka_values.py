"""Reads of the Kafka log for callers that block: a thread of its own with an event loop and consumers."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Sequence
from typing import Final, TypeVar

from dagbok.events.errors import LogLost
from dagbok.events.log.checks import log_closed
from dagbok.events.log.kafka_client import Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_reader import Reader
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.kafka_sizes import FETCH_BYTES, VALUE_FETCH_BYTES
from dagbok.events.log.kafka_thread import LoopThread
from dagbok.events.log.port import StoredRecord

T = TypeVar("T")

CURSORS: Final = 2
"""For each partition, of those who read on; single values have one of their own."""


class Values:
    """See `LoopThread`. Every method may be called from any thread, also one with a running loop, and raises `LogError`
    or `StorageFailed` when the broker does not answer."""

    def __init__(self, settings: KafkaSettings, places: Sequence[Place]) -> None:
        self._settings, self._places = settings, places
        self._thread = LoopThread("kafka-values")
        self._single: Reader | None = None
        self._many: Reader | None = None
        self._opening: asyncio.Lock | None = None

    def value(self, place: Place, name: str, offset: int) -> bytes:
        """The value of one record. Raises `LogLost` when it is not there."""
        return self._result(self._value(place, name, offset), name)

    def records(self, place: Place, name: str, start: int, limit: int) -> Sequence[StoredRecord]:
        """What `Log.read` promises."""
        return self._result(self._records(place, start, limit), name)

    async def close(self) -> None:
        """Nobody asks any more; who still waits is told that the log is closed."""
        await self._thread.close(self._close())

    def _result(self, work: Coroutine[object, object, T], name: str) -> T:
        try:
            return self._thread.result(work)
        except concurrent.futures.CancelledError as error:
            raise log_closed() from error
        except FAILURES as error:
            raise explain(error, name) from error

    async def _value(self, place: Place, name: str, offset: int) -> bytes:
        async with self._one_opens():
            if self._single is None:
                self._single = await self._open(cursors=1, fetch_bytes=VALUE_FETCH_BYTES)
            reader = self._single
        found = await reader.read(place, offset, 1) if offset >= 0 else ()
        if not found or found[0].offset != offset:
            raise LogLost(f"{name} has no record at offset {offset}")
        return found[0].value

    async def _records(self, place: Place, start: int, limit: int) -> Sequence[StoredRecord]:
        async with self._one_opens():
            if self._many is None:
                self._many = await self._open(cursors=CURSORS, fetch_bytes=FETCH_BYTES)
            reader = self._many
        return await reader.read(place, start, limit)

    def _one_opens(self) -> asyncio.Lock:
        if self._opening is None:
            self._opening = asyncio.Lock()
        return self._opening

    async def _open(self, *, cursors: int, fetch_bytes: int) -> Reader:
        return await Reader.open(self._settings, self._places, cursors=cursors, fetch_bytes=fetch_bytes, ahead=False)

    async def _close(self) -> None:
        for reader in (self._single, self._many):
            if reader is not None:
                await reader.close()
        await asyncio.sleep(0)  # what the clients have cancelled ends
