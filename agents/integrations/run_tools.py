"""Tools with which an agent looks at runs and steers them: plain async functions for any framework.

async with run_tools("runs/", tenant="acme", project="docs", control=dagbok) as tools:
    agent = Agent(model, tools=tools.functions(read_only=True))
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Protocol, get_args

from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.fresh_queries import open_fresh_queries
from dagbok.agents.hosting.lazy_tables import LazyTables
from dagbok.agents.integrations.shown import JsonObject, page, shown_event, shown_run, shown_task
from dagbok.events.codes import Code
from dagbok.events.errors import DagbokError, InvalidInput, Refused
from dagbok.projections.task_graph.state import TaskStatus
from dagbok.projections.views.graph.rows import RunRow

MAX_ROWS: Final = 50
TROUBLED: Final[tuple[TaskStatus, ...]] = ("failed", "blocked")
MAX_TROUBLED: Final = 5


class RunControl(Protocol):
    """Who steers runs: a `Dagbok`, owner of the folder or not."""

    async def pause(self, run: str, *, tenant: str, project: str, reason: str) -> object:
        """Raises `Refused`."""

    async def resume(self, run: str, *, tenant: str, project: str, reason: str) -> object:
        """Raises `Refused`."""

    async def cancel(self, run: str, *, tenant: str, project: str, reason: str) -> object:
        """Raises `Refused`."""


Tool = Callable[..., Awaitable[JsonObject]]


@asynccontextmanager
async def run_tools(
    folder: str | Path, *, tenant: str, project: str, control: RunControl | None = None
) -> AsyncIterator[RunTools]:
    """Tools on the runs of one tenant and project in a data folder, for as long as the block lasts.

    `control`: who carries out what the controlling ones ask for; none: there are only reading ones. Works beside an
    owner in this process, in another, or in none. Raises `Refused` (`not_found`) when the folder has no log.
    """
    async with open_fresh_queries(DataFolder(Path(folder))) as queries:
        yield RunTools(queries, tenant=tenant, project=project, control=control)


class RunTools:
    """See `run_tools`. The agent names a run and nothing else: whose runs it sees is not its to say, and a foreign run
    is not found. Reading sees everything that is in the log.

    Every tool returns a JSON object of bounded size (about 4,000 tokens), and `{"error": {code, message, advice}}`
    instead of an exception for whatever dagbok refuses. May be called from any event loop; the one it was made in does
    the work, so it must not be blocked meanwhile.
    """

    def __init__(self, queries: LazyTables, *, tenant: str, project: str, control: RunControl | None = None) -> None:
        self._queries, self._tenant, self._project, self._control = queries, tenant, project, control
        self._loop = asyncio.get_running_loop()

    def functions(self, *, read_only: bool = False) -> list[Tool]:
        """The tools, to be registered with an agent. `read_only`, or without `control`: only those that change
        nothing."""
        reading: list[Tool] = [self.list_runs, self.get_run, self.list_tasks, self.events]
        controlling: list[Tool] = [self.pause, self.resume, self.cancel]
        return reading if read_only or self._control is None else reading + controlling

    async def list_runs(self, limit: int = 10) -> JsonObject:
        """List the newest runs, the newest first, each with its id, status and number of tasks per status.

        Args:
            limit: how many at most, up to 50.
        """
        return await self._answer(self._list_runs(limit))

    async def get_run(self, run: str) -> JsonObject:
        """Say how a run stands: its status, tasks per status, the number of its last event, and the first tasks that
        failed or are blocked, with their problem.

        Args:
            run: the id of the run.
        """
        return await self._answer(self._get_run(run))

    async def list_tasks(self, run: str, status: str = "", after: int = -1, limit: int = 20) -> JsonObject:
        """List tasks of a run in the order in which they came, with goal, status, attempts and problem. When there are
        more, next_after says where to go on.

        Args:
            run: the id of the run.
            status: only those with this status, such as running, blocked, failed or verified; empty for all.
            after: only those with a larger number.
            limit: how many at most, up to 50.
        """
        return await self._answer(self._list_tasks(run, status, after, limit))

    async def events(self, run: str, after: int = 0, limit: int = 20) -> JsonObject:
        """List what happened in a run, in order. When there is more, next_after says where to go on.

        Args:
            run: the id of the run.
            after: only events with a larger number (seq).
            limit: how many at most, up to 50.
        """
        return await self._answer(self._events(run, after, limit))

    async def pause(self, run: str, reason: str) -> JsonObject:
        """Pause a run: no task starts until it is resumed, and what runs may finish.

        Args:
            run: the id of the run.
            reason: why, for whoever reads the log.
        """
        return await self._answer(self._steer(run, "pause", reason))

    async def resume(self, run: str, reason: str) -> JsonObject:
        """Let a paused run go on.

        Args:
            run: the id of the run.
            reason: why, for whoever reads the log.
        """
        return await self._answer(self._steer(run, "resume", reason))

    async def cancel(self, run: str, reason: str) -> JsonObject:
        """End a run for good: what runs is stopped, what is open is cancelled. It cannot be undone.

        Args:
            run: the id of the run.
            reason: why, for whoever reads the log.
        """
        return await self._answer(self._steer(run, "cancel", reason))

    async def _list_runs(self, limit: int) -> JsonObject:
        queries = await self._queries.fresh()
        rows = await asyncio.to_thread(queries.list_runs, self._tenant, self._project, limit=_rows(limit))
        return {"runs": page("runs", map(shown_run, rows), "run", more=False)["runs"]}

    async def _get_run(self, run: str) -> JsonObject:
        row = await self._found(run)
        queries = await self._queries.fresh()
        troubled = [
            task
            for status in TROUBLED
            for task in await asyncio.to_thread(
                queries.list_tasks, self._tenant, self._project, run, status=status, limit=MAX_TROUBLED
            )
        ]
        return {**shown_run(row), "troubled": [shown_task(task) for task in troubled[:MAX_TROUBLED]]}

    async def _list_tasks(self, run: str, status: str, after: int, limit: int) -> JsonObject:
        wanted = _status(status)
        await self._found(run)
        queries, rows = await self._queries.fresh(), _rows(limit)
        found = await asyncio.to_thread(
            queries.list_tasks, self._tenant, self._project, run, status=wanted, after=after, limit=rows + 1
        )
        return page("tasks", map(shown_task, found[:rows]), "number", more=len(found) > rows)

    async def _events(self, run: str, after: int, limit: int) -> JsonObject:
        await self._found(run)
        queries, rows = await self._queries.fresh(), _rows(limit)
        found = await asyncio.to_thread(
            queries.journal, self._tenant, self._project, run, after_seq=after, limit=rows + 1
        )
        return page("events", map(shown_event, found[:rows]), "seq", more=len(found) > rows)

    async def _steer(self, run: str, verb: str, reason: str) -> JsonObject:
        if self._control is None:
            raise InvalidInput("these tools only read", code=Code.USAGE, advice="ask a person")
        await self._found(run)
        command = {"pause": self._control.pause, "resume": self._control.resume, "cancel": self._control.cancel}[verb]
        await command(run, tenant=self._tenant, project=self._project, reason=reason)
        return shown_run(await self._found(run))

    async def _found(self, run: str) -> RunRow:
        queries = await self._queries.fresh()
        row = await asyncio.to_thread(queries.get_run, self._tenant, self._project, run)
        if row is None:
            raise Refused(Code.NOT_FOUND, f"there is no run {run[:64]}", advice="take an id from list_runs")
        return row

    async def _answer(self, asked: Coroutine[object, object, JsonObject]) -> JsonObject:
        try:
            if asyncio.get_running_loop() is self._loop:
                return await asked
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, self._loop))
        except DagbokError as error:
            return {"error": {"code": error.code.value, "message": error.message, "advice": error.advice}}


def _rows(limit: int) -> int:
    return min(max(limit, 1), MAX_ROWS)


def _status(said: str) -> TaskStatus | None:
    known: tuple[TaskStatus, ...] = get_args(TaskStatus)
    for status in known:
        if said == status:
            return status
    if said:
        raise InvalidInput(f"there is no status {said[:64]!r}", code=Code.USAGE, advice=f"one of {', '.join(known)}")
    return None
