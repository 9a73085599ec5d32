"""Appends to one partition: one batch at a time, in the order in which they were asked for.

A batch is atomic, and its records lie next to each other. Small appends that wait together share one, so that many
callers at once cost few requests. Each gets the offset at which its own records begin.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, LogError
from dagbok.events.log import kafka_sizes as sizes
from dagbok.events.log.checks import log_closed
from dagbok.events.log.kafka_client import Batch, Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_producers import Producers
from dagbok.events.log.port import Record

FINISH_S: Final = 3.0


@dataclass(eq=False, slots=True)
class _Append:
    records: Sequence[Record]
    size_bytes: int
    landed: asyncio.Future[int]


class Writer:
    """Writes to `place`. A batch that is not confirmed within `timeout_s` is in doubt. `moved` hears of every end that
    a confirmed batch gives."""

    def __init__(
        self, producers: Producers, place: Place, name: str, timeout_s: float, moved: Callable[[int], None]
    ) -> None:
        self._producers, self._place, self._name = producers, place, name
        self._timeout_s = timeout_s
        self._moved = moved
        self._queue: deque[_Append] = deque()
        self._sending: asyncio.Task[None] | None = None

    async def append(self, records: Sequence[Record]) -> int:
        """What `Log.append` promises, without `expect`. Raises `InvalidInput` (`too_large`) when nothing was written
        because the records do not fit into one batch; any other error is doubt. Who is cancelled leaves all of its
        records or none."""
        size_bytes = sum(map(size_of, records))
        if size_bytes > sizes.BATCH_BYTES:
            told = f"an append of {size_bytes} bytes to {self._name} is above the limit of {sizes.BATCH_BYTES}"
            raise InvalidInput(told, code=Code.TOO_LARGE)
        append = _Append(records, size_bytes, asyncio.get_running_loop().create_future())
        self._queue.append(append)
        if self._sending is None:
            self._sending = asyncio.ensure_future(self._send_all())
        return await append.landed

    async def finish(self) -> None:
        """Wait until what was asked for is written or in doubt. What takes longer than `FINISH_S` is in doubt: while no
        broker answers, nobody is to wait for it."""
        if self._sending is not None:
            await asyncio.wait([self._sending], timeout=FINISH_S)
            if self._sending is not None:
                self._sending.cancel()
                await asyncio.wait([self._sending])

    async def _send_all(self) -> None:
        while group := self._next_group():
            try:
                first = await self._send([record for append in group for record in append.records])
            except asyncio.CancelledError:
                self._fail([*group, *self._queue], log_closed())
                self._queue.clear()
                raise
            except Exception as error:  # whatever it is, the callers are to know
                self._fail(group, error)
            else:
                self._confirm(group, first)
        self._sending = None

    def _next_group(self) -> list[_Append]:
        group: list[_Append] = []
        size_bytes = 0
        while self._queue:
            append = self._queue[0]
            if group and size_bytes + append.size_bytes > sizes.SHARED_BYTES:
                break
            self._queue.popleft()
            if not append.landed.done():  # else its caller was cancelled
                group.append(append)
                size_bytes += append.size_bytes
        return group

    async def _send(self, records: Sequence[Record]) -> int:
        async with asyncio.timeout(self._timeout_s), self._producers.lend() as producer:
            batch = producer.create_batch()
            for record in records:
                _put(batch, record)
            batch.close()
            sent = await producer.send_batch(batch, self._place.topic, partition=self._place.partition)
            offset = (await sent).offset
            if offset < 0:
                told = f"{self._name}: the broker had a repeated batch already and does not say where"
                raise LogError(told, code=Code.LOG_CONFLICT)
            return offset

    def _confirm(self, group: Sequence[_Append], first: int) -> None:
        offset = first
        for append in group:
            if not append.landed.done():
                append.landed.set_result(offset)
            offset += len(append.records)
        self._moved(offset)

    def _fail(self, group: Sequence[_Append], error: Exception) -> None:
        for append in group:
            if not append.landed.done():
                told = explain(error, self._name) if isinstance(error, FAILURES) else error
                if told is not error:
                    told.__cause__ = error
                append.landed.set_exception(told)


def size_of(record: Record) -> int:
    """The most bytes that the record takes in a batch, uncompressed."""
    headers = sum(
        len(name.encode()) + len(value.encode()) + sizes.RECORD_HEADER_BYTES for name, value in record.headers.items()
    )
    return sizes.RECORD_BYTES + len(record.key.encode()) + len(record.value) + headers


def _put(batch: Batch, record: Record) -> None:
    headers = [(name, value.encode()) for name, value in record.headers.items()]
    put = batch.append(timestamp=None, key=record.key.encode(), value=record.value, headers=headers)
    if put is None:
        raise AssertionError("a batch is smaller than what the sizes allow")
