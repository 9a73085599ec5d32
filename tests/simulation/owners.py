"""Several owners of one partition at once, each with a connection and a version of its own, and everything they let
out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field

from dagbok.agents.queue import Lane
from dagbok.agents.scheduler.decide import By, decide
from dagbok.agents.scheduler.dispatch.dispatcher import Dispatcher
from dagbok.agents.scheduler.handle import Decided
from dagbok.agents.scheduler.outputs import SchedulerOutputs
from dagbok.agents.scheduler.owner import Owner
from dagbok.agents.scheduler.recover import NoSnapshots, Recovery
from dagbok.agents.scheduler.timers import Timers
from dagbok.events.envelope import Answer, CancelHint, Dispatch, Reply
from dagbok.events.log.port import Log
from dagbok.events.run import commands as c
from dagbok.events.run.events import Event
from dagbok.projections.partition import PartitionState
from dagbok.projections.task_graph.state import RunState
from tests.support.logbuilder import START_MS

version: ContextVar[int] = ContextVar("version", default=1)


def decide_by_version(run: RunState, command: c.RunCommand, by: By) -> Iterator[Event]:
    """Version 2 ends a run where version 1 pauses it, and lets attempts fail that version 1 takes back."""
    if version.get() == 2:
        if isinstance(command, c.PauseRun):
            command = c.CancelRun(command.reason)
        elif isinstance(command, c.FireTimer) and by.now_ms % 2:
            command = c.ReportGone("p1")
    return decide(run, command, by)


@dataclass
class Outlet:
    """A queue that only writes down: dispatches, answers, and the commits that were said to be confirmed."""

    dispatches: list[Dispatch] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    confirmed: set[str] = field(default_factory=set)

    def put(self, lane: Lane, dispatches: Sequence[Dispatch]) -> None:
        self.dispatches += dispatches

    async def take(self, lane: Lane) -> Sequence[Dispatch]:
        raise NotImplementedError("nobody works here")

    def reply(self, address: str, replies: Sequence[Reply]) -> None:
        self.answers += [reply for reply in replies if isinstance(reply, Answer)]

    def listen(self, address: str, listener: Callable[[Sequence[Reply]], None]) -> None:
        """Nobody does."""

    def forget(self, address: str, listener: Callable[[Sequence[Reply]], None]) -> None:
        """Nobody does."""

    def hint(self, lane: Lane, hints: Sequence[CancelHint]) -> None:
        """Nobody works here."""

    def saw(self, state: PartitionState, batch: Sequence[Decided]) -> None:
        """The owner says that all of this is in the log."""
        self.confirmed.update(decided.commit.hash for decided in batch)
        if state.position.head_offset >= 0:
            self.confirmed.add(state.position.head_hash)


class RunningOwner:
    """An owner that decides until it is stopped."""

    def __init__(self, log: Log, outlet: Outlet, code_version: int) -> None:
        outputs = SchedulerOutputs(outlet, Dispatcher(outlet, log, lambda: 0.0), Timers())
        outputs.watch(outlet.saw)
        self.owner = Owner(log, 0, Recovery(log, 0, NoSnapshots(0)), outputs, lambda: START_MS * 2, "simulated")
        context = copy_context()
        context.run(version.set, code_version)
        self._task = asyncio.get_running_loop().create_task(self.owner.run(), context=context)

    async def stop(self) -> None:
        """Killed: whatever it was about to do stays undone."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def decided(self, offset: int) -> None:
        """Everything up to `offset`; raises what ended the owner before."""
        deciding = asyncio.ensure_future(self.owner.decided(offset))
        await asyncio.wait((deciding, self._task), return_when=asyncio.FIRST_COMPLETED)
        if not deciding.done():
            deciding.cancel()
            self._task.result()
            raise AssertionError("the owner ended")
