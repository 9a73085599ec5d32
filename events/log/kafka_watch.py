"""Who waits for a partition of the Kafka log to grow: all of them together hold one fetch at its end."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.log.kafka_client import FETCH_WAIT_S, OutOfRange, Place
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_reader import Reader

OUTAGE_PAUSE_S: Final = 0.5


@dataclass(eq=False, slots=True)
class _Waiter:
    offset: int
    done: asyncio.Future[bool]


class Watch:
    """Watches one partition while somebody waits. What the fetch brings stays at hand for who reads it then."""

    def __init__(self, reader: Reader, place: Place, name: str) -> None:
        self._reader, self._place, self._name = reader, place, name
        self._waiters: set[_Waiter] = set()
        self._watching: asyncio.Task[None] | None = None

    async def wait(self, offset: int, timeout_s: float | None) -> bool:
        """What `Log.wait` promises. Raises what `kafka_errors.FAILURES` has when the end cannot be asked for; an outage
        later is waited out."""
        if self._reader.known_end(self._place) > offset or await self._reader.end(self._place) > offset:
            return True
        waiter = _Waiter(offset, asyncio.get_running_loop().create_future())
        self._waiters.add(waiter)
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        try:
            async with asyncio.timeout(timeout_s):
                return await waiter.done
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)

    async def close(self) -> None:
        """Nobody waits any more."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])

    async def _watch(self) -> None:
        try:
            while self._waiters:
                try:
                    await self._look()
                except FAILURES as error:
                    told = explain(error, self._name)
                    if told.code != Code.LOG_UNREACHABLE:
                        self._fail(told)
                        return
                    await asyncio.sleep(OUTAGE_PAUSE_S)
        finally:
            self._watching = None

    async def _look(self) -> None:
        async with self._reader.pools[self._place].at(self._reader.known_end(self._place)) as cursor:
            try:
                await cursor.fill(1, FETCH_WAIT_S)
            except OutOfRange:
                end = await self._reader.end(self._place)  # removed up to the end, or the partition was cut off
                cursor.seek(end)
                return
            self._reader.note(self._place, cursor.end)
        self._wake()

    def _wake(self) -> None:
        end = self._reader.known_end(self._place)
        for waiter in self._waiters:
            if waiter.offset < end and not waiter.done.done():
                waiter.done.set_result(True)

    def _fail(self, error: Exception) -> None:
        for waiter in self._waiters:
            if not waiter.done.done():
                waiter.done.set_exception(error)
