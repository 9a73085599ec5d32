"""The tables of a folder for a process that asks them now and then: opened when they are first asked, and brought up to
the end of the log before each answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.log.port import Log

if TYPE_CHECKING:
    from dagbok.projections.projector import Projector
    from dagbok.projections.queries import Queries
    from dagbok.projections.store import Tables


class LazyTables:
    """Beside the projector of an owner that is safe: rows and position change together, and only from the position that
    they were read at."""

    def __init__(self, folder: DataFolder, log: Log) -> None:
        self._folder, self._log = folder, log
        self._one_at_a_time = asyncio.Lock()
        self._tables: Tables | None = None
        self._projector: Projector | None = None

    async def open(self) -> None:
        """Open them now rather than when they are first asked. Raises like `Tables.open`."""
        async with self._one_at_a_time:
            await self._opened()

    async def fresh(self) -> Queries:
        """Queries that see every commit that is in the log now. Raises like `Tables.open` and `Projector.catch_up`."""
        from dagbok.projections.queries import Queries

        async with self._one_at_a_time:
            projector, tables = await self._opened()
            await projector.catch_up()
            return Queries(tables)

    async def _opened(self) -> tuple[Projector, Tables]:
        # Imported here: a process that never asks starts faster without a database toolkit.
        from dagbok.projections.projector import Projector
        from dagbok.projections.store import Tables

        if self._tables is None or self._projector is None:
            self._tables = await asyncio.to_thread(Tables.open, self._folder.tables)
            self._projector = Projector(self._log, self._tables)
        return self._projector, self._tables

    async def close(self) -> None:
        """Idempotent."""
        async with self._one_at_a_time:
            if self._tables is not None:
                self._tables.close()
            self._tables = self._projector = None
