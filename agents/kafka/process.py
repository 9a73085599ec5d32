"""A process on Kafka: the log, the queue, the artifacts, a way to ask; and the roles that it plays."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence

from dagbok.agents.hosting.artifacts import open_artifacts
from dagbok.agents.hosting.identity import new_process_id
from dagbok.agents.hosting.services import Services
from dagbok.agents.kafka.chunks import chunks_in
from dagbok.agents.kafka.group import SESSION_S
from dagbok.agents.kafka.metrics import Metrics
from dagbok.agents.kafka.queue import KafkaQueue
from dagbok.agents.kafka.scheduler import Scheduler
from dagbok.agents.queue import KINDS
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.tracing.switch import callers_context
from dagbok.agents.workers.definitions import Registry
from dagbok.agents.workers.outbox import Outbox
from dagbok.agents.workers.process import WorkerProcess
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.envelope import Answer, Command, Reply
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.kafka import KafkaLog
from dagbok.events.log.kafka_errors import FAILURES, explain
from dagbok.events.log.kafka_settings import KafkaSettings
from dagbok.events.run.values import AttemptKind
from dagbok.projections.artifacts.port import ScopedArtifacts
from dagbok.projections.snapshots.keeper import DUE_BYTES

STOP_GRACE_S = 10.0


class KafkaProcess:
    """`open` connects; `close` hands everything back. `process` is its name in claims; `failure` has the error of the
    first part that failed."""

    def __init__(
        self,
        log: KafkaLog,
        artifacts: str,
        registry: Registry,
        *,
        session_s: float = SESSION_S,
        clock: Clock = system_ms,
    ) -> None:
        """Use `open`."""
        self.log, self.process = log, new_process_id()
        self._artifacts, self._session_s, self._clock = artifacts, session_s, clock
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self.store = open_artifacts(artifacts)
        self.reader = ArtifactReader(log, self.store)
        self.queue = KafkaQueue(log.settings, self.process, self.failure, self.store, session_s=session_s)
        self.workers = WorkerProcess(
            registry, self.queue, log, self.reader, process=self.process, clock=clock, now_s=time.monotonic
        )
        self.scheduler: Scheduler | None = None
        self._services = Services(self.failure)
        self._handed_back = False
        self._address = f"client/{self.process}"
        self._outbox = Outbox(log, self._address, time.monotonic, context=callers_context())

    @classmethod
    async def open(
        cls,
        settings: KafkaSettings,
        artifacts: str,
        registry: Registry,
        *,
        session_s: float = SESSION_S,
        clock: Clock = system_ms,
    ) -> KafkaProcess:
        """Connect. `artifacts`: see `open_artifacts`; `session_s`: after how long without a sign of life others take
        over; `clock`: the wall clock of this machine, in ms. Raises what `KafkaLog.open` and `open_artifacts` raise."""
        log = await KafkaLog.open(settings)
        try:
            opened = cls(log, artifacts, registry, session_s=session_s, clock=clock)
            opened.queue.listen(opened._address, opened._replied)
            try:
                await opened.queue.start()
            except BaseException:
                await opened.queue.close()
                raise
        except FAILURES as error:
            await log.close()
            raise explain(error, settings.bootstrap_servers) from error
        except BaseException:
            await log.close()
            raise
        opened._services.serve(opened._outbox.run())
        return opened

    def work(self, pools: Iterable[str], kinds: Sequence[AttemptKind] = KINDS) -> None:
        """Serve attempts of these kinds in pools."""
        self.workers.start(pools, kinds)
        for service in self.workers.services:
            self._services.watch(service)

    def schedule(
        self,
        *,
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: TenantLimit | None = None,
        metrics: Metrics | None = None,
    ) -> Scheduler:
        """Take part in deciding. The arguments are those of `Scheduler`."""
        if metrics is not None:
            metrics.waiting.has_topic = self.queue.has_topic
        scheduler = self.scheduler = Scheduler(
            self.log.settings,
            self.log,
            self.queue,
            self.chunks(),
            self.process,
            session_s=self._session_s,
            snapshot_bytes=snapshot_bytes,
            tenant_limit=tenant_limit,
            clock=self._clock,
            metrics=metrics,
        )
        self._services.serve(scheduler.run())
        return scheduler

    def chunks(self) -> ScopedArtifacts:
        """Where the parts of snapshots lie."""
        return chunks_in(self._artifacts)

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer, as long as it takes."""
        return await self._outbox.ask(command)

    async def hand_back(self) -> None:
        """Work no more: hand back what runs and see it decided. Idempotent."""
        if self._handed_back:
            return
        self._handed_back = True
        await self.workers.stop(0 if self.failure.done() else STOP_GRACE_S)

    async def close(self) -> None:
        """Hand back what runs, see it decided, leave the groups, and let go."""
        await self.hand_back()
        await self._services.end()
        await self.queue.close()
        await self.log.close()

    def _replied(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if isinstance(reply, Answer):
                self._outbox.answered(reply)
