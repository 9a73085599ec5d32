"""Simulated processes: the real actors of dagbok, wired as a host wires them, on one end of everything that is bad."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from dagbok.agents.hosting.undertaker import Undertaker
from dagbok.agents.scheduler.clockwork import Clockwork
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.process import WorkerProcess
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.canonical import sha256_hex
from dagbok.projections.artifacts.port import ArtifactStore
from dagbok.projections.artifacts.scope import SNAPSHOT_CHUNKS
from dagbok.projections.partition import PartitionState
from dagbok.projections.projector import Projector
from dagbok.projections.snapshots.keeper import SnapshotKeeper
from dagbok.projections.snapshots.manifest import Slots
from dagbok.projections.store import Tables
from dagbok.testing.simulation.exchange import Exchange, QueueEnd
from dagbok.testing.simulation.loop import Place, SimulatedLoop, Vanished
from dagbok.testing.simulation.network import EPOCH_MS, Connection, Network

PARTITION = 0
SCHEDULE_TO_START_S = 5.0
STOP_GRACE_S = 5.0
DRAG_S = 20.0
"""A projector that reads slowly takes more at a time."""


class Surroundings(Protocol):
    """What every simulated process finds outside of itself."""

    @property
    def loop(self) -> SimulatedLoop: ...
    @property
    def network(self) -> Network: ...
    @property
    def exchange(self) -> Exchange: ...
    @property
    def store(self) -> ArtifactStore: ...
    @property
    def slots(self) -> Slots: ...

    def is_gone(self, process: str) -> bool:
        """Whether a process has vanished, as the lock that it held tells."""
        ...


class Station:
    """One simulated process. `failure` is set when one of its services ends, which none may by itself."""

    def __init__(self, around: Surroundings, name: str) -> None:
        self.loop, self.name = around.loop, name
        self.place = Place(name)
        self.skew_ms = 0
        self.services: list[asyncio.Task[None]] = []
        self.failure: BaseException | None = None
        self.stopped = False

    def clock_ms(self) -> int:
        """The wall clock of this process, which may be wrong, and jump."""
        return EPOCH_MS + int(self.loop.time() * 1000) + self.skew_ms

    def now_s(self) -> float:
        """The monotonic clock of this process."""
        return 1_000.0 + self.loop.time()

    @property
    def lives(self) -> bool:
        """Neither vanished nor ended."""
        return self.place.alive and self.failure is None and not self.stopped

    def inside(self, action: Callable[[], None]) -> None:
        """Do something as this process."""
        self.place.context.copy().run(action)

    def serve(self, work: Coroutine[object, object, None]) -> None:
        """Start a service that runs as long as the process."""
        self.watch(self.loop.spawn(self.place, work))

    def watch(self, service: asyncio.Task[None]) -> None:
        """Have the failure of a service."""
        self.services.append(service)
        service.add_done_callback(self._ended, context=self.place.context.copy())

    def _ended(self, service: asyncio.Task[None]) -> None:
        if not self.stopped and not service.cancelled():
            self.failure = self.failure or service.exception() or RuntimeError("a service returned")


class Scheduler(Station):
    """An owner with everything around it. `confirmed`: the hashes of the commits it said are in the log."""

    def __init__(self, around: Surroundings, name: str, *, due_bytes: int, cold_after_ms: int) -> None:
        super().__init__(around, name)
        network, self._ledger = around.network, around.network.ledger
        log, queue = Connection(network, self.place), QueueEnd(around.exchange, self.place)
        self.keeper = SnapshotKeeper(
            log,
            PARTITION,
            around.store.within(SNAPSHOT_CHUNKS),
            around.slots,
            due_bytes=due_bytes,
            cold_after_ms=cold_after_ms,
            before_manifest=self._between_parts_and_manifest,
        )
        timers = Timers()
        dispatcher = Dispatcher(
            queue, log, self.now_s, schedule_to_start_s=SCHEDULE_TO_START_S, far=not network.refuses
        )
        outputs = SchedulerOutputs(queue, dispatcher, timers)
        outputs.watch(self._saw)
        recovery = Recovery(log, PARTITION, self.keeper, log_refuses=network.refuses)
        self.owner = Owner(log, PARTITION, recovery, outputs, self.clock_ms, name)
        self.confirmed: set[str] = set()
        self._clockwork = Clockwork(
            log,
            PARTITION,
            self.owner,
            outputs,
            dispatcher,
            timers,
            process=name,
            clock=self.clock_ms,
            now_s=self.now_s,
        )
        self._undertaker = Undertaker(log, PARTITION, self.owner, around, name, self.clock_ms)

    def start(self) -> None:
        """Take the partition over."""
        self.serve(self.owner.run())
        self.serve(self._clockwork.run())
        self.serve(self._after_recovery(self._undertaker.run))

    async def _after_recovery(self, run: Callable[[], Coroutine[object, object, None]]) -> None:
        await self.owner.recovered.wait()
        await run()

    def _between_parts_and_manifest(self) -> None:
        if self._ledger.strikes("half a snapshot", weight=0.5):
            self.place.on_death()
            raise Vanished

    def _saw(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        self.confirmed.update(decided.commit.hash for decided in batch)
        if state.position.head_offset >= 0:
            self.confirmed.add(state.position.head_hash)


class Workers(Station):
    """A worker process."""

    def __init__(self, around: Surroundings, name: str, registry: Registry, pools: Sequence[str]) -> None:
        super().__init__(around, name)
        log = Connection(around.network, self.place)
        self._pools = pools
        self.process = WorkerProcess(
            registry,
            QueueEnd(around.exchange, self.place),
            log,
            ArtifactReader(log, around.store),
            process=name,
            clock=self.clock_ms,
            now_s=self.now_s,
            nonce=sha256_hex(name.encode())[:16],
        )

    def start(self) -> None:
        """Serve the pools."""
        self.inside(self._start)

    def stop(self) -> None:
        """End in good order: hand everything back."""
        self.stopped = True
        self.loop.spawn(self.place, self._stop())

    async def _stop(self) -> None:
        await self.process.stop(STOP_GRACE_S)

    def _start(self) -> None:
        self.process.start(self._pools)
        for service in self.process.services:
            self.watch(service)


class Projecting(Station):
    """A projector that follows the log."""

    def __init__(self, around: Surroundings, name: str, tables: Tables, batch_records: int) -> None:
        super().__init__(around, name)
        log = Connection(around.network, self.place, drag_s=DRAG_S)
        self.projector = Projector(log, tables, PARTITION, batch_records=batch_records)

    def start(self) -> None:
        """Follow."""
        self.serve(self.projector.run())
