"""What every process on a data folder has, whoever owns it: the log, its own lock, the queue, a way to ask, and
workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from dagbok.agents.hosting import answering
from dagbok.agents.hosting.folder import PARTITION, DataFolder
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import ProcessLocks
from dagbok.agents.hosting.services import Services
from dagbok.agents.queue import AttemptKey, FolderQueue, Lane, OnLost
from dagbok.agents.tracing.switch import callers_context
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.outbox import Outbox
from dagbok.agents.workers.process import WorkerProcess
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.envelope import Answer, Command, Reply
from dagbok.events.log.clock import system_ms
from dagbok.events.log.sqlite import SqliteLog
from dagbok.projections.artifacts.local import local_store

YOUNG_S = 2.0
"""A lock file that is younger may belong to a process that is just about to lock it."""


def nobody_cares(lane: Lane, attempts: Sequence[AttemptKey]) -> None:
    """What a process does with the loss of another that does not decide."""


class Membership:
    """A process on a folder. `process` is its name in claims and locks."""

    def __init__(self, folder: DataFolder, registry: Registry) -> None:
        """Raises `StorageFailed`, `LogCorrupt`, `FormatTooNew` or `FolderBusy` when the folder cannot be used."""
        folder.prepare()
        self.folder, self.process = folder, new_process_id()
        self.log = SqliteLog.open(folder.log)
        self.store = local_store(folder.artifacts)
        self.reader = ArtifactReader(self.log, self.store)
        self.locks = ProcessLocks(folder.processes, self.process)
        self.queue = FolderQueue(
            folder.queue, self.process, self.store, is_gone=self.locks.is_gone, on_lost=self._lost_with
        )
        self.lost: OnLost = nobody_cares
        """Of an owner: told what a process had been handed that is gone."""
        self.workers = WorkerProcess(
            registry, self.queue, self.log, self.reader, process=self.process, clock=system_ms, now_s=time.monotonic
        )
        self._address = f"client/{self.process}"
        self._outbox = Outbox(self.log, self._address, time.monotonic, context=callers_context())

    async def begin(self, services: Services, *, joins: bool) -> None:
        """Live: answers reach it. `joins`: others are to see it; an owner need not be seen, since it gives."""
        self.locks.acquire()
        self.queue.listen(self._address, self._replied)
        await self.queue.start()
        if joins:
            await self.queue.join()
        services.serve(self._outbox.run())

    def work(self, pools: Iterable[str], services: Services) -> None:
        """Serve pools."""
        served = tuple(pools)
        self.locks.serves(served)
        self.workers.start(served)
        for service in self.workers.services:
            services.watch(service)

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer, as long as it takes."""
        return await answering.ask(self.log, PARTITION, self._outbox, command)

    async def end(self) -> None:
        """Release everything. Idempotent."""
        await self.queue.close()
        await self.log.close()
        self.locks.release()

    def lives(self, process: str) -> bool:
        """Whether a process of the folder may be alive."""
        return not self.locks.is_gone(process)

    def somebody_is_gone(self) -> bool:
        """Whether the lock of a process in the folder is free now; it is removed then. Costs nothing that grows with
        the runs."""
        settled_s = time.time() - YOUNG_S
        found = [path.stem for path in self.folder.processes.glob("*.lock") if _since_s(path) < settled_s]
        return len([process for process in found if self.locks.is_gone(process)]) > 0

    def _lost_with(self, lane: Lane, attempts: Sequence[AttemptKey]) -> None:
        self.lost(lane, attempts)

    def _replied(self, replies: Iterable[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._outbox.answered(reply)


def _since_s(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return time.time()  # it went in this moment
