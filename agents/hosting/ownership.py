"""What the owner of a data folder has beside: it decides, dispatches, fires timers, buries the dead, and projects.

Commands come to the owner and become events; what is confirmed leaves through the outputs: dispatches over the queue to
workers, whose results are commands again. The projector, a process of its own, makes tables of the events.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Literal

import structlog

from dagbok.agents.hosting.answering import answer_again
from dagbok.agents.hosting.children import ProjectorChild
from dagbok.agents.hosting.folder import PARTITION
from dagbok.agents.hosting.membership import Membership, nobody_cares
from dagbok.agents.hosting.presence import beat
from dagbok.agents.hosting.services import Services
from dagbok.agents.hosting.snapshots import keeper_of
from dagbok.agents.hosting.undertaker import Undertaker
from dagbok.agents.queue import AttemptKey, Lane
from dagbok.agents.scheduler.clockwork import Clockwork
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.dispatch.tenants import TenantLimit
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner, error_is_doubt
from dagbok.agents.scheduler.recover import Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.agents.tracing.owner import Tracing
from dagbok.events.errors import DagbokError
from dagbok.events.log.clock import system_ms
from dagbok.projections.partition import PartitionState

logger = structlog.get_logger(__name__)

ProjectorPlace = Literal["process", "none"]


class Ownership:
    """Of one process, from the moment it has the lock of the folder until it gives it back."""

    def __init__(
        self,
        member: Membership,
        failure: asyncio.Future[BaseException],
        *,
        projector: ProjectorPlace,
        snapshot_bytes: int,
        tenant_limit: TenantLimit | None = None,
    ) -> None:
        self._member, self._projector = member, projector
        self._tracing = Tracing()
        self._services = Services(failure)
        # That there are no tables now is no reason to decide nothing: the projector's end is nobody's failure.
        self._aside = Services(asyncio.get_running_loop().create_future())
        self._again: asyncio.Task[None] | None = None
        keeper = keeper_of(member.folder, member.log, snapshot_bytes)
        self._timers = Timers()
        self._dispatcher = Dispatcher(member.queue, member.log, time.monotonic, tenant_limit=tenant_limit)
        self.outputs = SchedulerOutputs(member.queue, self._dispatcher, self._timers)
        self.recovery = Recovery(member.log, PARTITION, keeper, log_refuses=True)
        self.owner = Owner(member.log, PARTITION, self.recovery, self.outputs, system_ms, member.process)

    async def begin(self) -> None:
        """Fold the log, then decide. Raises what makes that impossible."""
        self._services.serve(beat(self._member.folder))
        self.outputs.watch(self._folded)
        self._tracing.begin(self._member.log, PARTITION, self.outputs)
        self._services.serve(self.owner.run())
        recovered = asyncio.ensure_future(self.owner.recovered.wait())
        try:
            await asyncio.wait((recovered, self._services.failure), return_when=asyncio.FIRST_COMPLETED)
            if not recovered.done():
                raise self._services.failure.result()
        finally:
            recovered.cancel()

    def go_on(self) -> None:
        """The log is folded: everything that follows from the state begins."""
        member = self._member
        clockwork = Clockwork(
            member.log,
            PARTITION,
            self.owner,
            self.outputs,
            self._dispatcher,
            self._timers,
            process=member.process,
            clock=system_ms,
            now_s=time.monotonic,
        )
        undertaker = Undertaker(
            member.log, PARTITION, self.owner, member.locks, member.process, seems_gone=member.somebody_is_gone
        )
        self._services.serve(clockwork.run())
        self._services.serve(undertaker.run())
        member.lost = self._lost_with_a_process
        if self._projector == "process":
            self._aside.serve(ProjectorChild(member.folder).run())

    async def end(self) -> None:
        """Decide no more. When this returns nothing is written any more, so that the lock may go to another."""
        self._member.lost = nobody_cares
        await self._services.end()
        await self._aside.end()
        await self.recovery.settled()

    async def flush(self) -> None:
        """Send what was traced; may take seconds."""
        await self._tracing.close()

    def _lost_with_a_process(self, lane: Lane, attempts: Sequence[AttemptKey]) -> None:
        """A process is gone that had been handed these, and had perhaps not claimed them."""
        self._dispatcher.resend(lane, attempts)
        self.outputs.changed.set()

    def _folded(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """Behind a fold the answers to the last commands may be lost: those of a batch that was in doubt, or of the
        owner before, who died."""
        if not batch and (self._again is None or self._again.done()):
            self._again = self._services.serve(self._answer_again())

    async def _answer_again(self) -> None:
        try:
            await answer_again(self._member.log, PARTITION, self._member.queue, self._member.lives)
        except (DagbokError, OSError) as error:
            if not error_is_doubt(error):
                raise
            logger.warning("answers.not_repeated", error=str(error))  # their senders repeat the commands
