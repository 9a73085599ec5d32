"""The cursors of one partition: a reader that goes on finds the one that stands there; at most so many are open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dagbok.events.log.kafka_client import OutOfRange, Place, open_consumer
from dagbok.events.log.kafka_cursor import Cursor
from dagbok.events.log.kafka_settings import KafkaSettings


class Pool:
    """Cursors of `place`, at most `most`; who wants another one waits until one is free."""

    def __init__(self, settings: KafkaSettings, place: Place, *, most: int, fetch_bytes: int, ahead: bool) -> None:
        self._settings, self._place = settings, place
        self._most, self._fetch_bytes, self._ahead = most, fetch_bytes, ahead
        self._room = asyncio.Semaphore(most)
        self._free: list[Cursor] = []
        """The one that was used longest ago comes first."""
        self._count = 0
        self._opening: set[asyncio.Task[Cursor]] = set()
        self._closing: set[asyncio.Task[None]] = set()

    def ready(self, offset: int) -> bool:
        """A free cursor has the record at `offset` at hand."""
        return any(cursor.position == offset and cursor.filled for cursor in self._free)

    @asynccontextmanager
    async def at(self, offset: int) -> AsyncIterator[Cursor]:
        """A cursor that stands at `offset`, for this block alone. A block that fails loses it: it may be broken."""
        async with self._room:
            cursor = await self._take(offset)
            try:
                yield cursor
            except (OutOfRange, asyncio.CancelledError):
                self._free.append(cursor)
                raise
            except BaseException:
                self._drop(cursor)
                raise
            else:
                self._free.append(cursor)

    async def close(self) -> None:
        """Nobody takes a cursor any more."""
        while self._opening:
            await asyncio.wait(self._opening)
        for cursor in self._free:
            self._drop(cursor)
        self._free.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _take(self, offset: int) -> Cursor:
        """There is room for one more holder, so there is a free cursor or one may be opened."""
        standing = [cursor for cursor in self._free if cursor.position == offset]
        if standing:
            cursor = max(standing, key=lambda found: found.filled)
            self._free.remove(cursor)
        elif self._count < self._most:
            return await self._open(offset)
        else:
            while not self._free:  # one is being opened that nobody waits for
                await asyncio.wait(self._opening)
                if self._count < self._most:  # its opening has failed, or another one was lost
                    return await self._take(offset)
            cursor = self._free.pop(0)
            cursor.seek(offset)
        return cursor

    async def _open(self, offset: int) -> Cursor:
        """Not to be cancelled in the middle: whoever gives up leaves the cursor to the next one."""
        self._count += 1
        opening = asyncio.ensure_future(self._opened(offset))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._opening.add(opening)
            opening.add_done_callback(self._keep)
            raise
        except BaseException:
            self._count -= 1
            raise

    async def _opened(self, offset: int) -> Cursor:
        consumer = await open_consumer(self._settings, [self._place], self._fetch_bytes)
        return Cursor(consumer, self._place, offset, ahead=self._ahead)

    def _keep(self, opening: asyncio.Task[Cursor]) -> None:
        self._opening.discard(opening)
        if opening.cancelled() or opening.exception():
            self._count -= 1
        else:
            self._free.append(opening.result())

    def _drop(self, cursor: Cursor) -> None:
        self._count -= 1
        task = asyncio.ensure_future(cursor.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
