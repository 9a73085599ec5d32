"""The embedded host: the processes on one data folder, no server (`docs/design/architecture.md`, section 3.8).

Every process is a member: it appends commands, follows runs and hosts workers. One of them is the owner too: it
decides. When the owner ends, however it ends, another member takes over.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Final, Literal, TypeVar

import structlog

from dagbok.agents.hosting.first import closed, first_of
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.lazy_tables import LazyTables
from dagbok.agents.hosting.locks import FileLock
from dagbok.agents.hosting.membership import Membership
from dagbok.agents.hosting.ownership import Ownership, ProjectorPlace
from dagbok.agents.hosting.port import Commits
from dagbok.agents.hosting.presence import OwnerSeen, look_at_owner
from dagbok.agents.hosting.services import Services
from dagbok.agents.hosting.serving import served_pools
from dagbok.agents.hosting.snapshots import source_of
from dagbok.agents.hosting.tail import Tail
from dagbok.agents.hosting.watching import Watcher, Watchers
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner, error_is_doubt
from dagbok.agents.scheduler.recover import Recovery
from dagbok.agents.tracing.switch import check as check_tracing
from dagbok.agents.workers.definitions import Registry
from dagbok.events.envelope import Answer, Command
from dagbok.events.errors import DagbokError, FolderBusy
from dagbok.projections.snapshots.keeper import DUE_BYTES
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

T = TypeVar("T")
Own = Literal["auto", "must", "never"]
"""Whether a process owns its folder: as soon as it is free, at once or not at all, or never."""

STOP_GRACE_S: Final = 10.0
RETRY_S: Final = 0.25
"""How often a member looks whether the folder has become free: microseconds."""
GLANCES, GLANCE_S = 5, 0.02
"""Somebody who only looks who owns the folder holds up its lock for a moment."""


class EmbeddedHost:
    """This process on a data folder. `start` joins; `close` hands everything back."""

    def __init__(
        self,
        folder: DataFolder,
        registry: Registry,
        *,
        own: Own = "auto",
        projector: ProjectorPlace = "process",
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: TenantLimit | None = None,
    ) -> None:
        """`tenant_limit`: see `Dispatcher`; it holds while this process is the owner.

        Raises `StorageFailed`, `LogCorrupt`, `FormatTooNew` or `FolderBusy` when the folder cannot be used.
        """
        check_tracing()
        self._own, self._projector, self._snapshot_bytes = own, projector, snapshot_bytes
        self._tenant_limit = tenant_limit
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[BaseException] = self._loop.create_future()
        self.member = Membership(folder, registry)
        self.folder, self.process = self.member.folder, self.member.process
        self.log, self.store, self.reader = self.member.log, self.member.store, self.member.reader
        self.queue, self.workers = self.member.queue, self.member.workers
        self.tables = LazyTables(folder, self.log)
        self._lock = FileLock(folder.scheduler_lock, self.process)
        self._watchers = Watchers()
        self._tail = Tail(source_of(folder, self.log), self._watchers, time.monotonic)
        self._services, self._seeking = Services(self.failure), Services(self.failure)
        self._following = Services(self.failure)
        self._ownership: Ownership | None = None
        self.owned = asyncio.Event()
        """Set as soon as this process decides."""

    async def start(self, pools: Iterable[str]) -> None:
        """Join the folder and serve the pools; be its owner when it is free, after folding its log. Raises `FolderBusy`
        when this process must be the owner and another one is."""
        if self._own == "never":
            await self._begin(joins=True)
        elif await self._acquire():
            await self._begin(joins=False)
            await self._take_over()
        elif self._own == "must":
            raise FolderBusy(str(self.owner_seen()))
        else:
            await self._begin(joins=True)
            logger.info("folder.joined", process=self.process, owner=str(self.owner_seen()))
            self._seeking.serve(self._seek())
        self.member.work(pools, self._services)

    @property
    def owns(self) -> bool:
        """Whether this process decides."""
        return self._ownership is not None

    def owner_seen(self) -> OwnerSeen:
        """Who owns the folder now, and whether it shows that it lives."""
        return look_at_owner(self.folder)

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer, whichever process decides it."""
        return await self.first(self.member.ask(command))

    def find(self, stream: str) -> RunState | None:
        """A run as it stands, to be shown: of an owner, what was just decided may still be on its way to the disk.
        Blocks while a run that nobody has looked at is read."""
        if self._ownership is None:
            return self._tail.find(stream)
        return self._ownership.owner.state.run_of(stream) or self._ownership.recovery.peek(stream)

    @asynccontextmanager
    async def confirmed(self, stream: str) -> AsyncIterator[RunState | None]:
        """A run when everything in it is surely in the log, at least as new as what this process was answered."""
        self._check()
        ownership = self._ownership
        if ownership is None:
            found = await self._tail.found(stream)
            if self._ownership is None:
                self._check()
                yield found
                return
            ownership = self._ownership
        async with ownership.owner.between_batches:
            self._check()
            yield self.find(stream)

    def watch(self, stream: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` whenever something of a run is confirmed, once it was looked at; the result ends it."""
        return self._watchers.add(stream, watcher)

    @property
    def owner(self) -> Owner:
        """Of a process that owns its folder. Raises `FolderBusy` in others, as do the next two."""
        return self._owned.owner

    @property
    def outputs(self) -> SchedulerOutputs:
        """What leaves the owner."""
        return self._owned.outputs

    @property
    def recovery(self) -> Recovery:
        """What the owner folds with."""
        return self._owned.recovery

    async def close(self) -> None:
        """Hand back what runs, see it decided, and leave the folder. Idempotent."""
        # When the owner leaves at the same time, this process decides itself what it hands back: it still tries.
        await self.workers.stop(0 if self.failure.done() else STOP_GRACE_S)
        await self._seeking.end()
        ownership, self._ownership = self._ownership, None
        if ownership is not None:
            await ownership.end()
        self._lock.release()
        if ownership is not None:
            await ownership.flush()
        if not self.failure.done():
            self.failure.set_result(closed())
        await self._following.end()
        await self._services.end()
        await self.tables.close()
        await self.member.end()

    async def first(self, wanted: Coroutine[object, object, T]) -> T:
        """The result of `wanted`, unless the host fails or closes first: then its error."""
        return await first_of(wanted, self.failure)

    def history(self, stream: str, after: int) -> Commits | None:
        """None: the tables are brought up to the end of the log by whoever asks."""
        return None

    def check_pool(self, pool: str) -> None:
        """A pool of a folder may be called anything."""

    def served_pools(self) -> frozenset[str] | None:
        """The pools that some process of the folder serves; none when that is not known. Blocks, microseconds for each
        process."""
        return served_pools(self.folder)

    @property
    def _owned(self) -> Ownership:
        if self._ownership is None:
            raise FolderBusy(f"this process does not decide: {self.owner_seen()}")
        return self._ownership

    def _check(self) -> None:
        if self.failure.done():
            raise self.failure.result()

    async def _begin(self, *, joins: bool) -> None:
        await self.member.begin(self._services, joins=joins)
        self._following.serve(self._tail.run())

    async def _acquire(self) -> bool:
        """Take the lock if no other process is the owner."""
        for _ in range(GLANCES):
            if self._lock.try_acquire():
                return True
            await asyncio.sleep(GLANCE_S)
        return False

    async def _seek(self) -> None:
        """Until this process is the owner."""
        while True:
            try:
                if self._lock.try_acquire():
                    await self._take_over()
                    return
            except (DagbokError, OSError) as error:
                if not error_is_doubt(error):
                    raise
                logger.warning("folder.not_taken_over", error=str(error))
            await asyncio.sleep(RETRY_S)

    async def _take_over(self) -> None:
        """Fold and decide. When that fails the folder is free again, for this process or another."""
        begun_s = time.monotonic()
        failed: asyncio.Future[BaseException] = self._loop.create_future()
        ownership = Ownership(
            self.member,
            failed,
            projector=self._projector,
            snapshot_bytes=self._snapshot_bytes,
            tenant_limit=self._tenant_limit,
        )
        try:
            await ownership.begin()
            async with ownership.owner.between_batches:
                self._ownership = ownership
                ownership.outputs.watch(self._watchers.confirmed)
                self._watchers.tell_all(self.find)
        except BaseException:
            self._ownership = None
            await ownership.end()
            self._lock.release()
            raise
        failed.add_done_callback(self._fail)
        ownership.go_on()
        self.owned.set()
        await self._following.end()
        self._tail.forget()
        logger.info("folder.owned", process=self.process, folded_s=round(time.monotonic() - begun_s, 3))

    def _fail(self, failed: asyncio.Future[BaseException]) -> None:
        if failed.cancelled() or self.failure.done():
            return
        self.failure.set_result(failed.result())
        if self._ownership is not None:
            self._services.serve(self._abandon(self._ownership))

    async def _abandon(self, ownership: Ownership) -> None:
        """This process cannot decide any more. Perhaps another one can: it need not wait until this one has ended."""
        await ownership.end()
        self._lock.release()
