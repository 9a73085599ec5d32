"""Deciding for one partition, whatever log is behind it: the owner, what leaves it, its timers, and the answers that
may be lost.

Commands become events; what is confirmed leaves through the outputs: dispatches over the queue to workers, whose
results are commands again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from dagbok.agents.hosting.answering import answer_again
from dagbok.agents.hosting.services import Services
from dagbok.agents.queue import AttemptKey, Lane, Queue
from dagbok.agents.scheduler.clockwork import Clockwork
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner, error_is_doubt
from dagbok.agents.scheduler.recover import Keeper, Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.agents.tracing.owner import Tracing
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.port import Log
from dagbok.events.rule import Position
from dagbok.projections.partition import PartitionState

logger = structlog.get_logger(__name__)


class Deciding:
    """From the moment this process may decide for a partition until `end`. `failure` gets the error of the first part
    that fails. `lives`: whether a process may be alive that waits for an answer; `log_refuses` as in `Recovery`."""

    def __init__(
        self,
        log: Log,
        partition: int,
        queue: Queue,
        keeper: Keeper,
        failure: asyncio.Future[BaseException],
        *,
        process: str,
        log_refuses: bool,
        lives: Callable[[str], bool],
        tenant_limit: TenantLimit | None = None,
        clock: Clock = system_ms,
    ) -> None:
        self._log, self._partition, self._queue = log, partition, queue
        self._process, self._lives, self._clock = process, lives, clock
        self._tracing = Tracing()
        self.services = Services(failure)
        self._again: asyncio.Task[None] | None = None
        self._timers = Timers()
        # A log that refuses is a file of this machine.
        self._dispatcher = Dispatcher(queue, log, time.monotonic, tenant_limit=tenant_limit, far=not log_refuses)
        self.outputs = SchedulerOutputs(queue, self._dispatcher, self._timers)
        self.recovery = Recovery(log, partition, keeper, log_refuses=log_refuses)
        self.owner = Owner(log, partition, self.recovery, self.outputs, clock, process)

    async def begin(self) -> None:
        """Fold the log, then decide. Raises what makes that impossible."""
        self.outputs.watch(self._folded)
        self._tracing.begin(self._log, self._partition, self.outputs)
        self.services.serve(self.owner.run())
        recovered = asyncio.ensure_future(self.owner.recovered.wait())
        try:
            await asyncio.wait((recovered, self.services.failure), return_when=asyncio.FIRST_COMPLETED)
            if not recovered.done():
                raise self.services.failure.result()
        finally:
            recovered.cancel()

    def go_on(self) -> None:
        """The log is folded: timers and redispatch, which follow from the state, begin."""
        clockwork = Clockwork(
            self._log,
            self._partition,
            self.owner,
            self.outputs,
            self._dispatcher,
            self._timers,
            process=self._process,
            clock=self._clock,
            now_s=time.monotonic,
        )
        self.services.serve(clockwork.run())

    def lost(self, lane: Lane, attempts: Sequence[AttemptKey]) -> None:
        """A process is gone that had been handed these, and had perhaps not claimed them."""
        self._dispatcher.resend(lane, attempts)
        self.outputs.changed.set()

    async def end(self, settle_s: float | None = None) -> None:
        """Decide no more: when this returns nothing is written any more. A snapshot that is being written longer than
        `settle_s` is left to itself: then a thread may write it still."""
        await self.services.end()
        try:
            async with asyncio.timeout(settle_s):
                await self.recovery.settled()
        except TimeoutError:
            logger.warning("snapshot.left", partition=self._partition, within_s=settle_s)

    async def flush(self) -> None:
        """Send what was traced; may take seconds."""
        await self._tracing.close()

    def _folded(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Behind a fold the answers to the last commands may be lost: those of a batch that was in doubt, or of the
        owner before, who died."""
        if not batch and (self._again is None or self._again.done()):
            self._again = self.services.serve(self._answer_again(state.position))

    async def _answer_again(self, head: Position) -> None:
        try:
            await answer_again(self._log, self._partition, head, self._queue, self._lives)
        except (DagbokError, OSError) as error:
            if not error_is_doubt(error):
                raise
            logger.warning("answers.not_repeated", error=str(error))  # their senders repeat the commands
