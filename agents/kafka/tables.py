"""The tables for a process on Kafka that asks them now and then; projectors, other processes, keep them up to date."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput, StorageFailed
from dagbok.projections.at_least import reached
from dagbok.projections.queries import Queries
from dagbok.projections.store import Tables

BEHIND_S: Final = 30.0
"""So long a query waits for the tables to have what this process was answered."""


class AnsweredTables:
    """Opened when they are first asked. `url`: of the database; without one a question raises `InvalidInput`
    (`usage`)."""

    def __init__(self, url: str | None, *, behind_s: float = BEHIND_S) -> None:
        self._url, self._behind_s = url, behind_s
        self._opening = asyncio.Lock()
        self._tables: Tables | None = None
        self._answered: dict[int, int] = {}

    @property
    def named(self) -> bool:
        """Whether there is a database."""
        return self._url is not None

    def answered(self, at: tuple[int, int]) -> None:
        """This process was told of the commit at `at` (partition, offset)."""
        partition, offset = at
        self._answered[partition] = max(offset, self._answered.get(partition, -1))

    async def fresh(self) -> Queries:
        """Queries that see every commit that this process was told of. Raises like `Tables.connect`, and
        `StorageFailed` when the tables stay behind."""
        queries = Queries(await self._opened())
        until_s = time.monotonic() + self._behind_s
        for at in tuple(self._answered.items()):
            if not await reached(queries, at, max(0.0, until_s - time.monotonic())):
                raise StorageFailed(
                    f"the tables are behind: commit {at[1]} of partition {at[0]} is not in them yet",
                    advice="see that `dagbok projector` runs, and ask again",
                )
            if self._answered.get(at[0]) == at[1]:
                del self._answered[at[0]]  # what queries see never goes back
        return queries

    async def close(self) -> None:
        """Idempotent."""
        async with self._opening:
            if self._tables is not None:
                await asyncio.to_thread(self._tables.close)
            self._tables = None

    async def _opened(self) -> Tables:
        if self._url is None:
            raise InvalidInput(
                "this question is answered from tables, and no database is named",
                code=Code.USAGE,
                advice="set DAGBOK_DATABASE, or name it when you connect; runs themselves need none",
            )
        async with self._opening:
            if self._tables is None:
                self._tables = await asyncio.to_thread(Tables.connect, self._url)
            return self._tables
