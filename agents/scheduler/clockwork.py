"""What happens by the passing of time alone: timers fire, and what was sent and never claimed is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import structlog

from dagbok.agents.patience import Patience
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner, error_is_doubt
from dagbok.agents.scheduler.timers import Timers
from dagbok.events.envelope import Command, Sender, command_record, run_command
from dagbok.events.errors import DagbokError
from dagbok.events.ids import derive
from dagbok.events.log.clock import Clock
from dagbok.events.log.port import COMMANDS, Log
from dagbok.events.run.commands import FireTimer
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

RETRY_PAUSE_S = 0.5


class Clockwork:
    """Runs beside the owner of a partition. `clock` is the host's, in milliseconds; `now_s` is monotonic."""

    def __init__(
        self,
        log: Log,
        partition: int,
        owner: Owner,
        outputs: SchedulerOutputs,
        dispatcher: Dispatcher,
        timers: Timers,
        *,
        process: str,
        clock: Clock,
        now_s: Callable[[], float],
    ) -> None:
        self._log, self._partition, self._owner, self._outputs = log, partition, owner, outputs
        self._dispatcher, self._timers, self._process = dispatcher, timers, process
        self._clock, self._now_s = clock, now_s
        self._seen_ms, self._seen_s = 0, now_s()
        self._patience = Patience()

    async def run(self) -> None:
        """Until cancelled. Raises what the owner raises, also `StorageFailed`."""
        while True:
            await self._owner.recovered.wait()
            self._outputs.changed.clear()
            await self._wait()
            try:
                await self._do_due()
            except (DagbokError, OSError) as error:
                if not error_is_doubt(error):
                    raise
                self._patience.bear(error)
                # What was due is due again soon.
                write = logger.info if self._patience.failing else logger.warning
                write("clockwork.failed", partition=self._partition, error=str(error))
                await asyncio.sleep(RETRY_PAUSE_S)

    async def _do_due(self) -> None:
        if (deadline_ms := self._timers.next_ms()) is not None and deadline_ms <= self._now_ms():
            await self._fire()
        if (due_s := self._dispatcher.next_due_s()) is not None and due_s <= self._now_s():
            if self._dispatcher.lacks:
                await self._dispatcher.read(self._partition)
            async with self._owner.between_batches:
                self._dispatcher.send(self._owner.state)

    async def _wait(self) -> None:
        timeout_s = self._next_s()
        if timeout_s is not None and timeout_s <= 0:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._outputs.changed.wait()
        except TimeoutError:
            return

    def _next_s(self) -> float | None:
        """Seconds until something is due; none when nothing ever is."""
        deadline_ms, due_s = self._timers.next_ms(), self._dispatcher.next_due_s()
        waits = [] if deadline_ms is None else [(deadline_ms - self._now_ms()) / 1000]
        if due_s is not None:
            waits.append(due_s - self._now_s())
        return min(waits, default=None)

    async def _fire(self) -> None:
        """A renewal that was appended before the deadline must win: decide everything up to the present end first."""
        now_ms = self._now_ms()
        end = (await self._log.bounds(COMMANDS, self._partition)).end
        await self._owner.decided(end - 1)
        async with self._owner.between_batches:
            due = self._timers.due(self._owner.state, now_ms)
        if due:
            records = [command_record(self._command(run, timer, now_ms)) for run, timer in due]
            await self._log.append(COMMANDS, self._partition, records)
            self._patience.restored()

    def _now_ms(self) -> int:
        """Log time as far as it is known here: what it was when this process saw it last, and what has passed since. So
        a clock that is behind holds nothing back; one that is ahead is too early, and `decide` says so."""
        now_s = self._now_s()
        passed_ms = self._seen_ms + int((now_s - self._seen_s) * 1000)
        if self._owner.state.clock_ms > passed_ms:
            self._seen_ms = passed_ms = self._owner.state.clock_ms
            self._seen_s = now_s
        return max(self._clock(), passed_ms)

    def _command(self, run: RunState, timer: FireTimer, now_ms: int) -> Command:
        """Sent at its deadline, which is log time: a clock that is ahead makes it too early, to be tried again, and not
        one from the future, which would be refused for as long as the clock is wrong."""
        id = derive("FireTimer", run.run, timer.kind, timer.task, timer.epoch, timer.deadline_ms)
        sender = Sender(run.tenant, run.project, f"timer:{self._process}")
        return run_command(sender, run.stream, timer, id=id, now_ms=min(now_ms, timer.deadline_ms))
