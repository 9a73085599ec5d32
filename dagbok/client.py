"""`Dagbok`: start runs, wait for them, steer them. The same methods whichever process decides, and whatever log is
behind it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from dagbok.agents.hosting.embedded import EmbeddedHost, Own
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.ownership import ProjectorPlace
from dagbok.agents.hosting.watching import Committed
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit, limit_by_tenant
from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.events.budgets import Limits
from dagbok.events.codes import Code
from dagbok.events.errors import Refused
from dagbok.events.ids import check_id, run_id, run_stream
from dagbok.events.run.values import FailurePolicy, Pinned
from dagbok.events.specs import TaskSpec
from dagbok.library_logs import log_as_library
from dagbok.limiting import raising_command
from dagbok.projections.snapshots.keeper import DUE_BYTES
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState, RunStatus
from dagbok.results import RunResult, result_of, unserved_keys
from dagbok.starting import start_command
from dagbok.steering import DEFAULT_PROJECT, DEFAULT_TENANT, Steering

if TYPE_CHECKING:
    from dagbok.listing import RunEvent, RunPage
    from dagbok.projections.queries import Queries

SETTLED = ("succeeded", "failed", "cancelled", "blocked")


class Dagbok(Steering):
    """A handle on runs. `tenant` and `project` of each call say whose: of a foreign run nothing can be seen or
    touched.

    Several processes may have one on the same data folder, and each does all of this: one of them decides, and when it
    ends, another does.
    """

    @classmethod
    @asynccontextmanager
    async def embedded(
        cls,
        folder: str | Path,
        *definitions: Worker | Verifier | ModuleType,
        pool: str = "default",
        user: str = "local",
        serve: bool = True,
        own: Own = "auto",
        projector: ProjectorPlace = "process",
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: int | TenantLimit | None = None,
    ) -> AsyncIterator[Dagbok]:
        """Join a data folder: serve its runs with these workers and verifiers until the block ends; what runs then is
        handed back.

        `definitions`: the workers and verifiers to serve, or modules that have them; runs are bound to these verifiers.
        Runs that are open in the folder go on as soon as their workers are there. `serve`: whether this process works
        and verifies; one that only submits and steers leaves that to others.

        `own`: one process of a folder is its owner, which decides. "auto": be the owner when there is none, and as soon
        as there is none; "must": be it now, or raise `FolderBusy`; "never": leave that to others. `projector`: where an
        owner keeps the tables up to date; "none": whoever asks does it. `snapshot_bytes`: so many bytes of commits are
        worth a snapshot; recovery reads about as many behind it. `tenant_limit`: the most attempts of one tenant that
        are sent or running at once while this process is the owner, a number for all or a function of the tenant; none:
        as many as there are places.

        Raises what `EmbeddedHost` raises, and `InvalidInput` (`usage`) for a limit below 1.
        """
        log_as_library()
        registry = Registry()
        for definition in definitions:
            if isinstance(definition, ModuleType):
                registry.add_from(definition)
            else:
                registry.add(definition)
        host = EmbeddedHost(
            DataFolder(Path(folder)),
            registry,
            own=own,
            projector=projector,
            snapshot_bytes=snapshot_bytes,
            tenant_limit=limit_by_tenant(tenant_limit),
        )
        dagbok = cls(host, registry, pool=pool, user=user)
        try:
            await host.start([pool] if serve else [])
            yield dagbok
        finally:
            await host.close()

    async def run(
        self,
        task: TaskSpec | Sequence[TaskSpec],
        *,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
        key: str | None = None,
        limits: Limits | None = None,
        failure_policy: FailurePolicy = "continue_independent",
        max_depth: int = 8,
        max_decompositions: int = 1,
    ) -> RunResult:
        """Start a run and wait for its end: see `start` and `wait`."""
        run = await self.start(
            task,
            tenant=tenant,
            project=project,
            key=key,
            limits=limits,
            failure_policy=failure_policy,
            max_depth=max_depth,
            max_decompositions=max_decompositions,
        )
        return await self.wait(run, tenant=tenant, project=project)

    async def start(
        self,
        task: TaskSpec | Sequence[TaskSpec],
        *,
        tenant: str = DEFAULT_TENANT,
        project: str = DEFAULT_PROJECT,
        key: str | None = None,
        limits: Limits | None = None,
        failure_policy: FailurePolicy = "continue_independent",
        max_depth: int = 8,
        max_decompositions: int = 1,
    ) -> str:
        """Start a run and return its id. With several tasks, those that no other depends on are its roots.

        The same `key` names the same run of the project: starting it again changes nothing, and raises `Refused`
        (`config_mismatch`) when tasks or pinned values differ; `limits` that are named and higher than those of the run
        are raised, and set where it has none (see `set_limits`); higher ones of the run stay. The run is bound to all
        verifiers of this program.
        """
        check_id("tenant", tenant)
        check_id("project", project)
        run = run_id(tenant, project, key if key is not None else secrets.token_hex(16))
        command = start_command(
            run,
            [task] if isinstance(task, TaskSpec) else list(task),
            Pinned(self._registry.pins(), failure_policy, max_depth, max_decompositions),
            pool=self._pool,
            limits=limits,
            user=self._user,
        )
        await self._send(run, command, tenant, project)
        if limits is not None:
            await self._raise_limits(run, limits, tenant, project)
        return run

    async def wait(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The result once the run succeeded, failed or was cancelled, or is blocked until a person acts."""
        settled: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()

        def look(found: RunState, _: Sequence[Committed]) -> None:
            if found.status not in SETTLED or settled.done():
                return
            try:
                settled.set_result(result_of(found, self._host.reader))
            except Exception as error:  # of the caller's, not of the owner that tells
                settled.set_exception(error)

        unwatch = self._host.watch(run_stream(run), look)
        try:
            async with self._confirmed(run, tenant, project) as found:
                if found.status in SETTLED:
                    return result_of(found, self._host.reader)
            return await self._host.first(_result(settled))
        finally:
            unwatch()

    async def result(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The run as it stands now, confirmed. Raises `Refused` (`not_found`)."""
        async with self._confirmed(run, tenant, project) as found:
            return result_of(found, self._host.reader)

    async def events(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, after: int = 0
    ) -> AsyncIterator[RunEvent]:
        """The events of a run with a number above `after`, each once and in order: those that are there, then what
        follows, until the run is settled (see `wait`). Raises `Refused` (`not_found`).

        Whoever stops goes on later with the last number that he has seen. Leave the iterator by `contextlib.aclosing`
        when you do not read it to its end.
        """
        from dagbok.following import EventFeed

        feed: EventFeed | None = None

        def told(found: RunState, committed: Sequence[Committed]) -> None:
            if feed is not None:
                feed.told(found, committed)

        unwatch = self._host.watch(run_stream(run), told)
        try:
            async with self._confirmed(run, tenant, project) as found:
                feed = EventFeed(found, after, SETTLED, self._fresh)
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
        """The runs of a project of the tenant, or with None of all its projects, the newest first, at most `limit`.
        `cursor`: that of the page before. Raises `InvalidInput` (`usage`) when it is none."""
        from dagbok.listing import RunPage, cursor_of, read_cursor, summary_of

        behind = None if cursor is None else read_cursor(cursor)
        queries = await self._fresh()
        rows = await asyncio.to_thread(
            queries.list_runs, tenant, project, limit=limit + 1, status=status, behind=behind
        )
        more = len(rows) > limit
        return RunPage([summary_of(row) for row in rows[:limit]], cursor_of(rows[limit - 1]) if more else None)

    def progress(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> Mapping[str, int]:
        """Tasks per status, to be shown: what was just decided may still be on its way to the disk. Raises `Refused`
        (`not_found`)."""
        return {status: count for status, count in self._find(run, tenant, project).counts.items() if count}

    def status(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunStatus | None:
        """How the run stands, to be shown, as in `progress`; None when this tenant and project have none of this id."""
        try:
            return self._find(run, tenant, project).status
        except Refused:
            return None

    def unserved(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> Sequence[str]:
        """The keys that open attempts wait for and that no process knows: `worker 'x'`, `verifier 'y'`."""
        return unserved_keys(self._find(run, tenant, project))

    @property
    def host(self) -> EmbeddedHost:
        """The host, for programs that add actors of their own to it."""
        return self._host

    async def _raise_limits(self, run: str, wanted: Limits, tenant: str, project: str) -> None:
        """A run that was there may have lower limits, or none: raise or set those that are named."""
        while True:
            async with self._confirmed(run, tenant, project) as found:
                command = None if found.status in CLOSED_RUN else raising_command(found.limits, wanted)
            if command is None:
                return
            try:
                await self._send(run, command, tenant, project)
                return
            except Refused as error:
                # Somebody else has raised them since, or the run has ended.
                if error.code not in (Code.CONFIG_MISMATCH, Code.RUN_CLOSED):
                    raise

    def _find(self, run: str, tenant: str, project: str) -> RunState:
        """The run as it is in memory, or a copy of it: nothing that readers do may move it."""
        return _mine(self._host.find(run_stream(run)), run, tenant, project)

    @asynccontextmanager
    async def _confirmed(self, run: str, tenant: str, project: str) -> AsyncIterator[RunState]:
        """The run when everything in it is surely in the log."""
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


async def _result(future: asyncio.Future[RunResult]) -> RunResult:
    return await future
