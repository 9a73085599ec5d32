"""Reads of all partitions, and where they start and end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from dagbok.events.log.kafka_client import FETCH_WAIT_S, Consumer, OutOfRange, Place, close_consumer, open_consumer
from dagbok.events.log.kafka_cursor import Cursor
from dagbok.events.log.kafka_pool import Pool
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.log.port import Bounds, StoredRecord


class Reader:
    """Reads `places`. Calls raise what `kafka_errors.FAILURES` has; it can be used again after each."""

    def __init__(self, settings: KafkaSettings, asking: Consumer, pools: dict[Place, Pool]) -> None:
        """See `open`."""
        self._timeout_s = 2 * settings.request_timeout_s
        self._asking = asking
        self.pools = pools
        self._ends = dict.fromkeys(pools, 0)

    @classmethod
    async def open(
        cls, settings: KafkaSettings, places: Sequence[Place], *, cursors: int, fetch_bytes: int, ahead: bool
    ) -> Reader:
        """Connect. `cursors`: at most so many for each partition. `fetch_bytes`: what one request brings. `ahead`:
        fetch what follows before it is asked for."""
        # It stays paused: a fetch that waits for records would hold up the questions behind it.
        asking = await open_consumer(settings, places, fetch_bytes)
        pools = {place: Pool(settings, place, most=cursors, fetch_bytes=fetch_bytes, ahead=ahead) for place in places}
        return cls(settings, asking, pools)

    async def read(self, place: Place, start: int, limit: int) -> Sequence[StoredRecord]:
        """What `Log.read` promises."""
        start = max(start, 0)
        if not self.pools[place].ready(start) and start >= self.known_end(place) and start >= await self.end(place):
            return []
        async with asyncio.timeout(self._timeout_s), self.pools[place].at(start) as cursor:
            if not await self._fill(place, cursor, start, limit):
                return []
            return cursor.take(limit)

    async def bounds(self, place: Place) -> Bounds:
        """Where it starts and ends now."""
        starts, end = await asyncio.gather(self._asking.beginning_offsets([place]), self.end(place))
        return Bounds(min(starts[place], end), end)

    async def end(self, place: Place) -> int:
        """Where it ends now."""
        end = (await self._asking.end_offsets([place]))[place]
        self.note(place, end)
        return end

    def known_end(self, place: Place) -> int:
        """It has been seen to end here."""
        return self._ends[place]

    def note(self, place: Place, end: int) -> None:
        """It ends at `end`, or later."""
        self._ends[place] = max(self._ends[place], end)

    async def close(self) -> None:
        """Nobody reads any more."""
        await asyncio.gather(close_consumer(self._asking), *(pool.close() for pool in self.pools.values()))

    async def _fill(self, place: Place, cursor: Cursor, start: int, limit: int) -> bool:
        """False when nothing is at or beyond `start`: it has been removed meanwhile."""
        while not cursor.filled or cursor.lacks(limit, self.known_end(place)):
            try:
                await cursor.fill(limit, FETCH_WAIT_S)
                self.note(place, cursor.end)
            except OutOfRange:
                bounds = await self.bounds(place)
                if max(start, bounds.start) >= bounds.end:
                    return False
                cursor.seek(max(start, bounds.start))
        return True
