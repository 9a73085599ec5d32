"""The projector: keeps the tables up to date with the log, and builds them anew.

Several may work on the same tables at once, in one process or in many.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final

from dagbok.events.errors import StorageFailed
from dagbok.events.log.port import EVENTS, Log
from dagbok.events.rule import Position
from dagbok.projections.feed import Feed, Progress, Replaced
from dagbok.projections.store import Tables

BATCH_RECORDS: Final = 2_000

LINGER_S: Final = 0.03
"""How long a projector that follows lets new commits gather. A batch of a few costs almost as much as one of a hundred:
without this, a projector that keeps up with thousands of commits a second would take a core for itself."""

REBUILT_S: Final = 0.5
"""How often a projector looks whether the rebuild that another one does is done."""


class Projector:
    """Projects one partition of the log into tables. `batch_records` are read and written at a time."""

    def __init__(self, log: Log, tables: Tables, partition: int = 0, *, batch_records: int = BATCH_RECORDS) -> None:
        self._log = log
        self._tables = tables
        self._partition = partition
        self._batch_records = batch_records
        self._feed = Feed(log, tables, partition, batch_records)

    @property
    def position(self) -> Position:
        """How far all views have come, as this projector knows."""
        return self._feed.position

    @property
    def progress(self) -> Progress:
        """What this projector has done."""
        return self._feed.progress

    async def catch_up(self) -> Position:
        """Take in everything up to the end of the log; the position behind it.

        Tables that an older dagbok has built in another layout are built anew first. Raises `FormatTooNew` at an event
        that this code does not know, with everything before it taken in: it never skips one. Raises `LogLost` when the
        log does not have what the tables know, `LogCorrupt` and `StorageFailed`. After any of them it may be called
        again.
        """
        await self._renew()
        while await self._feed.step():
            pass
        return self._feed.position

    async def run(self) -> None:
        """Follow the log until cancelled, shortly (`LINGER_S`) behind it; a batch that has begun is finished first.
        Raises like `catch_up`."""
        while True:
            await self._renew()
            before = self.position.next_offset
            if not await self._feed.step():
                await self._log.wait(EVENTS, self._partition, self.position.next_offset)
            if self.position.next_offset < before + self._batch_records:
                await asyncio.sleep(LINGER_S)

    async def _renew(self) -> None:
        while await asyncio.to_thread(self._tables.outdated):
            async with _alone(self._tables) as is_alone:
                if is_alone:
                    outdated = await asyncio.to_thread(self._tables.outdated)  # another one may have been done just now
                    await rebuild(self._log, self._tables, outdated, batch_records=self._batch_records)
            if not is_alone:
                await asyncio.sleep(REBUILT_S)


@asynccontextmanager
async def _alone(tables: Tables) -> AsyncIterator[bool]:
    """See `Tables.try_alone`: a server is asked, in a thread. Whoever is cancelled leaves nothing taken."""
    taking = asyncio.ensure_future(asyncio.to_thread(tables.try_alone))
    try:
        leave = await asyncio.shield(taking)
    except asyncio.CancelledError:
        with suppress(StorageFailed):
            if (leave := await taking) is not None:
                await asyncio.to_thread(leave)
        raise
    try:
        yield leave is not None
    finally:
        if leave is not None:
            await asyncio.to_thread(leave)


async def rebuild(
    log: Log, tables: Tables, views: Collection[str] | None = None, *, batch_records: int = BATCH_RECORDS
) -> None:
    """Build views anew from the start of the log, beside the live tables, then swap them: queries see the old rows
    until then and the new ones after it. `views`: their names, all by default. Raises like `Projector.catch_up`; the
    live tables then stay as they are.
    """
    names = list(tables.views) if views is None else list(views)
    building = {name: await asyncio.to_thread(tables.begin_version, name, log.partitions) for name in names}
    try:
        for name, version in building.items():
            await _build(log, tables, name, version, batch_records)
    except BaseException:
        for name, version in building.items():
            with suppress(StorageFailed):  # a server that is gone: the next swap removes what stays of this one
                await asyncio.to_thread(tables.discard, name, version)
        raise


async def _build(log: Log, tables: Tables, name: str, version: int, batch_records: int) -> None:
    feeds = [Feed(log, tables, number, batch_records, {name: version}) for number in range(log.partitions)]
    stood: list[Position] | None = None
    try:
        while True:
            for feed in feeds:
                while await feed.step():
                    pass
            stands = [feed.position for feed in feeds]
            # Tables that are ahead of a log that does not move were built from another one: they are what has to go.
            if await asyncio.to_thread(tables.swap, name, version, stands, force=stands == stood):
                return
            stood = stands
    except Replaced:
        return
