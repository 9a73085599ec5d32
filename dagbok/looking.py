"""What may be asked of runs: their results, their events, lists of them, and how they stand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, get_args

from dagbok.agents.hosting.watching import Committed
from dagbok.events.arguments import one_of, whole
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import check_id, run_stream
from dagbok.projections.task_graph.state import RunState, RunStatus
from dagbok.results import RunResult, result_of
from dagbok.steering import DEFAULT_PROJECT, DEFAULT_TENANT, Steering, check_whose

if TYPE_CHECKING:
    from dagbok.listing import RunEvent, RunPage
    from dagbok.projections.queries import Queries

SETTLED: Final = ("succeeded", "failed", "cancelled", "blocked")
"""A run that is one of these goes on only when a person acts, if at all."""
MAX_PAGE: Final = 2**31 - 1
"""More runs than any list has; one more still is a number of the tables."""


class Looking(Steering):
    """Questions about runs; they change nothing.

    `result`, `wait` and `events` tell only what is surely in the log, and all of it that an earlier answer to this
    process has told of; `list_runs` all that was in the log when it was called, on Kafka all that an earlier answer has
    told of. `progress`, `status` and `unserved` are
    for displays: they do not wait, and what they tell may still be on its way to the disk.
    """

    async def wait(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The result once the run is settled: it succeeded, failed or was cancelled, or is blocked until a person acts.
        At once when it is already.

        However it ended, it is returned and not raised: look at `RunResult.status`. There is no limit of time:
        `asyncio.timeout` ends the waiting and changes nothing in the run. A run that a person lets go on is waited for
        anew by another call.

        Raises `Refused` (`not_found`); `InvalidInput` for a tenant or project that is no id (`invalid_spec`) and a run
        that is no text (`usage`); what makes this process unfit to go on, as soon as it does (`StorageFailed`,
        `LogCorrupt`, `LogLost`); `InvalidInput` (`usage`) once the block is over. While no broker answers it waits.
        """
        settled: asyncio.Future[Callable[[], RunResult]] = asyncio.get_running_loop().create_future()

        def look(found: RunState, _: Sequence[Committed]) -> None:
            if found.status not in SETTLED or settled.done():
                return
            try:
                settled.set_result(result_of(found, self._host.reader))
            except Exception as error:  # of the caller's, not of the owner that tells
                settled.set_exception(error)

        check_whose(run, tenant, project)
        unwatch = self._host.watch(run_stream(run), look)
        try:
            async with self._confirmed(run, tenant, project) as found:
                if found.status in SETTLED and not settled.done():
                    settled.set_result(result_of(found, self._host.reader))
            return await asyncio.to_thread(await self._host.first(_result(settled)))
        finally:
            unwatch()

    async def result(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The run as it stands now, without waiting for its end. Raises as `wait` does."""
        async with self._confirmed(run, tenant, project) as found:
            read = result_of(found, self._host.reader)
        return await asyncio.to_thread(read)

    async def events(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, after: int = 0
    ) -> AsyncGenerator[RunEvent, None]:
        """The events of a run with a number above `after`, each once and in order: those that are there, then what
        follows, until the run is settled (see `wait`).

        The numbers (`RunEvent.seq`) begin at 1 and have no gap. Whoever stops goes on later, in another process too,
        with the last number that he has seen; `RunResult.last_event` is one as well. An event is given only when it is
        surely in the log. A slow reader holds up nobody. Leave the iterator by `contextlib.aclosing` when you do not
        read it to its end.

        Raises as `wait` does, and `InvalidInput` (`usage`) when `after` is no whole number from 0, when the first event
        is asked for or later.
        """
        from dagbok.following import EventFeed
        from dagbok.stored import FromLog, FromTables

        check_whose(run, tenant, project)
        whole("after", after)
        feed: EventFeed | None = None

        def told(found: RunState, committed: Sequence[Committed]) -> None:
            if feed is not None:
                feed.told(found, committed)

        unwatch = self._host.watch(run_stream(run), told)
        try:
            async with self._confirmed(run, tenant, project) as found:
                history = self._host.history(run_stream(run), after)
                stored = FromTables(found, self._fresh) if history is None else FromLog(found, history)
                feed = EventFeed(found, after, SETTLED, stored)
            async for event in feed.read(self._first):
                yield event
        finally:
            unwatch()

    async def list_runs(
        self,
        *,
        tenant: str = DEFAULT_TENANT,
        project: str | None = DEFAULT_PROJECT,
        status: RunStatus | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RunPage:
        """The runs of a project of the tenant, or with None of all its projects, the newest first, at most
        `limit` of them (1 or more).

        `status`: only those that stand so. `cursor`: that of the page before (`RunPage.cursor`, none on the last one);
        runs that start meanwhile do not shift the pages.

        Raises `InvalidInput` (`usage`) when it is no cursor, `limit` no whole number from 1 or `status` none, or on
        Kafka without a database, and (`invalid_spec`) for a tenant or project that is no id; `StorageFailed` when the
        tables cannot be read, or brought up to where this call has to see them.
        """
        from dagbok.listing import RunPage, cursor_of, read_cursor, summary_of

        check_id("tenant", tenant)
        if project is not None:
            check_id("project", project)
        if status is not None:
            one_of("status", status, get_args(RunStatus))
        whole("limit", limit, least=1, most=MAX_PAGE)
        behind = None if cursor is None else read_cursor(cursor)
        queries = await self._fresh()
        rows = await asyncio.to_thread(
            queries.list_runs, tenant, project, limit=limit + 1, status=status, behind=behind
        )
        more = len(rows) > limit
        return RunPage([summary_of(row) for row in rows[:limit]], cursor_of(rows[limit - 1]) if more else None)

    def progress(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> Mapping[str, int]:
        """How many tasks of the run have which status, without those that none has; to be shown: what was just decided
        may still be on its way to the disk. It takes microseconds for a run that was looked at within a minute, or is
        waited for, and blocks while any other is read, on Kafka for requests to the broker: `await` its `result` first
        where the event loop must go on. (Who decides for a folder reads one that is closed for an hour each time.)
        Raises `Refused` (`not_found`)."""
        return {status: count for status, count in self._find(run, tenant, project).counts.items() if count}

    def status(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunStatus | None:
        """How the run stands, to be shown, and read as in `progress`; None when this tenant and project have none
        of this id."""
        try:
            return self._find(run, tenant, project).status
        except Refused:
            return None

    def _find(self, run: str, tenant: str, project: str) -> RunState:
        """The run as it is in memory, or a copy of it: nothing that readers do may move it."""
        check_whose(run, tenant, project)
        return _mine(self._host.find(run_stream(run)), run, tenant, project)

    @asynccontextmanager
    async def _confirmed(self, run: str, tenant: str, project: str) -> AsyncIterator[RunState]:
        """The run when everything in it is surely in the log."""
        check_whose(run, tenant, project)
        async with self._host.confirmed(run_stream(run)) as found:
            yield _mine(found, run, tenant, project)

    async def _fresh(self) -> Queries:
        return await self._host.first(self._host.tables.fresh())

    async def _first(self, wanted: Coroutine[object, object, bool]) -> bool:
        return await self._host.first(wanted)


def _mine(found: RunState | None, run: str, tenant: str, project: str) -> RunState:
    if found is None or not found.exists or (found.tenant, found.project) != (tenant, project):
        raise Refused(Code.NOT_FOUND, f"there is no run {run} in {tenant}/{project}")
    return found


async def _result(future: asyncio.Future[Callable[[], RunResult]]) -> Callable[[], RunResult]:
    return await future
