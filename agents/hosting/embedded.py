"""The embedded host: one data folder, one process with all actors, no server (`docs/design/architecture.md`, section
3.8).

    commands → owner → events → outputs → queue → workers → commands
                          └→ projector (a process of its own) → tables
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Literal, TypeVar

import structlog

from dagbok.agents.faultpoints import CHUNKS_WRITTEN, reach
from dagbok.agents.hosting.children import ProjectorChild
from dagbok.agents.hosting.folder import DataFolder
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import FileLock, ProcessLocks
from dagbok.agents.hosting.undertaker import Undertaker
from dagbok.agents.queue import MemoryQueue
from dagbok.agents.scheduler.clockwork import Clockwork
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.agents.tracing.owner import Tracing
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.outbox import Outbox
from dagbok.agents.workers.process import WorkerProcess
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.codes import Code
from dagbok.events.envelope import Answer, Command, Reply
from dagbok.events.errors import FolderBusy, InvalidInput
from dagbok.events.log.clock import system_ms
from dagbok.events.log.port import Log
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.artifacts.local import local_store
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.snapshots.keeper import DUE_BYTES, SnapshotKeeper
from dagbok.projections.snapshots.slots import FileSlots

logger = structlog.get_logger(__name__)

T = TypeVar("T")
ProjectorPlace = Literal["process", "none"]
PARTITION = 0
STOP_GRACE_S = 10.0
USE_INSIDE = "use it inside its `async with` block, from the event loop that opened it"


class EmbeddedHost:
    """All actors of a data folder. `start` makes this process its owner; `close` hands everything back."""

    def __init__(
        self,
        folder: DataFolder,
        registry: Registry,
        *,
        projector: ProjectorPlace = "process",
        snapshot_bytes: int = DUE_BYTES,
    ) -> None:
        """Raises `StorageFailed`, `LogCorrupt`, `FormatTooNew` or `FolderBusy` when the folder cannot be used."""
        self._tracing = Tracing()
        folder.prepare()
        self.folder, self.process = folder, new_process_id()
        self.log = SqliteLog.open(folder.log)
        self.store = local_store(folder.artifacts)
        self.reader = ArtifactReader(self.log, self.store)
        self.queue = MemoryQueue()
        self._lock = FileLock(folder.scheduler_lock, self.process)
        self._locks = ProcessLocks(folder.processes, self.process)
        self._timers = Timers()
        self._dispatcher = Dispatcher(self.queue, self.log, time.monotonic)
        self.outputs = SchedulerOutputs(self.queue, self._dispatcher, self._timers)
        self.recovery = Recovery(self.log, PARTITION, keeper_of(folder, self.log, snapshot_bytes), log_refuses=True)
        self.owner = Owner(self.log, PARTITION, self.recovery, self.outputs, system_ms, self.process)
        self.workers = WorkerProcess(
            registry, self.queue, self.log, self.reader, process=self.process, clock=system_ms, now_s=time.monotonic
        )
        self._client_address = f"client/{self.process}"
        self._outbox = Outbox(self.log, self._client_address, time.monotonic)
        self._projector = projector
        self._services: list[asyncio.Task[None]] = []
        self._projecting: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()

    async def start(self, pools: Iterable[str]) -> None:
        """Become the owner, fold the log, and serve the pools. Raises `FolderBusy` when another process is the
        owner."""
        if not self._lock.try_acquire():
            raise FolderBusy(busy_message(self.folder, self._lock))
        self._locks.acquire()
        self.queue.listen(self._client_address, self._replied)
        clockwork = Clockwork(
            self.log,
            PARTITION,
            self.owner,
            self.outputs,
            self._dispatcher,
            self._timers,
            process=self.process,
            clock=system_ms,
            now_s=time.monotonic,
        )
        self._tracing.begin(self.log, PARTITION, self.outputs)
        self._serve(self.owner.run())
        await self.first(self.owner.recovered.wait())
        self._serve(clockwork.run())
        self._serve(self._outbox.run())
        self._serve(Undertaker(self.log, PARTITION, self.owner, self._locks, self.process).run())
        if self._projector == "process":
            self._projecting = asyncio.create_task(ProjectorChild(self.folder).run())
        self.workers.start(pools)
        for service in self.workers.services:
            service.add_done_callback(self._ended)

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer."""
        return await self.first(self._outbox.ask(command))

    async def close(self) -> None:
        """Hand back what runs, see it decided, and release the folder. Idempotent."""
        if not self.failure.done():
            await self.workers.stop(STOP_GRACE_S)
        else:
            await self.workers.stop(0)
        services = [*self._services, *([self._projecting] if self._projecting is not None else [])]
        for service in services:
            service.cancel()
        await asyncio.gather(*services, return_exceptions=True)
        self._services, self._projecting = [], None
        await self.recovery.settled()
        await self._tracing.close()
        if not self.failure.done():
            # Whoever still waits, or asks later, is told.
            self.failure.set_result(InvalidInput("this Dagbok is closed", code=Code.USAGE, advice=USE_INSIDE))
        await self.log.close()
        self._locks.release()
        self._lock.release()

    async def first(self, wanted: Coroutine[object, object, T]) -> T:
        """The result of `wanted`, unless the host fails or closes first: then its error."""
        if asyncio.get_running_loop() is not self._loop:
            wanted.close()
            raise InvalidInput("this Dagbok lives in another event loop", code=Code.USAGE, advice=USE_INSIDE)
        task = asyncio.ensure_future(wanted)
        try:
            await asyncio.wait((task, self.failure), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise self.failure.result()
            return task.result()
        finally:
            task.cancel()

    def _serve(self, service: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(service)
        task.add_done_callback(self._ended)
        self._services.append(task)

    def _ended(self, service: asyncio.Task[None]) -> None:
        if service.cancelled() or self.failure.done():
            return
        error = service.exception()
        if error is not None:
            logger.error("host.failed", error=str(error), exc_info=error)
            self.failure.set_result(error)

    def _replied(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._outbox.answered(reply)


def keeper_of(folder: DataFolder, log: Log, due_bytes: int = DUE_BYTES) -> SnapshotKeeper:
    """The snapshots of a data folder; `due_bytes` as in `SnapshotKeeper`."""
    return SnapshotKeeper(
        log,
        PARTITION,
        local_store(folder.snapshots).within(SNAPSHOT_CHUNKS),
        FileSlots(folder.snapshots, PARTITION),
        due_bytes=due_bytes,
        before_manifest=partial(reach, CHUNKS_WRITTEN),
    )


def busy_message(folder: DataFolder, lock: FileLock) -> str:
    """Who owns the folder, since when."""
    holder = lock.holder()
    if holder is None:
        return f"another process owns {folder.root}"
    since_s = max(0, time.time_ns() // 1_000_000 - holder.since_ms) // 1000
    return f"process {holder.pid} has owned {folder.root} for {since_s} s"
