"""The host of a `Dagbok` on Kafka: a process that asks and looks, and perhaps works and decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

from dagbok.agents.hosting.first import closed, first_of
from dagbok.agents.hosting.port import Commits
from dagbok.agents.hosting.services import Services
from dagbok.agents.hosting.watching import Watcher
from dagbok.agents.kafka.pool_names import check_pool
from dagbok.agents.kafka.process import KafkaProcess
from dagbok.agents.kafka.tables import AnsweredTables
from dagbok.agents.kafka.tails import Tails
from dagbok.agents.scheduler.answers import answer_to
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.workers.reader import ArtifactReader
from dagbok.events.envelope import Answer, Command
from dagbok.events.places import events_at
from dagbok.projections.snapshots.keeper import DUE_BYTES
from dagbok.projections.task_graph.state import RunState

T = TypeVar("T")


class KafkaHost:
    """On a process that is open, which `close` closes. `database`: the URL of the tables; none: what needs them raises
    `InvalidInput`. All that is told of runs comes from the log alone."""

    def __init__(self, process: KafkaProcess, database: str | None) -> None:
        self.process, self.log, self.failure = process, process.log, process.failure
        self.tables = AnsweredTables(database)
        self._following = Services(process.failure)
        self._closed = False
        self._tails = Tails(process.log.settings, process.log, process.chunks(), self._following)

    @property
    def reader(self) -> ArtifactReader:
        """Where the bytes of artifacts are."""
        return self.process.reader

    def start(
        self,
        pools: Iterable[str],
        *,
        schedule: bool = False,
        snapshot_bytes: int = DUE_BYTES,
        tenant_limit: TenantLimit | None = None,
    ) -> None:
        """Serve pools, and take part in deciding if `schedule`; the others as in `Scheduler`."""
        if schedule:
            self.process.schedule(snapshot_bytes=snapshot_bytes, tenant_limit=tenant_limit)
        if served := tuple(pools):
            self.process.work(served)

    async def ask(self, command: Command) -> Answer:
        """Send a client's command and wait for its answer, as long as it takes."""
        return await self.first(self._ask(command))

    def find(self, stream: str) -> RunState | None:
        """A run as it was read last, at least as new as what this process was answered; one that nobody has looked at
        is read first, which blocks."""
        return self._tails.of(stream).find(stream)

    @asynccontextmanager
    async def confirmed(self, stream: str) -> AsyncIterator[RunState | None]:
        """A run when everything in it is surely in the log, at least as new as what this process was answered."""
        yield await self.first(self._tails.of(stream).found(stream))

    def watch(self, stream: str, watcher: Watcher) -> Callable[[], None]:
        """Tell `watcher` whenever something of a run is confirmed, once it was looked at; the result ends it."""
        return self._tails.watchers.add(stream, watcher)

    async def first(self, wanted: Coroutine[object, object, T]) -> T:
        """The result of `wanted`, unless the host fails or closes first: then its error."""
        return await first_of(wanted, self.failure)

    def history(self, stream: str, after: int) -> Commits | None:
        """From the log, when there are no tables."""
        return None if self.tables.named else self._tails.history(stream, after)

    def check_pool(self, pool: str) -> None:
        """Raises `InvalidInput` (`invalid_spec`) for one whose topics Kafka does not allow."""
        check_pool(self.log.settings.prefix, pool)

    def served_pools(self) -> frozenset[str] | None:
        """None: it is not known here who else serves what."""
        return None

    async def close(self) -> None:
        """Hand back what runs, leave the groups, and let go. Idempotent."""
        if self._closed:
            return
        self._closed = True
        await self.process.hand_back()
        if not self.failure.done():
            self.failure.set_result(closed())
        await self._following.end()
        await self._tails.close()
        await self.tables.close()
        await self.process.close()

    async def _ask(self, command: Command) -> Answer:
        answer = await self.process.ask(command)
        self.tables.answered(answer.at)
        await self._tails.answered(command.stream)
        if answer.accepted or answer.reason:
            return answer
        # The answer to a repeat lacks what the log has: why it was refused.
        return await asyncio.to_thread(lambda: answer_to(answer.id, answer.at, events_at(self.log, *answer.at)))
