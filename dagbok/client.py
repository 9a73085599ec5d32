"""`Dagbok`: start runs, wait for them, steer them. The same methods whatever log is behind it."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import structlog

from dagbok import logs
from dagbok.agents.hosting.embedded import EmbeddedHost, ProjectorPlace
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.agents.workers.encode import encode_spec
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Sender, run_command
from dagbok.events.errors import Refused
from dagbok.events.ids import check_id, derive, run_id, run_stream
from dagbok.events.log.clock import system_ms
from dagbok.events.run.commands import (
    CancelRun,
    PauseRun,
    ResolveBlock,
    ResumeRun,
    RunCommand,
    SetLimits,
    StartRun,
)
from dagbok.events.run.limits import raised
from dagbok.events.run.values import FailurePolicy, Limits, Pinned, SecurityContext
from dagbok.events.specs import TaskSpec
from dagbok.projections.partition import PartitionState
from dagbok.projections.snapshots.keeper import DUE_BYTES
from dagbok.projections.task_graph.state import CLOSED_RUN, RunState, RunStatus
from dagbok.results import RunResult, result_of, unserved_keys

SETTLED = ("succeeded", "failed", "cancelled", "blocked")
DEFAULT_TENANT = "local"
DEFAULT_PROJECT = "default"


class Dagbok:
    """A handle on runs. `tenant` and `project` of each call say whose: of a foreign run nothing can be seen or
    touched."""

    def __init__(self, host: EmbeddedHost, registry: Registry, *, pool: str, user: str) -> None:
        """See `embedded`."""
        self._host, self._registry, self._pool, self._user = host, registry, pool, user

    @classmethod
    @asynccontextmanager
    async def embedded(
        cls,
        folder: str | Path,
        *definitions: Worker | Verifier | ModuleType,
        pool: str = "default",
        user: str = "local",
        projector: ProjectorPlace = "process",
        snapshot_bytes: int = DUE_BYTES,
    ) -> AsyncIterator[Dagbok]:
        """Own a data folder and run everything in this process, until the block ends; what runs then is handed back.

        `definitions`: the workers and verifiers to serve, or modules that have them. Runs that are open in the folder
        go on as soon as their workers are there. `snapshot_bytes`: so many bytes of commits are worth a snapshot;
        recovery reads about as many behind it. Raises `FolderBusy` when another process owns the folder, and what
        `EmbeddedHost` raises.
        """
        if not structlog.is_configured():
            logs.configure("warning")  # a library is quiet until its program says otherwise
        registry = Registry()
        for definition in definitions:
            if isinstance(definition, ModuleType):
                registry.add_from(definition)
            else:
                registry.add(definition)
        host = EmbeddedHost(DataFolder(Path(folder)), registry, projector=projector, snapshot_bytes=snapshot_bytes)
        try:
            await host.start([pool])
            yield cls(host, registry, pool=pool, user=user)
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
        (`config_mismatch`) when tasks or pinned values differ; `limits` that are higher than those of the run are
        raised. The run is bound to all verifiers of this program.
        """
        check_id("tenant", tenant)
        check_id("project", project)
        run = run_id(tenant, project, key if key is not None else secrets.token_hex(16))
        tasks = [task] if isinstance(task, TaskSpec) else list(task)
        specs = [encode_spec(item, derived_id=derive(run, index), pool=self._pool) for index, item in enumerate(tasks)]
        needed = {dependency for spec in specs for dependency in spec.depends_on}
        command = StartRun(
            tasks=tuple(specs),
            roots=tuple(spec.id for spec in specs if spec.id not in needed),
            pinned=Pinned(self._registry.pins(), failure_policy, max_depth, max_decompositions),
            limits=limits or Limits(),
            context=SecurityContext(user=self._user),
        )
        await self._send(run, command, tenant, project)
        if limits is not None:
            await self._raise_limits(run, limits, tenant, project)
        return run

    async def wait(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The result once the run succeeded, failed or was cancelled, or is blocked until a person acts."""
        stream, reader = run_stream(run), self._host.reader
        settled: asyncio.Future[RunResult] = asyncio.get_running_loop().create_future()

        def look(state: PartitionState, batch: Sequence[Decided]) -> None:
            found = state.run_of(stream)
            if found is None or found.status not in SETTLED or settled.done():
                return
            try:
                settled.set_result(result_of(found, reader))
            except Exception as error:  # of the caller's, not of the owner that tells
                settled.set_exception(error)

        async with self._confirmed(run, tenant, project) as found:
            if found.status in SETTLED:
                return result_of(found, reader)
            unwatch = self._host.outputs.watch(look)
        try:
            return await self._host.first(_result(settled))
        finally:
            unwatch()

    async def result(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> RunResult:
        """The run as it stands now, confirmed. Raises `Refused` (`not_found`)."""
        async with self._confirmed(run, tenant, project) as found:
            return result_of(found, self._host.reader)

    async def pause(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """No attempt starts until `resume`; what runs may finish."""
        return await self._send(run, PauseRun(reason), tenant, project)

    async def resume(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """Go on after `pause`."""
        return await self._send(run, ResumeRun(reason), tenant, project)

    async def cancel(
        self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, reason: str = ""
    ) -> Answer:
        """End the run: its attempts are closed, its open tasks cancelled; `wait` returns a result that says so."""
        return await self._send(run, CancelRun(reason), tenant, project)

    async def resolve(
        self, run: str, task: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT, note: str = ""
    ) -> Answer:
        """A blocked task may run again; `note` reaches its worker."""
        return await self._send(run, ResolveBlock(task, note), tenant, project)

    async def set_limits(
        self, run: str, limits: Limits, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT
    ) -> Answer:
        """Raise limits; none may become smaller."""
        return await self._send(run, SetLimits(limits), tenant, project)

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

    async def _send(self, run: str, command: RunCommand, tenant: str, project: str) -> Answer:
        sender = Sender(tenant, project, f"user:{self._user}")
        envelope = run_command(sender, run_stream(run), command, id=secrets.token_hex(16), now_ms=system_ms())
        answer = await self._host.ask(envelope)
        if not answer.accepted:
            raise Refused(Code(answer.code or Code.INTERNAL_ERROR), answer.reason, advice=answer.advice or None)
        return answer

    async def _raise_limits(self, run: str, wanted: Limits, tenant: str, project: str) -> None:
        """A run that was there may have lower limits: raise those, and leave the others."""
        async with self._confirmed(run, tenant, project) as found:
            now, closed = found.limits, found.status in CLOSED_RUN
        if not closed and (larger := raised(now, wanted)) != now:
            await self.set_limits(run, larger, tenant=tenant, project=project)

    def _find(self, run: str, tenant: str, project: str) -> RunState:
        """The run as it is in memory, or a copy of it: nothing that readers do may move it."""
        stream = run_stream(run)
        found = self._host.owner.state.run_of(stream) or self._host.recovery.peek(stream)
        if found is None or (found.tenant, found.project) != (tenant, project):
            raise Refused(Code.NOT_FOUND, f"there is no run {run} in {tenant}/{project}")
        return found

    @asynccontextmanager
    async def _confirmed(self, run: str, tenant: str, project: str) -> AsyncIterator[RunState]:
        """The run between two batches, when everything in it is surely in the log."""
        async with self._host.owner.between_batches:
            if self._host.failure.done():
                raise self._host.failure.result()
            yield self._find(run, tenant, project)


async def _result(future: asyncio.Future[RunResult]) -> RunResult:
    return await future
