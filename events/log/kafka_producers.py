"""The idempotent producer of a log, exchanged after any doubt.

aiokafka counts the records that it sends. A batch that failed, or was given up, leaves a hole in the count, and the
broker refuses whatever follows (`OutOfOrderSequenceNumber`). So a producer that has met a failure takes nothing more:
it is closed as soon as nobody waits for a batch of it, and the next append opens another one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from dagbok.events.log.kafka_client import Producer, abandon, close_producer, open_producer
from dagbok.events.log.kafka_settings import KafkaSettings


@dataclass(eq=False)
class _Lent:
    producer: Producer
    users: int = 0


class Producers:
    """Hands out the present producer."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._present: _Lent | None = None
        self._opening = asyncio.Lock()
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def lend(self) -> AsyncIterator[Producer]:
        """The producer, for one batch. Whatever the block raises puts it aside. Raises what opening it raises."""
        lent = await self._borrow()
        try:
            yield lent.producer
        except BaseException:
            if self._present is lent:
                self._present = None
            raise
        finally:
            lent.users -= 1
            if lent is not self._present and not lent.users:
                self._end(lent.producer)

    async def close(self) -> None:
        """Nobody borrows any more."""
        if self._present is not None:
            await close_producer(self._present.producer)
            self._present = None
        if self._ending:
            await asyncio.wait(self._ending)

    async def _borrow(self) -> _Lent:
        async with self._opening:
            if self._present is None:
                self._present = _Lent(await open_producer(self._settings))
            self._present.users += 1
            return self._present

    def _end(self, producer: Producer) -> None:
        task = asyncio.ensure_future(abandon(producer))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
