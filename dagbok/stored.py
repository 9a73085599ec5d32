"""The events of a run that are stored already: from the tables, or from the log where there are none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import structlog

from dagbok.agents.hosting.port import Commits
from dagbok.listing import RunEvent, event_of_row, events_of_commit
from dagbok.projections.queries import Queries
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

PAGE: Final = 1_000
FIRST_LOOK_S: Final = 0.02
SLOWEST_LOOK_S: Final = 0.5
SAID_AFTER_S: Final = 10.0


class FromTables:
    """Called while a run has events above `after`. Tables that others write may be behind: then it waits, and says so
    after ten seconds."""

    def __init__(self, run: RunState, fresh: Callable[[], Awaitable[Queries]]) -> None:
        self._run, self._whose, self._fresh = run.run, (run.tenant, run.project), fresh

    async def __call__(self, after: int) -> Sequence[RunEvent]:
        """The next ones behind `after`."""
        queries, waited_s, pause_s = await self._fresh(), 0.0, FIRST_LOOK_S
        while True:
            rows = await asyncio.to_thread(queries.journal, *self._whose, self._run, after_seq=after, limit=PAGE)
            if rows:
                return [event_of_row(self._run, row) for row in rows]
            await asyncio.sleep(pause_s)
            if waited_s < SAID_AFTER_S <= waited_s + pause_s:
                logger.warning("events.tables_are_behind", run=self._run, after=after, waited_s=round(waited_s))
            waited_s, pause_s = waited_s + pause_s, min(2 * pause_s, SLOWEST_LOOK_S)


class FromLog:
    """The commits of a run, as events."""

    def __init__(self, run: RunState, commits: Commits) -> None:
        self._run, self._commits = run.run, commits

    async def __call__(self, after: int) -> Sequence[RunEvent]:
        """The next ones, some of which may not be above `after`; empty at the end."""
        return [
            event
            for found in await self._commits.more()
            for event in events_of_commit(self._run, found.seal, found.offset, found.events)
        ]
