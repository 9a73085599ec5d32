"""Workers of one file in the pool of that file, beside others in the same host."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import ModuleType

from dagbok.agents.hosting.embedded import STOP_GRACE_S, EmbeddedHost
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.locks import ProcessLocks
from dagbok.agents.workers.definitions import Registry, Verifier, Worker
from dagbok.agents.workers.process import WorkerProcess
from dagbok.events.log.clock import system_ms


def shared_definitions(modules: Sequence[ModuleType]) -> list[Worker | Verifier]:
    """What the modules declare, without the keys under which they declare different things."""
    found: dict[tuple[type, str], list[Worker | Verifier]] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Worker | Verifier):
                same = found.setdefault((type(value), value.key), [])
                if not any(value is other for other in same):
                    same.append(value)
    return [same[0] for same in found.values() if len(same) == 1]


def registry_of(module: ModuleType, others: Sequence[ModuleType]) -> Registry:
    """What serves the pool of a file: its own definitions, then those of the other files that have a key of their own.

    Raises `InvalidInput` when the file itself declares two of one key.
    """
    registry = Registry()
    registry.add_from(module)
    for definition in shared_definitions(others):
        known = registry.workers if isinstance(definition, Worker) else registry.verifiers
        if definition.key not in known:
            registry.add(definition)
    return registry


class PoolWorkers:
    """A worker process of its own, for the log, inside a host: it has an id and a lock."""

    def __init__(self, host: EmbeddedHost, registry: Registry, pool: str) -> None:
        process = new_process_id()
        self._pool = pool
        self._locks = ProcessLocks(host.folder.processes, process)
        self._workers = WorkerProcess(
            registry, host.queue, host.log, host.reader, process=process, clock=system_ms, now_s=time.monotonic
        )

    def start(self) -> None:
        """Serve the pool."""
        self._locks.acquire()
        self._locks.serves([self._pool])
        self._workers.start([self._pool])

    async def failed(self) -> None:
        """Wait for ever, unless a part of it fails: then raise its error."""
        done, _ = await asyncio.wait(self._workers.services, return_when=asyncio.FIRST_COMPLETED)
        for service in done:
            service.result()

    async def stop(self) -> None:
        """Hand back what runs."""
        await self._workers.stop(STOP_GRACE_S)
        self._locks.release()
