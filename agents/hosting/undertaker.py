"""Reports processes that are surely gone, so that nobody waits for their leases to run out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Protocol

import structlog

from dagbok.agents.scheduler.owner import Owner, error_is_doubt
from dagbok.events.envelope import Command, Sender, command_record, run_command
from dagbok.events.errors import DagbokError
from dagbok.events.ids import derive
from dagbok.events.log.clock import Clock, system_ms
from dagbok.events.log.port import COMMANDS, Log
from dagbok.events.run.commands import ReportGone
from dagbok.projections.task_graph.state import RunState

logger = structlog.get_logger(__name__)

LOOK_EVERY_S = 5.0
GLANCE_EVERY_S = 1.0


class Locks(Protocol):
    """A lock for every process that lives: see `ProcessLocks`."""

    def is_gone(self, process: str) -> bool:
        """Surely, not only likely."""
        ...


class Undertaker:
    """Looks at the locks of all processes that hold claims, at once and then every few seconds. `seems_gone` is asked
    every second whether it is worth to look now: it has to be cheap."""

    def __init__(
        self,
        log: Log,
        partition: int,
        owner: Owner,
        locks: Locks,
        process: str,
        clock: Clock = system_ms,
        *,
        seems_gone: Callable[[], bool] = lambda: False,
    ) -> None:
        self._seems_gone = seems_gone
        self._log, self._partition, self._owner = log, partition, owner
        self._locks, self._process, self._clock = locks, process, clock

    async def run(self) -> None:
        """Until cancelled."""
        # Claims of a process that died may still wait to be decided.
        await self._owner.decided(self._owner.pending_until - 1)
        while True:
            try:
                await self._look()
            except (DagbokError, OSError) as error:
                if not error_is_doubt(error):
                    raise
                logger.warning("undertaker.failed", partition=self._partition, error=str(error))
            await self._wait()

    async def _wait(self) -> None:
        left_s = LOOK_EVERY_S
        while left_s > 0 and not self._seems_gone():
            pause_s = min(left_s, GLANCE_EVERY_S)
            await asyncio.sleep(pause_s)
            left_s -= pause_s

    async def _look(self) -> None:
        async with self._owner.between_batches:
            claims = claims_by_process(self._owner.state.runs.values())
        gone = [process for process in claims if self._locks.is_gone(process)]
        records = [command_record(self._report(process, run)) for process in gone for run in claims[process].values()]
        if records:
            logger.info("processes.gone", processes=sorted(gone))
            await self._log.append(COMMANDS, self._partition, records)

    def _report(self, process: str, run: RunState) -> Command:
        sender = Sender(run.tenant, run.project, f"process:{self._process}")
        id = derive("ReportGone", run.run, process, run.stream_seq)
        return run_command(sender, run.stream, ReportGone(process), id=id, now_ms=self._clock())


def claims_by_process(runs: Iterable[RunState]) -> dict[str, dict[str, RunState]]:
    """By process, the runs (by stream) in which it has claimed an attempt."""
    found: dict[str, dict[str, RunState]] = {}
    for run in runs:
        for task in run.active:
            attempt = run.tasks[task].attempt
            if attempt is not None and attempt.claim is not None:
                found.setdefault(attempt.claim.process, {})[run.stream] = run
    return found
