"""The tables of a data folder for whoever asks now and then, in any process: brought up to date before each answer.

Beside the owner's projector that is safe, since rows and position change together and only from the position they were
read at.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dagbok.agents.hosting.folder import DataFolder
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.projector import Projector
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables


class FreshQueries:
    """Tables that follow the log when they are asked."""

    def __init__(self, projector: Projector, queries: Queries) -> None:
        self._projector, self._queries = projector, queries
        self._one_at_a_time = asyncio.Lock()

    async def fresh(self) -> Queries:
        """Queries that see every commit that is in the log now. Raises like `Projector.catch_up`."""
        async with self._one_at_a_time:
            await self._projector.catch_up()
        return self._queries


@asynccontextmanager
async def open_fresh_queries(folder: DataFolder) -> AsyncIterator[FreshQueries]:
    """Open a folder that is there; raises `Refused` (`not_found`) when it has no log, else like `Tables.open`."""
    if not folder.log.is_file():
        raise Refused(Code.NOT_FOUND, f"{folder.root} is no data folder: it has no log", advice="name an existing one")
    log = SqliteLog.open(folder.log)
    try:
        tables = Tables.open(folder.tables)
        try:
            yield FreshQueries(Projector(log, tables), Queries(tables))
        finally:
            tables.close()
    finally:
        await log.close()
