"""`Dagbok`: start runs, wait for them (`looking.py`), steer them (`steering.py`). The same methods whichever process
decides, and whatever log is behind it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, cast, get_args

from dagbok.agents.hosting.embedded import EmbeddedHost, Own
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.ownership import ProjectorPlace
from dagbok.agents.kafka.pool_names import check_pool
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit, limit_by_tenant
from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.events.arguments import one_of, text, typed, wrong
from dagbok.events.budgets import Limits
from dagbok.events.codes import Code
from dagbok.events.errors import InvalidInput
from dagbok.events.extras import not_installed
from dagbok.events.ids import check_id, run_id
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run import values
from dagbok.events.run.values import FailurePolicy, Pinned
from dagbok.events.specs import TaskSpec
from dagbok.library_logs import log_as_library
from dagbok.limiting import hold_to
from dagbok.projections.snapshots.keeper import DUE_BYTES
from dagbok.projections.task_graph.state import RunStatus
from dagbok.results import RunResult, Unserved, unserved_keys, waiting_pools
from dagbok.sessions import Sessions
from dagbok.starting import check_member, check_start, registry_of, start_command, task_list
from dagbok.steering import DEFAULT_PROJECT, DEFAULT_TENANT

if TYPE_CHECKING:
    from dagbok.agents.kafka.host import KafkaHost

SESSION_S: Final = 10.0


class Dagbok(Sessions):
    """A handle on the runs of a log. Make one with `embedded` (a data folder) or `connect` (Apache Kafka), and use it
    within its block, in its event loop: else its coroutines raise `InvalidInput` (`usage`).

    `tenant` and `project` of each call say whose run is meant, each 1 to 128 of the characters A-Z a-z 0-9 . _ -: of a
    foreign run nothing can be seen or touched, it is `not_found` like one that never was.

    Several processes may have one on the same log, and each does all of this: one of them decides a run, and when it
    ends, another does. What a call has answered is in the log, and stays after a crash of any process; a call that is
    cancelled or cut off may have been decided or not, and made again it is decided once where it has a `key`.
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

        `pool`: where tasks go that name none, and which this process serves. `user`: in whose name commands are sent;
        it stands in the log.

        Workers and verifiers run in this process: async ones in this event loop, others in threads. At the end of the
        block they are cancelled, have 10 seconds to give way, and their attempts are open again for others; nothing is
        counted against the tasks.

        Raises `InvalidInput` (`invalid_spec`) when two definitions have one key, and (`usage`) for a `tenant_limit`
        below 1 and an argument of another type; `FolderBusy` for `own="must"`; `StorageFailed`, `LogCorrupt`, `LogLost`
        or `FormatTooNew` when the folder or its log cannot be used; on a network file system the code is
        `network_filesystem`.
        """
        log_as_library()
        registry = registry_of(definitions)
        check_member(pool, user, serve, snapshot_bytes)
        one_of("own", own, get_args(Own))
        one_of("projector", projector, get_args(ProjectorPlace))
        host = EmbeddedHost(
            DataFolder(_path(folder)),
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

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        *definitions: Worker | Verifier | ModuleType,
        kafka: KafkaSettings | str,
        artifacts: str,
        database: str | None = None,
        pool: str = "default",
        user: str = "local",
        serve: bool = True,
        schedule: bool = False,
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: int | TenantLimit | None = None,
        session_s: float = SESSION_S,
    ) -> AsyncIterator[Dagbok]:
        """Connect to the topics of a cluster (`dagbok topics create` makes them), and serve its runs with these workers
        and verifiers until the block ends; what runs then is handed back.

        `kafka`: how to reach it, or just `host:port`. `artifacts`: where all processes of this log keep artifacts,
        ``s3://bucket/prefix`` or a folder that all of them reach. `database`: the URL of the PostgreSQL database that
        `dagbok projector` keeps up to date, for `list_runs` and to give old `events` fast. Without one, `list_runs`
        raises `InvalidInput` (`usage`), and `events` reads them from the log; all else is told from the log anyway.

        `schedule`: take part in deciding too. Some process has to: `dagbok scheduler`, or this one. `tenant_limit` is
        then, for each partition that this process decides, what it is in `embedded`, and `snapshot_bytes` too.
        `session_s`: after how long without a sign of life the others take over what this process decides and was
        handed. `definitions`, `pool`, `user` and `serve` are as in `embedded`.

        While no broker answers, calls wait, with a line in the log, and go on when one does; nothing is lost. The end
        of the block does not wait for it.

        Raises `InvalidInput` (`invalid_spec`) when two definitions have one key, and (`usage`) for settings, a place
        of artifacts or a name of a pool that cannot be used, and when the extra `kafka` is not installed; `LogError`
        (`log_unreachable`) when no broker answers, and `StorageFailed` when it does not let this client in or has not
        the topics.
        """
        log_as_library()
        registry, limit = registry_of(definitions), limit_by_tenant(tenant_limit)
        check_member(pool, user, serve, snapshot_bytes)
        text("artifacts", artifacts)
        settings = KafkaSettings(bootstrap_servers=kafka) if isinstance(kafka, str) else kafka
        typed("kafka", settings, KafkaSettings)
        check_pool(settings.prefix, pool, Code.USAGE)
        host = await _open_kafka(settings, artifacts, registry, database, session_s)
        dagbok = cls(host, registry, pool=pool, user=user)
        try:
            served = [pool] if serve else []
            host.start(served, schedule=schedule, snapshot_bytes=snapshot_bytes, tenant_limit=limit)
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
        """Start a run and wait until it is settled: `start`, then `wait`, with what they guarantee and raise."""
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
        """Start a run and return its id (32 hex digits), as soon as it is surely in the log. With several tasks, those
        that no other depends on are its roots; the run succeeds when all roots are verified or skipped.

        `key`: names the run within its project; none: a new run each time. Starting a run again under its key changes
        nothing and returns its id, and raises `Refused` (`config_mismatch`) when tasks or pinned values differ. Of
        `limits`, those that are named and higher than those of the run are raised, and set where it has none (see
        `set_limits`); higher ones of the run stay.

        The run is bound to all verifiers of this program, each with its version and the digest of its `config`.
        `failure_policy`: whether other branches go on when a task has failed ("continue_independent"), or the run ends
        ("fail_fast"). `max_depth`: so many levels of decomposition below a first task; `max_decompositions`: so many
        times one task may decompose.

        Raises `InvalidInput` (`invalid_spec`) for a tenant or project that is no id, or a value that is no JSON, and
        on Kafka for a pool that is not called by the characters A-Z a-z 0-9 . _ -: nobody could ever serve it;
        (`usage`) for an argument of another type;
        `Refused` for a graph that cannot be: `cycle`, `unknown_dependency`, `idempotency_conflict` (two tasks of one
        id), `invalid_spec`, `verifier_unavailable`, `budget_exhausted` (larger than its limits); and as `wait` does.
        """
        check_id("tenant", tenant)
        check_id("project", project)
        check_start(failure_policy, max_depth, max_decompositions)
        run = run_id(tenant, project, text("key", key) if key is not None else secrets.token_hex(16))
        command = start_command(
            run,
            task_list(task),
            Pinned(self._registry.pins(), failure_policy, max_depth, max_decompositions),
            pool=self._pool,
            limits=limits,
            user=self._user,
        )
        for pool in {spec.pool for spec in command.tasks}:
            self._host.check_pool(pool)
        await self._send(run, command, tenant, project)
        if limits is not None:
            await self._raise_limits(run, limits, tenant, project)
        return run

    def unserved(self, run: str, *, tenant: str = DEFAULT_TENANT, project: str = DEFAULT_PROJECT) -> Sequence[Unserved]:
        """What open attempts wait for and nobody has, each with `kind` and `name`: keys that no process knows
        (`worker`, `verifier`), and pools that no process serves (`pool`; on Kafka it is not known who serves which, and
        nothing is said). As text, `worker 'x'`. To be shown, as `progress`. Raises as `progress` does."""
        found = self._find(run, tenant, project)
        pools = waiting_pools(found)
        served = self._host.served_pools() if pools else None
        idle = [] if served is None else sorted(pools - served)
        return [*unserved_keys(found), *[Unserved("pool", pool) for pool in idle]]

    @property
    def host(self) -> EmbeddedHost:
        """The host, for programs that add actors of their own to it. Its parts are no public interface. Raises
        `InvalidInput` (`usage`) unless this is one of `embedded`."""
        if not isinstance(self._host, EmbeddedHost):
            raise InvalidInput("this Dagbok has no data folder", code=Code.USAGE, advice="use `kafka_host`")
        return self._host

    @property
    def kafka_host(self) -> KafkaHost:
        """The same of one of `connect`; raises as `host` does."""
        if isinstance(self._host, EmbeddedHost):
            raise InvalidInput("this Dagbok is not on Kafka", code=Code.USAGE, advice="use `host`")
        return cast("KafkaHost", self._host)

    async def _raise_limits(self, run: str, wanted: Limits, tenant: str, project: str) -> None:
        """A run that was there may have lower limits, or none: raise or set those that are named."""

        async def now() -> tuple[RunStatus | None, values.Limits]:
            async with self._confirmed(run, tenant, project) as found:
                return found.status, found.limits

        await hold_to(wanted, now, lambda command: self._send(run, command, tenant, project))


def _path(folder: object) -> Path:
    path = str(folder) if isinstance(folder, Path) else text("folder", folder)
    if "\0" in path:
        raise wrong("folder", path, "name a folder")
    return Path(path)


async def _open_kafka(
    settings: KafkaSettings, artifacts: str, registry: Registry, database: str | None, session_s: float
) -> KafkaHost:
    # Imported here: whoever has a data folder needs no client of a broker.
    try:
        from dagbok.agents.kafka.host import KafkaHost
        from dagbok.agents.kafka.process import KafkaProcess
    except ModuleNotFoundError as error:
        raise not_installed("a log on Kafka needs", error, "kafka") from error
    return KafkaHost(await KafkaProcess.open(settings, artifacts, registry, session_s=session_s), database)
